//! Tests directories that are incomplete, from another version of Kubernetes, or not from `admit pull`.

use expect_test::expect;

use super::{MARKER, cluster};

/// Returns the marker of a pull that could not read a resource.
fn incomplete() -> String {
    let unread = "unread:
- resource: priorityclasses.scheduling.k8s.io
  code: 403
  reason: Forbidden
  message: \"no \\e[31m\"
  uncertain: whether the priority class of a Pod exists
";
    MARKER.replace("unread: []\n", unread)
}

#[test]
fn what_was_not_read_is_printed_once_and_the_decision_is_not_certain() {
    let files = cluster(&incomplete(), &[]);
    let said = files.review("--cluster c -f pod.yaml pods.yaml");
    expect![[r#"
        warning: c is incomplete: `admit pull` could not read 1 item

          priorityclasses.scheduling.k8s.io: 403 Forbidden: no \u{1b}[31m
            uncertain: whether the priority class of a Pod exists
    "#]]
    .assert_eq(&said.stderr);
    assert_eq!(said.status, 1, "a namespace does not exist");
    assert_eq!(files.review("--cluster c -f pod.yaml").status, 6);
    let report = files.report("--cluster c -f pod.yaml");
    assert_eq!(report["decision"]["verdict"], "admitted");
    assert_eq!(report["cluster"]["unread"][0]["reason"], "Forbidden");
}

#[test]
fn namespace_that_was_not_pulled_is_noted() {
    let marker = MARKER.replace("unread:", "namespaces: [shop]\nunread:");
    let files = cluster(&marker, &[]);
    let said = files.review("--cluster c -f pod.yaml");
    assert_eq!((said.status, said.stderr.as_str()), (6, ""), "{}", said.stdout);
    let expected = "\nnote: admit pull did not read namespace \"default\": run `admit pull` again with the same options and -n default\n";
    assert!(said.stdout.contains(expected), "{}", said.stdout);
}

#[test]
fn rejection_in_a_namespace_that_was_not_read_is_not_certain() {
    let of_namespaces = incomplete().replace("priorityclasses.scheduling.k8s.io", "namespaces");
    for marker in [of_namespaces, MARKER.replace("unread:", "namespaces: [default]\nunread:")] {
        let said = cluster(&marker, &[]).review("--cluster c -f pods.yaml");
        assert!(said.stdout.contains("namespaces \"shop\" not found"), "{}", said.stdout);
        assert!(
            said.stdout.contains("run `admit pull` again with the same options and -n shop"),
            "{}",
            said.stdout
        );
        assert_eq!(said.status, 6, "{}", said.stdout);
    }
}

#[test]
fn other_minor_version_is_noted() {
    let files = cluster(&MARKER.replace("v1.37.0", "v1.33.4-eks-1"), &[]);
    let said = files.review("--cluster c -f pod.yaml");
    assert_eq!(said.status, 0, "{}", said.stdout);
    expect![[r#"
        note: c is from Kubernetes v1.33.4-eks-1, and admit implements 1.37: defaults, validation, and admission plugins can differ
    "#]]
    .assert_eq(&said.stderr);
}

#[test]
fn directory_that_is_not_from_a_complete_pull_is_an_error() {
    let files = cluster(MARKER, &[]);
    std::fs::create_dir(files.path("empty")).unwrap();
    for (name, marker) in [
        ("interrupted", MARKER.replace("unread: []", "interrupted: true\nunread: []")),
        ("newer", MARKER.replace("format: 1", "format: 2")),
    ] {
        std::fs::create_dir(files.path(name)).unwrap();
        std::fs::write(files.path(name).join(".admit-pull.yaml"), marker).unwrap();
    }
    for (argument, expected) in [
        ("missing", "--cluster missing: does not exist: run `admit pull --out DIR`, and pass DIR"),
        ("pod.yaml", "--cluster pod.yaml: is not a directory: run `admit pull --out DIR`, and pass DIR"),
        (
            "empty",
            "--cluster empty: does not contain .admit-pull.yaml: run `admit pull --out DIR`, and pass DIR",
        ),
        (
            "interrupted",
            "--cluster interrupted: .admit-pull.yaml says that `admit pull` was interrupted: run `admit pull --out \
             interrupted` again",
        ),
        (
            "newer",
            "newer/.admit-pull.yaml: unsupported format 2: this version of admit supports 1; pull into a new directory",
        ),
    ] {
        let said = files.review(&format!("--cluster {argument} -f pod.yaml"));
        assert_eq!((said.status, said.stderr), (2, format!("error: {expected}\n")));
    }
    let said = files.review("--record c --cluster c");
    assert!(said.stderr.contains("cannot be used with"), "{}", said.stderr);
}
