//! Tests `admit fakes deploy` and `admit fakes delete` on a cluster.

use std::fs;

use serde_json::Value;

use super::fixture::{Cluster, fakes, text};

#[test]
fn webhooks_in_pods_are_called_through_the_api_server_and_leave_nothing() {
    const NAME: &str = "admit-test-calls";
    let Some(cluster) = Cluster::of_tests(NAME) else { return };
    let target = format!("{NAME}-target");
    let labels = "name: labels, type: mutating, behavior: always-mutate";
    let no = "name: no, type: validating, behavior: {deny: {message: not today}}, \
              objectSelector: {matchLabels: {refuse: me}}";
    let slow = "name: slow, type: validating, behavior: {timeout: {hang: 20s}}, timeoutSeconds: 1, failurePolicy: Ignore";
    let stale = "name: stale, type: validating, behavior: allow, certificate: expired, failurePolicy: Ignore";

    let closed =
        "name: closed, type: validating, behavior: allow, connection: refused, failurePolicy: Ignore";

    let deployed = cluster.deploy(&fakes(NAME, &[labels, no, slow, stale, closed]), &[]);
    assert!(deployed.status.success());
    assert!(
        text(&deployed.stderr)
            .contains("every webhook responds through the API server: labels.fakes.local, ")
    );
    assert_eq!(
        cluster.admit(&["journal"]).stdout,
        b"",
        "the calls that prove that they answer are forgotten"
    );

    assert!(cluster.kubectl(&["create", "namespace", &target]).status.success());
    assert!(cluster.kubectl(&["create", "configmap", "one", "-n", &target]).status.success());
    let one = cluster.get(&["configmap", "one", "-n", &target]);
    assert_eq!(one["metadata"]["labels"]["always-mutate"], "yes");
    let two = cluster.folder.path().join("two.yaml");
    fs::write(&two, "{apiVersion: v1, kind: ConfigMap, metadata: {name: two, labels: {refuse: me}}}")
        .unwrap();
    let refused = cluster.kubectl(&["create", "-n", &target, "-f", two.to_str().unwrap()]);
    assert!(
        text(&refused.stderr).contains("admission webhook \"no.fakes.local\" denied the request: not today")
    );

    let journal = text(&cluster.admit(&["journal", "--wait", "5"]).stdout);
    let told = |line: &str| journal.lines().any(|told| told.contains(&line.replace("TARGET", &target)));
    assert!(
        told("labels.fakes.local CREATE ConfigMap TARGET/one: allowed, patched with 2 operations"),
        "{journal}"
    );
    assert!(told("slow.fakes.local CREATE ConfigMap TARGET/one: the caller disconnected"), "{journal}");
    assert!(told("no.fakes.local CREATE ConfigMap TARGET/two: denied: "), "{journal}");
    assert!(!journal.contains("stale.fakes.local"), "nobody trusts it enough to call it: {journal}");
    let of_one: Value =
        serde_json::from_slice(&cluster.admit(&["journal", "no", "-o", "json"]).stdout).unwrap();
    assert_eq!(of_one["entries"].as_array().unwrap().len(), 1);

    let secret = |key: &str| cluster.get(&["secret", "admit-fakes", "-n", NAME])["data"][key].clone();
    let (authority, token) = (secret("ca.crt"), secret("token"));
    let allowing = "name: yes, type: validating, behavior: allow";
    assert!(cluster.deploy(&fakes(NAME, &[allowing]), &[]).status.success());
    assert_eq!((secret("ca.crt"), secret("token")), (authority, token), "they are kept");
    assert!(cluster.kubectl(&["create", "-n", &target, "-f", two.to_str().unwrap()]).status.success());
    let journal = text(&cluster.admit(&["journal", "--wait", "1"]).stdout);
    assert!(
        journal.contains(&format!("yes.fakes.local CREATE ConfigMap {target}/two: allowed")),
        "{journal}"
    );

    let told = cluster.delete();
    let (configuration, namespace) = (told.find("deleted Validating"), told.find("deleted Namespace"));
    assert!(configuration.is_some() && configuration < namespace, "{told}");
    assert!(cluster.delete().contains("nothing to delete"));
    assert!(cluster.kubectl(&["delete", "namespace", &target]).status.success());
}

#[test]
fn a_pod_that_does_not_come_up_is_explained_and_puts_no_webhook_in_the_way() {
    const NAME: &str = "admit-test-fails";
    let Some(cluster) = Cluster::of_tests(NAME) else { return };
    let file = fakes(NAME, &["name: yes, type: validating, behavior: allow"]);
    let failed = cluster.deploy(&file, &["--image", "127.0.0.1:1/none:1"]);
    let told = text(&failed.stderr);
    assert_eq!(failed.status.code(), Some(3), "{told}");
    for part in ["ErrImagePull", "Event of admit-fakes-", "kind load docker-image 127.0.0.1:1/none:1"] {
        assert!(told.contains(part), "`{part}` is not in: {told}");
    }
    let left = cluster.left();
    assert!(left.contains("deployment.apps/admit-fakes") && !left.contains("webhookconfiguration"), "{left}");
    cluster.delete();
}

#[test]
fn the_readme_leads_to_a_webhook_that_never_answers() {
    const NAME: &str = "admit-test-readme";
    let Some(cluster) = Cluster::of_tests(NAME) else { return };
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/timeout.yaml");
    assert!(cluster.admit(&["deploy", "-f", example]).status.success());
    let refused = cluster.kubectl(&["create", "configmap", "one", "-n", "default"]);
    let told = text(&refused.stderr);
    assert!(
        told.contains("failed calling webhook \"never.fakes.local\": failed to call webhook: Post"),
        "{told}"
    );
    assert!(told.contains("context deadline exceeded"), "{told}");
    cluster.delete();
}

#[test]
fn objects_of_other_owners_are_not_changed() {
    const NAME: &str = "admit-test-theirs";
    let Some(cluster) = Cluster::of_tests(NAME) else { return };
    assert!(cluster.kubectl(&["create", "namespace", NAME]).status.success());
    assert!(cluster.kubectl(&["create", "configmap", "theirs", "-n", NAME]).status.success());
    let file = fakes(NAME, &["name: yes, type: validating, behavior: allow"]);
    let deployed = cluster.deploy(&file, &[]);
    assert!(text(&deployed.stderr).contains("Namespace admit-test-theirs already exists and is not changed"));
    assert!(deployed.status.success());

    let other = Cluster::of_tests("admit-test-other").unwrap();
    let refused = other.deploy(&file, &[]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("is not managed by admit: change the `name` in the file"));
    assert_eq!(other.left(), "");

    cluster.delete();
    let configmap = cluster.get(&["configmap", "theirs", "-n", NAME]);
    assert_eq!(configmap["metadata"]["name"], "theirs");
    assert!(cluster.kubectl(&["delete", "namespace", NAME]).status.success());
}
