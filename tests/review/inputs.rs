//! Tests the inputs of `admit review`, and its machine-readable output.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use expect_test::expect;
use fake_webhooks::{Fake, FakeWebhook};
use serde_json::Value;

use super::files::{NOWHERE, POD, configuration, fakes, files};

#[test]
fn subresources_have_requests_of_their_own() {
    let fakes = fakes(&["name: watch, type: validating, behavior: allow"]);
    let deployment = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {replicas: 3, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}}
";
    let scale = "{apiVersion: autoscaling/v1, kind: Scale, metadata: {name: web}, spec: {replicas: 5}}";
    let status = format!("{deployment}status: {{replicas: 2}}\n");
    let files = files([
        ("fakes.yaml", &fakes),
        ("deployment.yaml", deployment),
        ("scale.yaml", scale),
        ("status.yaml", &status),
        ("pod.yaml", POD),
    ]);
    for (line, message, resource) in [
        (
            "-f scale.yaml --old deployment.yaml --subresource scale",
            "deployment.apps/web scaled",
            "deployments",
        ),
        (
            "-f status.yaml --old deployment.yaml --subresource status",
            "deployment.apps/web status replaced",
            "deployments",
        ),
        ("-f pod.yaml --subresource eviction", "pod/web evicted", "pods"),
        ("-f pod.yaml --subresource exec --query command=sh", "pod/web exec admitted", "pods"),
    ] {
        let report = files.report(&format!("{line} --fakes fakes.yaml"));
        assert_eq!(report["decision"]["message"], message, "{report:#}");
        assert_eq!(report["request"]["resource"]["resource"], resource);
        assert_eq!(report["calls"].as_array().unwrap().len(), 1, "{report:#}");
    }
    let report = files.report("-f scale.yaml --old deployment.yaml --subresource scale --fakes fakes.yaml");
    assert_eq!(report["object"]["spec"]["replicas"], 5);
}

#[test]
fn an_option_for_files_takes_several_files() {
    let fakes = fakes(&["name: labels, type: mutating, behavior: always-mutate"]);
    let namespace = |name: &str| format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n");
    let pod = POD.replace("name: web, labels", "name: api, labels");
    let files = files([
        ("fakes.yaml", &fakes),
        ("a.yaml", &namespace("a")),
        ("b.yaml", &namespace("b")),
        ("web.yaml", POD),
        ("api.yaml", &pod),
    ]);
    let said = files.review("--with a.yaml b.yaml -f web.yaml api.yaml --fakes fakes.yaml");
    assert_eq!(said.status, 0, "{}", said.stderr);
    assert!(
        said.stdout.contains("pod/web created") && said.stdout.contains("pod/api created"),
        "{}",
        said.stdout
    );
    let said = files.review("-f web.yaml -c a.yaml b.yaml");
    assert!(!said.stderr.contains("NUMBER"), "{}", said.stderr);
}

#[test]
fn a_custom_resource_needs_its_definition() {
    let fakes = fakes(&["name: labels, type: mutating, behavior: always-mutate"]);
    let definition = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";
    let files = files([
        ("fakes.yaml", &fakes),
        ("widgets.yaml", definition),
        ("widget.yaml", "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {size: 1}}"),
    ]);
    files.review("-f widget.yaml --with widgets.yaml --fakes fakes.yaml").check(
        0,
        &expect![[r#"
            widget.example.com/w created

            Webhooks
              mutating, first round
                ok labels.fakes.local  N ms  allowed, changed metadata.labels
              mutating, second round
                -  labels.fakes.local  not called: its reinvocationPolicy is Never

            Object
              labels.fakes.local
                + metadata.labels:
                +   always-mutate: "yes"
              4 changes by the server (-v shows them)

        "#]],
    );
    let said = files.review("-f widget.yaml --fakes fakes.yaml");
    assert_eq!(
        (said.status, said.stderr.as_str()),
        (
            2,
            "error: widget.yaml:1: no matches for kind \"Widget\" in version \"example.com/v1\": pass its \
             CustomResourceDefinition with --with FILE\n"
        )
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_is_found_where_the_command_line_says() {
    let fake = FakeWebhook::start(Fake {
        names: vec!["hook.demo.svc".to_owned()],
        behavior: serde_saphyr::from_str("{deny: {message: no, reason: Forbidden, code: 403}}").unwrap(),
        ..Fake::default()
    })
    .await
    .unwrap();
    let client_config = format!(
        "{{service: {{namespace: demo, name: hook}}, caBundle: {}}}",
        STANDARD.encode(fake.ca_bundle())
    );
    let configuration = configuration("MutatingWebhookConfiguration", &client_config, "");
    let untrusted =
        self::configuration("MutatingWebhookConfiguration", "{service: {namespace: demo, name: hook}}", "");
    let files = files([("pod.yaml", POD), ("hooks.yaml", &configuration), ("untrusted.yaml", &untrusted)]);
    let address = fake.address();
    let said = tokio::task::spawn_blocking(move || {
        let mapped =
            files.review(&format!("-f pod.yaml -c hooks.yaml --service demo/hook={address} --as jane"));
        let wrong_port = files.review("-f pod.yaml -c hooks.yaml --service demo/hook=127.0.0.1:1");
        let line = format!("-f pod.yaml -c untrusted.yaml --service demo/hook={address}");
        (mapped, files.review("-f pod.yaml -c hooks.yaml"), wrong_port, files.review(&line))
    });
    let (mapped, unmapped, wrong_port, untrusted) = said.await.unwrap();
    let help = "= help: --service demo/hook is 127.0.0.1:1: check that the webhook listens there\n";
    assert!(wrong_port.stdout.contains(help), "{}", wrong_port.stdout);
    let help = "= help: the caBundle of \"hook.example.com\" is empty or does not contain the CA";
    assert!(untrusted.stdout.contains(help), "{}", untrusted.stdout);
    mapped.check(
        1,
        &expect![[r#"
        error: admission webhook "hook.example.com" denied the request: no
         --> hooks.yaml:5
          = webhook: hooks/hook.example.com
          = request: CREATE Pod default/web (pod.yaml:1)
          = status: 403 Forbidden
          = why: The request would also have failed with failurePolicy Ignore.
          = help: the webhook rejects such requests; change the object, or read the documentation and the
                  log of the webhook
          = docs: admit explain-error MESSAGE

        Webhooks
          mutating, first round
            x  hook.example.com  N ms  denied: no

        Object
          11 changes by defaults, 3 changes by plugins (-v shows them)

    "#]],
    );
    unmapped.check(3, &expect![[r#"
        error: Internal error occurred: failed calling webhook "hook.example.com": failed to call webhook: Post "https://hook.demo.svc:443/?timeout=10s": service "hook" not found
         --> hooks.yaml:5
          = webhook: hooks/hook.example.com
          = request: CREATE Pod default/web (pod.yaml:1)
          = status: 500 InternalError
          = why: The Service in clientConfig.service does not exist. failurePolicy is Fail: the request
                 failed. With Ignore, the request would have continued without the webhook.
          = help: set the address of the webhook with --service demo/hook=HOST:PORT
          = docs: admit explain-error MESSAGE

        Webhooks
          mutating, first round
            x  hook.example.com  N ms  failed: failed to call webhook: Post "https://hook.demo.svc:443/?timeout=10s": service "hook" not found

        Object
          11 changes by defaults, 3 changes by plugins (-v shows them)

    "#]]);
    assert_eq!(fake.journal().len(), 1);
    assert_eq!(fake.journal()[0].review().unwrap()["request"]["userInfo"]["username"], "jane");
}

#[test]
fn several_objects_are_several_requests_and_the_worst_decides() {
    let fakes =
        fakes(&["name: policy, type: validating, behavior: {when: {if: {present: /data/bad}, then: deny}}"]);
    let list = "\
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: good}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: worse}, data: {bad: x}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
";
    let files = files([("fakes.yaml", &fakes)]);
    files.review_with_input("-f - --fakes fakes.yaml", list).check(
        1,
        &expect![[r#"
            configmap/good created

            Webhooks
              validating
                ok policy.fakes.local  N ms  allowed

            Object
              3 changes by the server (-v shows them)

            error: admission webhook "policy.fakes.local" denied the request without explanation
              = webhook: admit-fakes/policy.fakes.local
              = request: CREATE ConfigMap default/worse (STDIN:1)
              = status: 400
              = why: The webhook responded with allowed false, or without allowed, and without a reason. The
                     request would also have failed with failurePolicy Ignore.
              = help: return the reason of the denial as `response.status.message`
              = docs: admit explain-error MESSAGE

            Webhooks
              validating
                x  policy.fakes.local  N ms  denied without explanation

            namespace/shop created

            Webhooks
              validating
                -  policy.fakes.local  not called: its namespaceSelector requires admit-fakes=enabled; the namespace "shop" has the labels {"kubernetes.io/metadata.name":"shop"}

            Object
              3 changes by defaults, 4 changes by the server (-v shows them)

            2 admitted, 1 denied
        "#]],
    );
    let said = files.review_with_input("-f - --fakes fakes.yaml -o json", list);
    let reports: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(reports["kind"], "AdmissionReportList");
    let verdicts =
        [0, 1, 2].map(|index| reports["items"][index]["decision"]["verdict"].as_str().unwrap().to_owned());
    assert_eq!(verdicts, ["admitted", "denied", "admitted"]);
    let said = files.review_with_input("-f - --fakes fakes.yaml -o yaml", list);
    let documents: Vec<Value> = serde_saphyr::from_multiple(&said.stdout).unwrap();
    assert_eq!(documents.len(), 3);
    assert_eq!(documents[1]["source"]["file"], "STDIN");
}

#[test]
fn a_report_for_programs_has_all_that_people_see() {
    let fakes = fakes(&["name: labels, type: mutating, behavior: always-mutate"]);
    let files = files([("pod.yaml", POD), ("fakes.yaml", &fakes)]);
    let report = files.report("-f pod.yaml --fakes fakes.yaml");
    assert_eq!(
        (&report["apiVersion"], &report["kind"]),
        (&"admit.dev/v1alpha1".into(), &"AdmissionReport".into())
    );
    let call = &report["calls"][0];
    assert_eq!(call["outcome"], "allowed");
    assert_eq!(call["patch"][0]["path"], "/metadata/labels/always-mutate");
    assert_eq!(call["changes"][0]["path"], "metadata.labels.always-mutate");
    assert!(call["durationMs"].as_f64().unwrap() > 0.0);
    assert_eq!(report["object"]["metadata"]["labels"]["always-mutate"], "yes");
    assert_eq!(report["decision"]["allowed"], true);
    let steps: Vec<&str> =
        report["steps"].as_array().unwrap().iter().map(|step| step["by"].as_str().unwrap()).collect();
    assert_eq!(steps, ["defaults", "plugin", "webhook", "server"]);
    let annotations = report["auditAnnotations"].as_object().unwrap();
    assert!(annotations.contains_key("mutation.webhook.admission.k8s.io/round_0_index_0"), "{annotations:?}");
}

#[test]
fn configurations_of_existing_objects_are_reported_once() {
    let configuration = configuration("ValidatingWebhookConfiguration", NOWHERE, "");
    let files = files([("pod.yaml", POD), ("hooks.yaml", &configuration)]);
    for line in ["-f pod.yaml --with hooks.yaml", "-f pod.yaml -c hooks.yaml --with hooks.yaml"] {
        let report = files.report(line);
        assert_eq!(report["webhooks"].as_array().unwrap().len(), 1, "{line}: {report:#}");
        assert_eq!(report["webhooks"][0]["name"], "hook.example.com");
        let said = files.review(line);
        assert!(said.stdout.contains(" --> hooks.yaml:5\n"), "{line}: {}", said.stdout);
        assert!(said.stdout.contains("\nWebhooks\n"), "{line}: {}", said.stdout);
    }
}

#[test]
fn a_bad_input_is_named_with_its_file_and_line() {
    let good = configuration("ValidatingWebhookConfiguration", NOWHERE, "");
    let conditions = configuration(
        "ValidatingWebhookConfiguration",
        NOWHERE,
        "  matchConditions: [{name: x, expression: object.kind}]\n",
    );
    let files = files([
        ("pod.yaml", POD),
        ("good.yaml", &good),
        ("conditions.yaml", &conditions),
        ("bad-yaml.yaml", "a: [\n"),
        ("bad-kind.yaml", "---\nkind: Pod\n"),
        ("bad-policy.yaml", &good.replace("[v1]", "[v9]")),
        ("placeholder.yaml", &good.replace("{url: ", "{caBundle: CA_BUNDLE, url: ")),
        ("empty/readme.txt", ""),
    ]);
    for (line, status, parts) in [
        ("-f nothing.yaml -c good.yaml", 2, &["nothing.yaml: No such file"][..]),
        ("-f bad-yaml.yaml -c good.yaml", 2, &["bad-yaml.yaml:"]),
        ("-f bad-kind.yaml -c good.yaml", 2, &["bad-kind.yaml:2: the object has no `apiVersion`"]),
        ("-f empty -c good.yaml", 2, &["empty: no *.yaml, *.yml, or *.json file in this directory"]),
        (
            "-f pod.yaml -c pod.yaml",
            2,
            &["pod.yaml: the files of -c do not contain a MutatingWebhookConfiguration"],
        ),
        (
            "-f pod.yaml -c bad-policy.yaml",
            2,
            &["bad-policy.yaml:1: ", "webhooks[0].admissionReviewVersions"],
        ),
        (
            "-f pod.yaml -c conditions.yaml",
            2,
            &["conditions.yaml:1: ", "matchConditions[0].expression", "must evaluate to bool but got dyn"],
        ),
        (
            "-f pod.yaml -c placeholder.yaml",
            2,
            &["placeholder.yaml:1: ", "webhooks[0].clientConfig.caBundle is the placeholder \"CA_BUNDLE\""],
        ),
        ("-f pod.yaml", 2, &["--configuration"]),
        ("-f - -c -", 2, &["standard input can be read only once"]),
        ("-f pod.yaml -c good.yaml --service x", 2, &["expected NAMESPACE/NAME=HOST:PORT"]),
        (
            "-f pod.yaml -c good.yaml --operation UPDATE",
            2,
            &["pod.yaml:1: an update requires the object before the update"],
        ),
    ] {
        let said = files.review(line);
        assert_eq!((said.status, said.stdout.as_str()), (status, ""), "{line}: {}", said.stderr);
        for part in parts {
            assert!(said.stderr.contains(part), "{line}: `{part}` is not in: {}", said.stderr);
        }
    }
}

#[test]
fn objects_of_any_shape_are_answered() {
    let long = format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {}}}}}", "x".repeat(70_000));
    let fakes = fakes(&["name: watch, type: validating, behavior: allow"]);
    let files = files([
        ("fakes.yaml", &fakes),
        ("list.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: [a]}"),
        ("text.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: a}"),
        ("long.yaml", &long),
    ]);
    for (line, expected) in [
        ("-f list.yaml --operation delete", "json: cannot unmarshal array into Go "),
        ("-f text.yaml --operation delete", "json: cannot unmarshal string into Go "),
        ("-f list.yaml --operation update --old list.yaml", "json: cannot unmarshal array into Go "),
        ("-f long.yaml --operation delete", "must be no more than 253 "),
    ] {
        let said = files.review(&format!("{line} --fakes fakes.yaml"));
        assert_eq!(said.status, 2, "{line}: {}{}", said.stdout, said.stderr);
        let file = line.split_whitespace().nth(1).unwrap();
        assert!(said.stderr.starts_with(&format!("error: {file}:1: ")), "{line}: {}", said.stderr);
        assert!(said.stderr.contains(expected), "{line}: {}", said.stderr.get(..300).unwrap_or(&said.stderr));
    }
}

#[test]
fn an_unknown_resource_of_a_review_is_named_as_the_api_names_it() {
    let review = r#"{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "1",
        "kind": {"group": "example.com", "version": "v1", "kind": "Widget"},
        "resource": {"group": "example.com", "version": "v1", "resource": "widgets"},
        "name": "w", "namespace": "default", "operation": "CREATE", "userInfo": {}}}"#;
    let fakes = fakes(&["name: watch, type: validating, behavior: allow"]);
    let files = files([("fakes.yaml", &fakes), ("review.json", review)]);
    let said = files.review("-f review.json --fakes fakes.yaml");
    assert_eq!(
        (said.status, said.stderr.as_str()),
        (
            2,
            "error: review.json:1: the server has no resource widgets.example.com in version \"v1\": pass its \
             CustomResourceDefinition with --with FILE\n"
        )
    );
}

#[test]
fn invalid_object_before_the_request_is_reported_with_its_own_file() {
    let ephemeral = |count: usize| {
        let containers: Vec<String> =
            (0..count).map(|index| format!("{{name: debug-{index}, image: busybox}}")).collect();
        let containers = containers.join(", ");
        format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: web}}, spec: {{containers: [{{name: web, image: nginx}}], ephemeralContainers: [{containers}]}}}}"
        )
    };
    let fakes = fakes(&["name: watch, type: validating, behavior: allow"]);
    let files = files([("old.yaml", &ephemeral(1)), ("pod.yaml", &ephemeral(2)), ("fakes.yaml", &fakes)]);
    let said =
        files.review("-f pod.yaml --old old.yaml --subresource ephemeralcontainers --fakes fakes.yaml");
    assert_eq!(said.status, 2, "{}", said.stdout);
    assert!(said.stderr.starts_with("error: old.yaml:1: Pod \"web\" is invalid: "), "{}", said.stderr);
}

#[test]
fn denial_with_result_instead_of_status_is_explained() {
    let raw = "{response: {uid: '{uid}', allowed: false, result: {message: not today}}}";
    let fakes = fakes(&[&format!("name: deny, type: validating, behavior: {{raw: {raw}}}")]);
    let files = files([("pod.yaml", POD), ("fakes.yaml", &fakes)]);
    let said = files.review("-f pod.yaml --fakes fakes.yaml");
    let hint =
        "the response has the field `result`, which the API server ignores: return the message in `status`";
    let words = said.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("without explanation") && words.contains(hint), "{}", said.stdout);
}

#[test]
fn fifo_in_the_folder_of_a_record_is_an_error() {
    let files = files([("record/empty", "")]);
    let folder = files.path("record");
    let fifo = folder.join("a.jsonl");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let said = files.review("--record record");
    assert_eq!(said.status, 2, "{}", said.stdout);
    assert_eq!(said.stderr, "error: --record record: a.jsonl is not a regular file\n");
}

#[test]
fn unknown_fields_of_configurations_and_existing_objects_are_shown() {
    let hook = configuration(
        "MutatingWebhookConfiguration",
        NOWHERE,
        "  failurePolicy: Ignore\n  reinvokePolicy: Never\n",
    );
    let files = files([
        ("hook.yaml", &hook),
        ("with.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, dat: {}}"),
        ("pod.yaml", &POD.replace("image:", "imag: b, image:")),
    ]);
    let said = files.review("-f pod.yaml -c hook.yaml --with with.yaml");
    let expected = "\
warning: hook.yaml:1: the API server ignores the unknown field webhooks[0].reinvokePolicy (did you mean reinvocationPolicy?)
warning: with.yaml:1: the API server ignores the unknown field dat (did you mean data?)
";
    assert_eq!((said.status, said.stderr.as_str()), (0, expected), "{}", said.stdout);
    let warning = "\nWarning: unknown field \"spec.containers[0].imag\"\n  = help: did you mean image?\n";
    assert!(said.stdout.contains(warning), "{}", said.stdout);
}
