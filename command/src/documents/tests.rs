//! Tests reading files, directories, and documents.

use super::*;

/// Runs `reading` on a directory with these files. In messages and locations, the path of the directory is removed.
fn in_folder<T>(files: &[(&str, &str)], reading: impl FnOnce(&[PathBuf]) -> T) -> (T, String) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let prefix = format!("{}/", folder.path().display());
    (reading(&[folder.path().to_owned()]), prefix)
}

#[track_caller]
fn check(text: &str, expected: &[(u64, &str)]) {
    let (documents, _) = in_folder(&[("f.yaml", text)], read);
    let documents = documents.unwrap();
    let found: Vec<_> = documents
        .iter()
        .map(|document| (document.place.line, document.object["kind"].as_str().unwrap()))
        .collect();
    assert_eq!(found, expected, "{text}");
}

#[track_caller]
fn check_wrong(text: &str, expected: &str) {
    let (documents, prefix) = in_folder(&[("f.yaml", text)], |paths| read(&[paths[0].join("f.yaml")]));
    assert_eq!(documents.unwrap_err().to_string().replace(&prefix, ""), expected);
}

/// Returns the names of the objects, and the errors.
fn streamed(files: &[(&str, &str)]) -> Vec<String> {
    let reading = |paths: &[PathBuf]| stream(paths).unwrap().collect::<Vec<_>>();
    let (found, prefix) = in_folder(files, reading);
    found
        .into_iter()
        .map(|found| match found {
            Ok(document) => document.object["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            Err(failure) => failure.to_string().replace(&prefix, ""),
        })
        .collect()
}

#[test]
#[cfg(unix)]
fn each_file_in_a_config_map_volume_is_read_once() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("..2026_11_21")).unwrap();
    fs::write(path("..2026_11_21/a.yaml"), "{apiVersion: v1, kind: A}").unwrap();
    symlink("..2026_11_21", path("..data")).unwrap();
    symlink("..data/a.yaml", path("a.yaml")).unwrap();
    assert_eq!(files(folder.path()).unwrap(), [path("a.yaml")]);
}

#[test]
#[cfg(unix)]
fn link_to_a_missing_file_is_named_without_a_suggestion() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("manifests");
    fs::create_dir(&path).unwrap();
    symlink("missing.yaml", path.join("a.yaml")).unwrap();
    let link = path.join("a.yaml");
    let expected = format!("{}: No such file or directory", link.display());
    assert_eq!(files(&path).unwrap_err().to_string(), expected);
    assert_eq!(files(&link).unwrap_err().to_string(), expected);
}

#[test]
fn hidden_files_and_node_modules_are_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in [".github", "node_modules", "deploy"] {
        fs::create_dir(path(name)).unwrap();
        fs::write(path(name).join("a.yaml"), "{apiVersion: v1, kind: A}").unwrap();
    }
    fs::write(path(".hidden.yaml"), "{apiVersion: v1, kind: A}").unwrap();
    assert_eq!(files(folder.path()).unwrap(), [path("deploy/a.yaml")]);
    // A path that the user gives is read even if it is hidden.
    assert_eq!(files(&path(".hidden.yaml")).unwrap(), [path(".hidden.yaml")]);
}

#[test]
fn documents_in_a_directory_that_are_not_kubernetes_objects_are_skipped_and_counted() {
    let files = [("a.yaml", "apiVersion: v1\nkind: A\n---\n- b\n"), ("values.yaml", "\nreplicas: 1\n")];
    let (found, _) = in_folder(&files, |paths| {
        let skipped = SkippedDocuments::default();
        let inputs = all_files(paths).unwrap();
        let kinds: Vec<String> = inputs
            .iter()
            .flat_map(|input| Documents::open(input, &skipped))
            .map(|document| document.unwrap().object["kind"].as_str().unwrap().to_owned())
            .collect();
        let message = skipped.message();
        (kinds, message.unwrap().replace(&format!("{}/", paths[0].display()), ""))
    });
    let message = "skipped 2 documents that are not Kubernetes objects, such as a.yaml:4";
    assert_eq!(found, (vec!["A".to_owned()], message.to_owned()));
    let (found, prefix) = in_folder(&[("values.yaml", "a: 1")], read);
    let message = found.unwrap_err().to_string();
    assert_eq!(message, format!("{}: no Kubernetes objects in these files", prefix.trim_end_matches('/')));
}

#[test]
fn last_value_of_a_duplicate_key_is_used_as_in_kubectl() {
    let (documents, _) = in_folder(&[("f.yaml", "apiVersion: v1\nkind: A\nkind: B\n")], read);
    assert_eq!(documents.unwrap()[0].object["kind"], "B");
}

#[test]
fn template_is_rejected_with_the_command_that_renders_it() {
    let text = "apiVersion: v1\nkind: A\nmetadata:\n  labels:\n    {{- include \"x\" . | nindent 4 }}\n";
    let (documents, _) = in_folder(&[("f.yaml", text)], read);
    let message = documents.unwrap_err().to_string();
    assert!(message.ends_with("render it first: helm template RELEASE CHART"), "{message}");
}

#[test]
fn text_that_is_not_utf_8_is_named_with_its_line() {
    assert_eq!(text(b"a\nb".to_vec(), "f").unwrap(), "a\nb");
    assert_eq!(text(b"a\nb\n\xff\n".to_vec(), "f").unwrap_err().to_string(), "f:3: this is not UTF-8 text");
}

#[test]
fn list_items_are_separate_objects() {
    check(
        "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: A}\n- {apiVersion: v1, kind: B}\n",
        &[(1, "A"), (1, "B")],
    );
    check(
        "{apiVersion: v1, kind: PodList, items: [{metadata: {name: a}}, {kind: Other, apiVersion: v1}]}",
        &[(1, "Pod"), (1, "Other")],
    );
}

#[test]
fn a_document_that_is_not_an_object_is_reported_with_its_line() {
    check_wrong("", "f.yaml: it does not contain an object");
    check_wrong("---\n", "f.yaml: it does not contain an object");
    check_wrong(
        "apiVersion: v1\nkind: A\n---\n- a\n",
        "f.yaml:4: expected an object with `apiVersion` and `kind`",
    );
    check_wrong("kind: A\n", "f.yaml:1: the object has no `apiVersion`");
    check_wrong("\napiVersion: v1\n", "f.yaml:2: the object has no `kind`");
    check_wrong(
        "{apiVersion: v1, kind: List, items: [{kind: A}]}",
        "f.yaml:1: the object has no `apiVersion`",
    );
}

#[test]
fn json_lines_are_read_and_other_files_in_a_directory_are_ignored() {
    let lines = "\n{\"apiVersion\":\"v1\",\"kind\":\"A\",\"metadata\":{\"name\":\"a\"}}\n{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[{\"apiVersion\":\"v1\",\"kind\":\"B\",\"metadata\":{\"name\":\"b\"}}]}";
    assert_eq!(streamed(&[("a.json", lines), ("b.txt", "ignored")]), ["a", "b"]);
}

#[test]
fn an_error_ends_its_file_and_names_its_location() {
    let found = streamed(&[
        ("a.yaml", "apiVersion: v1\nkind: A\nmetadata: {name: a}\n---\nkind: [\n---\nkind: C\n"),
        ("b.yaml", "a: [b\n---\napiVersion: v1\nkind: A\n"),
        ("c.yaml", "apiVersion: v1\nkind: A\nmetadata: {name: c}\n"),
    ]);
    assert_eq!(found.len(), 4, "{found:?}");
    assert_eq!(found[0], "a");
    assert!(found[1].starts_with("a.yaml:5:7: invalid YAML: "), "{}", found[1]);
    assert!(found[2].starts_with("b.yaml:"), "{}", found[2]);
    assert_eq!(found[3], "c");
}

#[test]
fn a_missing_path_is_reported_immediately() {
    let folder = tempfile::tempdir().unwrap();
    assert!(stream(&[folder.path().to_owned()]).is_err());
    assert!(stream(&[folder.path().join("x.yaml")]).is_err());
}
