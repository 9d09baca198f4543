//! Tests `admit review --cluster`, which does not connect to the webhooks of the cluster.

mod directory;

use std::io::ErrorKind;
use std::net::TcpListener;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use expect_test::expect;
use fake_webhooks::{Fake, FakeWebhook};

use super::files::{Files, POD, files};

/// The marker of a directory that `admit pull` wrote.
const MARKER: &str = "apiVersion: admit.dev/v1alpha1
kind: Pull
format: 1
context: staging
serverVersion: v1.37.0
unread: []
files: []
";

/// A policy that denies Pods without the label `team`.
const POLICY: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: team}
spec:
  matchConstraints:
    resourceRules: [{operations: [CREATE], apiGroups: [''], apiVersions: [v1], resources: [pods]}]
  validations: [{expression: \"'team' in object.metadata.labels\", message: a team label is required}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: team}
spec: {policyName: team, validationActions: [Deny]}
";

/// A Pod in a namespace that does not exist, and one that the policy allows.
const OTHER_PODS: &str = "\
apiVersion: v1
kind: Pod
metadata: {name: lost, namespace: shop}
spec: {containers: [{name: web, image: nginx}]}
---
apiVersion: v1
kind: Pod
metadata: {name: allowed, labels: {team: a}}
spec: {containers: [{name: web, image: nginx}]}
";

/// A webhook in a pulled directory.
struct Webhook<'a> {
    kind: &'a str,
    name: &'a str,
    client_config: &'a str,
    failure_policy: &'a str,
}

impl Webhook<'_> {
    fn configuration(&self) -> String {
        let Self { kind, name, client_config, failure_policy } = self;
        format!(
            "\
apiVersion: admissionregistration.k8s.io/v1
kind: {kind}WebhookConfiguration
metadata: {{name: {name}}}
webhooks:
- name: {name}.example.com
  clientConfig: {client_config}
  failurePolicy: {failure_policy}
  rules: [{{operations: ['*'], apiGroups: [''], apiVersions: [v1], resources: [pods]}}]
  sideEffects: None
  admissionReviewVersions: [v1]
"
        )
    }
}

/// Returns a pulled directory `c` with these documents, and Pods under review.
fn cluster(marker: &str, documents: &[&str]) -> Files {
    let all = documents.join("---\n");
    let default = "apiVersion: v1\nkind: Namespace\nmetadata: {name: default}\n";
    files([
        ("c/.admit-pull.yaml", marker),
        ("c/cluster/namespaces/default.yaml", default),
        ("c/cluster/objects.yaml", &if all.is_empty() { default.to_owned() } else { all }),
        ("pod.yaml", POD),
        ("pods.yaml", OTHER_PODS),
    ])
}

/// A port of this machine. A connection to it is an error of the command.
struct Unwanted(TcpListener);

impl Unwanted {
    fn listen() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Self(listener)
    }

    fn port(&self) -> u16 {
        self.0.local_addr().unwrap().port()
    }

    /// Checks that no client connected. The kernel completes a connection before it is accepted.
    #[track_caller]
    fn check(&self) {
        let error = self.0.accept().map(|(_, client)| client).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
    }
}

#[test]
fn webhooks_of_the_cluster_are_not_called_and_the_decision_depends_on_them() {
    let unwanted = Unwanted::listen();
    let port = unwanted.port();
    let service = format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: hook, namespace: demo}}\n\
         spec: {{type: ExternalName, externalName: localhost, ports: [{{port: {port}}}]}}\n"
    );
    for failure_policy in ["Fail", "Ignore"] {
        let inject = Webhook {
            kind: "Mutating",
            name: "inject",
            client_config: &format!("{{service: {{namespace: demo, name: hook, port: {port}}}}}"),
            failure_policy,
        };
        let check = Webhook {
            kind: "Validating",
            name: "check",
            client_config: &format!("{{url: 'https://127.0.0.1:{port}/'}}"),
            failure_policy,
        };
        let files = cluster(MARKER, &[&service, &inject.configuration(), &check.configuration()]);
        files.review("--cluster c -f pod.yaml").check(
            6,
            &expect![[r#"
                warning: allowed, unless one of these webhooks rejects the request or changes the object: inject.example.com, check.example.com
                 --> c/cluster/objects.yaml:10
                 --> c/cluster/objects.yaml:21
                  = request: CREATE Pod default/web (pod.yaml:1)
                  = note: a policy or a later webhook could reject the changed object
                  = why: with --cluster, admit calls a webhook of the cluster only if you pass its address
                  = help: to call the webhooks, start them on this machine and add --service demo/hook=HOST:PORT;
                          for a webhook with a URL, pass copies of their configurations with -c; keep the names, and
                          set URLs on this machine

                Webhooks
                  mutating, first round
                    ?  inject.example.com  the cluster would call it: response unknown
                  validating
                    ?  check.example.com   the cluster would call it: response unknown

                Object
                  11 changes by defaults, 3 changes by plugins, 6 changes by the server (-v shows them)

            "#]],
        );
        let report = files.report("--cluster c -f pod.yaml");
        let decision = &report["decision"];
        assert_eq!((&decision["verdict"], &decision["allowed"]), (&"conditional".into(), &false.into()));
        assert_eq!(decision["condition"]["verdict"], "admitted");
        assert_eq!(decision["condition"]["webhooks"][0]["service"], "demo/hook");
        assert_eq!(report["calls"][0]["outcome"], "unknown");
        assert_eq!(report["cluster"]["serverVersion"], "v1.37.0");
    }
    unwanted.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_with_an_address_on_the_command_line_is_called() {
    let fake = FakeWebhook::start(Fake {
        names: vec!["hook.demo.svc".to_owned()],
        behavior: serde_saphyr::from_str("{deny: {message: no}}").unwrap(),
        ..Fake::default()
    })
    .await
    .unwrap();
    let bundle = STANDARD.encode(fake.ca_bundle());
    let known = Webhook {
        kind: "Mutating",
        name: "a",
        client_config: &format!("{{service: {{namespace: demo, name: hook}}, caBundle: {bundle}}}"),
        failure_policy: "Fail",
    };
    let unknown = Webhook { name: "b", client_config: "{url: 'https://127.0.0.1:1/'}", ..known };
    let before = cluster(MARKER, &[&known.configuration(), &unknown.configuration()]);
    let after = [Webhook { name: "b", ..known }, Webhook { name: "a", ..unknown }];
    let after = cluster(MARKER, &[&after[0].configuration(), &after[1].configuration()]);
    let validating = [Webhook { kind: "Validating", ..known }, Webhook { kind: "Validating", ..unknown }];
    let validating = cluster(MARKER, &[&validating[0].configuration(), &validating[1].configuration()]);
    let line = format!("--cluster c -f pod.yaml --service demo/hook={}", fake.address());
    tokio::task::spawn_blocking(move || {
        // The webhook denies the request before the other one is called, or in parallel.
        for definite in [before, validating] {
            let said = definite.review(&line);
            assert_eq!((said.status, said.stderr.as_str()), (1, ""), "{}", said.stdout);
            assert!(
                said.stdout.starts_with("error: admission webhook \"a.example.com\" denied"),
                "{}",
                said.stdout
            );
        }
        // The webhook denies an object that the other one could have changed.
        let said = after.review(&line);
        assert_eq!((said.status, said.stderr.as_str()), (6, ""), "{}", said.stdout);
        let first = "warning: denied, unless the webhook a.example.com changes the object\n";
        assert!(said.stdout.starts_with(first), "{}", said.stdout);
        assert!(said.stdout.contains("b.example.com  "), "{}", said.stdout);
    })
    .await
    .unwrap();
}

#[test]
fn webhook_in_a_file_replaces_that_of_the_cluster() {
    let of_cluster = Webhook {
        kind: "Validating",
        name: "check",
        client_config: "{service: {namespace: demo, name: hook}}",
        failure_policy: "Fail",
    };
    let files = cluster(MARKER, &[&of_cluster.configuration()]);
    let own = Webhook { client_config: "{url: 'https://127.0.0.1:1/'}", ..of_cluster };
    std::fs::write(files.path("own.yaml"), own.configuration()).unwrap();
    for option in ["-c", "--with"] {
        let said = files.review(&format!("--cluster c -f pod.yaml {option} own.yaml"));
        assert_eq!(said.status, 3, "{}", said.stdout);
        assert!(said.stdout.contains("connection refused"), "{}", said.stdout);
    }
}

#[test]
fn denial_is_definite_unless_an_unknown_webhook_could_have_changed_the_object() {
    let webhook = |kind| Webhook {
        kind,
        name: "hook",
        client_config: "{service: {namespace: demo, name: hook}}",
        failure_policy: "Ignore",
    };
    let validating = cluster(MARKER, &[POLICY, &webhook("Validating").configuration()]);
    let report = validating.report("--cluster c -f pod.yaml");
    assert_eq!(report["decision"]["verdict"], "denied", "{report:#}");
    assert_eq!(report["decision"]["condition"], serde_json::Value::Null);

    let mutating = cluster(MARKER, &[POLICY, &webhook("Mutating").configuration()]);
    mutating.review("--cluster c -f pod.yaml").check(
        6,
        &expect![[r#"
            warning: denied, unless the webhook hook.example.com changes the object
             --> c/cluster/objects.yaml:18
              = request: CREATE Pod default/web (pod.yaml:1)
              = message: pods "web" is forbidden: ValidatingAdmissionPolicy 'team' with binding 'team' denied
                         request: a team label is required
              = note: hook.example.com could change the object so that the API server allows it
              = why: with --cluster, admit calls a webhook of the cluster only if you pass its address
              = help: to call the webhook, start it on this machine and add --service demo/hook=HOST:PORT

            Webhooks
              mutating, first round
                ?  hook.example.com  the cluster would call it: response unknown

            Policies
              validating
                x  team (binding team)  denied: a team label is required

            Object
              11 changes by defaults, 3 changes by plugins (-v shows them)

        "#]],
    );
    let condition = mutating.report("--cluster c -f pod.yaml")["decision"]["condition"].take();
    assert_eq!(condition["verdict"], "denied");

    let said = mutating.review("--cluster c -f pods.yaml");
    assert_eq!((said.status, said.stderr.as_str()), (1, ""), "a denial has the lowest status");
    let expected =
        "Error from server (NotFound): error when creating \"pods.yaml\": namespaces \"shop\" not found\n";
    assert!(said.stdout.starts_with(expected), "{}", said.stdout);
    assert!(said.stdout.ends_with("\n0 admitted, 1 denied, 1 conditional\n"), "{}", said.stdout);
}

#[test]
fn secret_is_masked_in_the_message_of_the_condition() {
    let policy = POLICY.replace("[pods]", "[secrets]").replace(
        "[{expression: \"'team' in object.metadata.labels\", message: a team label is required}]",
        "[{expression: 'false', messageExpression: '\"not \" + string(object.data.password)'}]",
    );
    let hook = Webhook {
        kind: "Mutating",
        name: "hook",
        client_config: "{service: {namespace: demo, name: hook}}",
        failure_policy: "Fail",
    };
    let files = cluster(MARKER, &[&policy, &hook.configuration().replace("[pods]", "[secrets]")]);
    let secret =
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: hunter2hunter2}\n";
    std::fs::write(files.path("secret.yaml"), secret).unwrap();
    let encoded = STANDARD.encode("hunter2hunter2");
    for (option, is_shown) in [("", false), ("--show-secrets", true)] {
        let said = files.review(&format!("--cluster c -f secret.yaml -o json {option}"));
        assert_eq!((said.status, said.stdout.contains(&encoded)), (6, is_shown), "{}", said.stdout);
    }
}

#[test]
fn namespace_exists_only_if_the_cluster_or_an_earlier_request_has_it() {
    let limits = "apiVersion: v1\nkind: LimitRange\nmetadata: {name: l, namespace: shop}\n\
                  spec: {limits: [{type: Container, default: {memory: 64Mi}}]}\n";
    // An object in the namespace does not create it.
    let files = cluster(MARKER, &[limits, POLICY]);
    std::fs::write(files.path("shop.yaml"), "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n")
        .unwrap();
    let lost = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: lost, namespace: shop}\n";
    std::fs::write(files.path("lost.yaml"), lost).unwrap();
    let said = files.review("--cluster c -f lost.yaml");
    assert_eq!(said.status, 1, "{}", said.stdout);
    assert!(said.stdout.contains("namespaces \"shop\" not found\n"), "{}", said.stdout);
    // Objects cannot exist in it either.
    let said = files.review("--cluster c -f lost.yaml --operation delete");
    assert_eq!(said.status, 1, "{}", said.stdout);
    assert!(said.stdout.contains("configmaps \"lost\" not found\n"), "{}", said.stdout);
    for line in ["--cluster c -f shop.yaml lost.yaml", "--cluster c --with shop.yaml -f lost.yaml"] {
        let said = files.review(line);
        assert_eq!((said.status, said.stderr.as_str()), (0, ""), "{}", said.stdout);
        assert!(said.stdout.contains("configmap/lost created\n"), "{}", said.stdout);
    }
}

#[test]
fn object_that_the_cluster_has_is_updated() {
    let limits = "apiVersion: v1\nkind: LimitRange\nmetadata: {name: l, namespace: default}\n\
                  spec: {limits: [{type: Container, default: {memory: 64Mi}}]}\n";
    let configuration = Webhook {
        kind: "Validating",
        name: "hook",
        client_config: "{service: {namespace: demo, name: hook}}",
        failure_policy: "Fail",
    };
    let mut configuration = configuration.configuration();
    let files = cluster(MARKER, &[limits, POLICY, &configuration]);
    // The API server requires the resourceVersion for an update of this kind.
    configuration = configuration.replace("failurePolicy: Fail", "failurePolicy: Ignore");
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: default, labels: {a: b}}\n";
    let objects = [limits.replace("64Mi", "32Mi"), configuration, namespace.to_owned()].join("---\n");
    std::fs::write(files.path("objects.yaml"), objects).unwrap();
    let said = files.review("--cluster c -f objects.yaml");
    assert_eq!((said.status, said.stderr.as_str()), (0, ""), "{}", said.stdout);
    let note = "note: the object exists in the cluster, so the request is an update\n";
    for object in [
        "limitrange/l",
        "validatingwebhookconfiguration.admissionregistration.k8s.io/hook",
        "namespace/default",
    ] {
        assert!(said.stdout.contains(&format!("{object} replaced\n{note}")), "{}", said.stdout);
    }
    let said = files.review("--cluster c -f objects.yaml --operation create");
    assert!(said.stdout.contains("limitranges \"l\" already exists\n"), "{}", said.stdout);
}

#[test]
fn conversion_webhook_of_the_cluster_is_not_called() {
    let unwanted = Unwanted::listen();
    let version = |name: &str, storage: bool| {
        format!(
            "{{name: {name}, served: true, storage: {storage}, schema: {{openAPIV3Schema: {{type: object}}}}}}"
        )
    };
    let definition = format!(
        "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: widgets.example.com}}
spec:
  group: example.com
  scope: Cluster
  names: {{kind: Widget, plural: widgets}}
  conversion:
    strategy: Webhook
    webhook: {{conversionReviewVersions: [v1], clientConfig: {{url: 'https://127.0.0.1:{}/'}}}}
  versions: [{}, {}]
",
        unwanted.port(),
        version("v1", true),
        version("v2", false)
    );
    let files = cluster(MARKER, &[&definition]);
    std::fs::write(files.path("w.yaml"), "{apiVersion: example.com/v2, kind: Widget, metadata: {name: w}}")
        .unwrap();
    let said = files.review("--cluster c -f w.yaml");
    unwanted.check();
    assert_eq!((said.status, said.stderr.as_str()), (5, ""), "{}", said.stdout);
    assert!(said.stdout.contains("by a webhook that admit does not call offline"), "{}", said.stdout);
}

#[test]
fn list_of_a_record_shows_the_webhooks_that_were_not_called() {
    let check = Webhook {
        kind: "Validating",
        name: "check",
        client_config: "{service: {namespace: demo, name: hook}}",
        failure_policy: "Fail",
    };
    let files = cluster(MARKER, &[&check.configuration()]);
    let mut report = files.report("--cluster c -f pod.yaml");
    report["recorded"] =
        serde_json::json!({"time": "2026-01-01T00:00:00Z", "verb": "create", "auditID": "a"});
    std::fs::write(files.path("record.jsonl"), format!("{report}\n")).unwrap();
    let said = files.review("--record record.jsonl");
    assert!(said.stdout.contains("  conditional on check.example.com  "), "{}", said.stdout);
    let said = files.review("--record record.jsonl 1");
    assert!(
        said.stdout.starts_with("warning: allowed, unless the webhook check.example.com"),
        "{}",
        said.stdout
    );
}

#[test]
fn decision_after_a_conditional_one_is_not_certain() {
    let namespaces = Webhook {
        kind: "Mutating",
        name: "hook",
        client_config: "{service: {namespace: demo, name: hook}}",
        failure_policy: "Fail",
    };
    let configuration = namespaces.configuration().replace("[pods]", "[namespaces]");
    let policy = POLICY.replace("[pods]", "[namespaces]");
    let files = cluster(MARKER, &[&policy, &configuration]);
    let shop = "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {a: b}}}";
    std::fs::write(files.path("shop.yaml"), shop).unwrap();
    let note =
        "note: this decision assumes that webhooks with unknown responses allowed the earlier requests";
    let said = files.review("--cluster c -f shop.yaml pods.yaml");
    assert_eq!(said.stdout.matches(note).count(), 2, "{}", said.stdout);
    assert!(said.stdout.contains("namespaces \"shop\" not found"), "{}", said.stdout);
    assert_eq!(said.status, 6, "{}", said.stdout);
    // A dry run stores nothing, whatever the webhook responds.
    let said = files.review("--cluster c -f shop.yaml pods.yaml --dry-run=server");
    assert_eq!((said.status, said.stdout.matches(note).count()), (1, 0), "{}", said.stdout);
}

#[test]
fn object_that_was_exported_from_the_cluster_can_be_reviewed() {
    let limits =
        "{apiVersion: v1, kind: LimitRange, metadata: {name: l, namespace: default}, spec: {limits: []}}\n";
    let files = cluster(MARKER, &[limits]);
    let of_cluster = "uid: 0d4a0c3e-9f2b-4a7e-8c1d-1a2b3c4d5e6f, resourceVersion: '7'";
    for (name, operation) in [("l", "replaced"), ("new", "created")] {
        let exported =
            limits.replace("{name: l,", &format!("{{name: {name}, labels: {{a: b}}, {of_cluster},"));
        std::fs::write(files.path("exported.yaml"), exported).unwrap();
        let said = files.review("--cluster c -f exported.yaml");
        let expected = format!("limitrange/{name} {operation}\n");
        assert!(said.stdout.starts_with(&expected), "{}", said.stdout);
        assert_eq!(said.status, 0, "{}", said.stdout);
    }
}
