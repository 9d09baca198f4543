//! Tests the advice of the command.
//!
//! It explains why a webhook was not called, where a check is documented, and which option accepts a file.

use serde_json::{Value, json};

use super::command::{Stage, ends_with};
use super::environment::{configuration, entry};

#[tokio::test(flavor = "multi_thread")]
async fn webhook_that_was_never_called_has_the_reason_and_the_advice_for_it() {
    let stage = Stage::with("always-mutate").await;
    let mut picky = entry("w", &stage.fake.url(), stage.fake.ca_bundle());
    picky["namespaceSelector"] = json!({"matchLabels": {"inject": "yes"}});
    picky["objectSelector"] = json!({"matchLabels": {"app": "web"}});
    stage.write("picky.yaml", &[configuration("MutatingWebhookConfiguration", "c", &[picky])]);
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "shop"},
        "spec": {"containers": [{"name": "a", "image": "a"}]}});
    let other = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "namespace": "shop"},
        "spec": {"ports": [{"port": 80}]}});
    stage.write("objects.yaml", &[pod.clone(), other.clone()]);
    let mut arguments = vec!["-c", "picky.yaml", "-f", "objects.yaml", "--check", "V01"];
    let text = ends_with(&stage.verify(&arguments).await, 4);
    let expected = "the webhook was not called for any of 2 objects: its namespaceSelector does not select the \
                    namespace shop\n  = help: add the manifest of the namespace,";
    assert!(text.contains(expected), "{text}");

    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"inject": "yes"}}});
    stage.write("namespace.yaml", &[namespace]);
    arguments.insert(2, "namespace.yaml");
    let text = ends_with(&stage.verify(&arguments).await, 4);
    assert!(text.contains(": its objectSelector does not select the objects\n"), "{text}");
    assert!(text.contains("its objectSelector names app"), "{text}");

    stage.write("objects.yaml", &[other]);
    let text = ends_with(&stage.verify(&arguments).await, 4);
    assert!(text.contains(": none of its rules matches the objects\n"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn misspelled_field_of_a_match_condition_has_the_similar_field() {
    let stage = Stage::with("always-mutate").await;
    let mut misspelled = entry("w", &stage.fake.url(), stage.fake.ca_bundle());
    misspelled["matchConditions"] =
        json!([{"name": "blue", "expression": "object.metadata.lables.team == 'blue'"}]);
    for resources in ["pods", "*"] {
        misspelled["rules"][0]["resources"] = json!([resources]);
        stage.write("c.yaml", &[configuration("MutatingWebhookConfiguration", "c", &[misspelled.clone()])]);
        let text = ends_with(&stage.verify(&["-c", "c.yaml", "-f", "pods.yaml", "--check", "V01"]).await, 4);
        let expected = "the match condition blue fails for pods with `no such key: lables`, so the request is rejected: ObjectMeta \
             does not have a field lables (did you mean labels?)\n  = help: correct the name of the field\n";
        assert!(text.contains(expected) && !text.contains("has()"), "{text}");
        let text = ends_with(&stage.verify(&["-c", "c.yaml", "-f", "pods.yaml", "--check", "V55"]).await, 1);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let help = "does not have a field lables (did you mean labels?). Correct the name of the field. ";
        assert!(text.contains(help) && !text.contains("Guard optional fields"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn misspelled_field_behind_a_test_for_its_existence_is_a_finding() {
    let stage = Stage::with("always-mutate").await;
    let mut misspelled = entry("w", &stage.fake.url(), stage.fake.ca_bundle());
    for expression in [
        "!has(object.metadata.lables) || 'skip' in object.metadata.lables",
        "object.metadata.?lables[?'team'].orValue('') == ''",
    ] {
        misspelled["matchConditions"] = json!([{"name": "blue", "expression": expression}]);
        stage.write("c.yaml", &[configuration("MutatingWebhookConfiguration", "c", &[misspelled.clone()])]);
        let arguments = ["-c", "c.yaml", "-f", "pods.yaml", "--check", "V55", "--fail-on", "warning"];
        let text = ends_with(&stage.verify(&arguments).await, 1);
        let expected = "warning[V55]: ObjectMeta does not have a field lables (did you mean labels?): no Pod has it, so \
                        `has()` is always false and `.?` never has a value\n";
        assert!(text.contains(expected), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_that_responds_at_random_is_not_called_idempotent() {
    let label = |team: &str| format!("{{always-mutate: {{labels: {{team: {team}}}}}}}");
    let behavior =
        format!("{{rate: {{of: {}, probability: 0.5, seed: 7, otherwise: {}}}}}", label("a"), label("b"));
    let stage = Stage::with(&behavior).await;
    let arguments = ["-c", "configuration.yaml", "-f", "pods.yaml", "--check", "V01,V11"];
    let text = ends_with(&stage.verify(&arguments).await, 1);
    assert!(text.starts_with("c/w.example.com: NOT deterministic (1 error)\n"), "{text}");
    // Whether V01 also fails is random.
    let arguments = ["-c", "configuration.yaml", "-f", "pods.yaml", "--check", "V11"];
    let baseline =
        [&arguments[..], &["--write-baseline", "known.yaml", "--baseline-reason", "injector#12"]].concat();
    stage.verify(&baseline).await;
    let text = ends_with(&stage.verify(&[&arguments[..], &["--baseline", "known.yaml"]].concat()).await, 0);
    assert!(text.starts_with("c/w.example.com: not deterministic; 1 accepted\n"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_whose_rules_match_no_served_resource_has_the_correct_name() {
    let stage = Stage::with("always-mutate").await;
    let mut misnamed = entry("w", &stage.fake.url(), stage.fake.ca_bundle());
    misnamed["rules"][0]["resources"] = json!(["pod"]);
    stage.write("c.yaml", &[configuration("MutatingWebhookConfiguration", "c", &[misnamed])]);
    let expected = "warning: c/w.example.com: the webhook was not called: Kubernetes 1.37 does not serve pod in v1: use the lowercase \
                    plural name pods\n  = help: correct the rule\n";
    for objects in [&["-f", "pods.yaml"][..], &[]] {
        let text = ends_with(&stage.verify(&[&["-c", "c.yaml"], objects].concat()).await, 4);
        assert!(text.contains(expected), "{text}");
    }
    // Another rule matches.
    let mut partly = entry("w", &stage.fake.url(), stage.fake.ca_bundle());
    let rule = partly["rules"][0].clone();
    partly["rules"] = json!([rule, rule]);
    partly["rules"][1]["resources"] = json!(["pod"]);
    stage.write("c.yaml", &[configuration("MutatingWebhookConfiguration", "c", &[partly])]);
    let text = ends_with(&stage.verify(&["-c", "c.yaml", "-f", "pods.yaml", "--check", "V01"]).await, 0);
    assert!(!text.contains("was not called"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn violations_of_one_check_with_one_cause_are_one_finding_that_names_them() {
    let stage =
        Stage::with("patch: {operations: [{op: replace, path: /metadata/label/team, value: a}]}").await;
    let text =
        ends_with(&stage.verify(&["-c", "configuration.yaml", "-f", "pods.yaml", "--check", "V15"]).await, 1);
    assert!(text.contains("\n1 finding (1 error); "), "{text}");
    assert!(
        text.contains("  = same cause: patch does not apply without ") && !text.contains("also fails"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn object_of_a_mirror_pod_is_printed_in_full() {
    let stage = Stage::with("sidecar").await;
    let text =
        ends_with(&stage.verify(&["-c", "configuration.yaml", "-f", "pods.yaml", "--check", "V21"]).await, 1);
    let object = text.lines().find_map(|line| line.strip_prefix("  = smallest object: ")).expect("an object");
    let object: Value = serde_json::from_str(object).expect("a complete object");
    assert!(object.to_string().len() > 400 && object["spec"]["nodeName"] == "node-1", "{object:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_field_of_a_configuration_is_a_warning_that_quiet_does_not_hide() {
    let stage = Stage::with("allow").await;
    let mut unknown = entry("w", &stage.fake.url(), stage.fake.ca_bundle());
    unknown["failPolicy"] = json!("Fail");
    stage.write("unknown.yaml", &[configuration("MutatingWebhookConfiguration", "c", &[unknown])]);
    let output = stage.verify(&["-c", "unknown.yaml", "--check", "V57", "--quiet"]).await;
    let text = String::from_utf8_lossy(&output.stderr);
    let warning =
        "the API server ignores the unknown field webhooks[0].failPolicy (did you mean failurePolicy?)\n";
    assert!(text.contains("warning: unknown.yaml:1: ") && text.contains(warning), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn documentation_of_a_check_and_the_option_for_a_file_are_printed() {
    let stage = Stage::with("allow").await;
    let text = ends_with(&stage.verify(&["--explain", "v01"]).await, 0);
    assert!(
        text.starts_with("V01 idempotence: ") && text.contains("/docs/reference/checks.md#v01\n"),
        "{text}"
    );
    let text = ends_with(&stage.verify(&["configuration.yaml"]).await, 2);
    assert!(text.ends_with("tip: pass webhook configurations with -c, and objects with -f: admit verify -c configuration.yaml\n"), "{text}");
    let text =
        ends_with(&stage.verify(&["--configurations", "configuration.yaml", "--check", "V57"]).await, 0);
    assert!(!text.contains("tip: "), "{text}");
    let sarif = stage.verify(&["-c", "configuration.yaml", "--check", "V57", "-o", "sarif"]).await;
    let sarif: Value = serde_json::from_slice(&sarif.stdout).expect("JSON");
    let rule = &sarif["runs"][0]["tool"]["driver"]["rules"][0];
    assert!(rule["helpUri"].as_str().is_some_and(|url| url.starts_with("https://")), "{rule}");
}

#[tokio::test(flavor = "multi_thread")]
async fn advice_on_a_ca_bundle_depends_on_whether_it_is_a_placeholder() {
    let stage = Stage::with("allow").await;
    for (bundle, expected) in [
        ("CA_BUNDLE", "; kube-apiserver rejects such a placeholder, too"),
        ("LS0t LS1C", "; set caBundle to base64-encoded PEM on one line, or pass --ca-file FILE\n"),
    ] {
        let mut webhook = entry("w", &stage.fake.url(), stage.fake.ca_bundle());
        webhook["clientConfig"]["caBundle"] = json!(bundle);
        stage.write("bundle.yaml", &[configuration("ValidatingWebhookConfiguration", "c", &[webhook])]);
        let text = ends_with(&stage.verify(&["-c", "bundle.yaml", "-f", "pods.yaml"]).await, 2);
        assert!(text.contains(expected), "{bundle}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_without_an_object_in_the_built_in_corpus_are_the_reason() {
    let stage = Stage::with("always-mutate").await;
    let mut webhook = entry("w", &stage.fake.url(), stage.fake.ca_bundle());
    webhook["rules"] = json!([{"operations": ["CREATE"], "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["widgets"]}]);
    stage.write("widgets.yaml", &[configuration("MutatingWebhookConfiguration", "c", &[webhook])]);
    let text = ends_with(&stage.verify(&["-c", "widgets.yaml", "--check", "V01"]).await, 4);
    assert!(text.contains("none of its rules matches an object of the built-in corpus\n"), "{text}");
    assert!(!text.contains("--label"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_patches_are_not_reported_as_a_webhook_that_never_changed_an_object() {
    let stage = Stage::with("patch: {operations: [{op: add, path: /spec/none/team, value: blue}]}").await;
    let arguments = |check| ["-c", "configuration.yaml", "-f", "pods.yaml", "--check", check];
    let text = ends_with(&stage.verify(&arguments("V01")).await, 6);
    assert!(text.starts_with("c/w.example.com: could not be checked: "), "{text}");
    assert!(!text.contains("never changed an object"), "{text}");
    let text = ends_with(&stage.verify(&arguments("V22")).await, 0);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = "and never changed an object, because the API server rejected its responses, for example with: Internal error \
                    occurred: add operation does not apply: doc is missing path: \"/spec/none/team\": missing value";
    assert!(text.contains(expected), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_that_never_responds_has_its_url_and_the_common_causes() {
    let stage = Stage::with("bad-response: {status: 404}").await;
    let arguments = ["-c", "configuration.yaml", "-f", "pods.yaml", "--check", "V01"];
    let text = ends_with(&stage.verify(&arguments).await, 6);
    let warning = format!(
        "warning: c/w.example.com: the webhook did not return a valid response to any call at {}: the server could not \
         find the requested resource (HTTP status 404, the response begins with: Not Found)\n  = help: common causes: (1) the path in clientConfig is missing or wrong;",
        stage.fake.url()
    );
    assert!(text.contains(&warning), "{text}");
}
