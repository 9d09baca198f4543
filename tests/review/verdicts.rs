//! Tests the human-readable output about a request and about each webhook.

use expect_test::expect;
use serde_json::{Value, json};

use super::files::{NOWHERE, POD, configuration, fakes, files};

#[test]
fn a_mutation_is_shown_with_who_made_it() {
    let fakes = fakes(&[
        "name: sidecar, type: mutating, behavior: {sidecar: {name: proxy, image: envoy}}",
        "name: policy, type: validating, behavior: allow",
    ]);
    let files = files([("pod.yaml", POD), ("fakes.yaml", &fakes)]);
    files.review("-f pod.yaml --fakes fakes.yaml").check(
        0,
        &expect![[r#"
            pod/web created

            Webhooks
              mutating, first round
                ok sidecar.fakes.local  N ms  allowed, changed spec.containers[1]
              mutating, second round
                -  sidecar.fakes.local  not called: its reinvocationPolicy is Never
              validating
                ok policy.fakes.local   N ms  allowed

            Object
              sidecar.fakes.local
                + spec.containers[1]:
                +   image: envoy
                +   imagePullPolicy: Always
                +   name: proxy
                +   resources: {}
                +   terminationMessagePath: /dev/termination-log
                +   terminationMessagePolicy: File
              11 changes by defaults, 3 changes by plugins, 6 changes by the server (-v shows them)

        "#]],
    );
}

#[test]
fn invalid_field_is_blamed_on_the_webhook_that_set_it() {
    let append =
        "patch: {operations: [{op: add, path: /spec/containers/-, value: {name: proxy, image: envoy}}]}";
    let fakes = fakes(&[
        &format!("name: a, type: mutating, reinvocationPolicy: IfNeeded, behavior: {{{append}}}"),
        "name: b, type: mutating, behavior: {mutate: [{set: {/metadata/labels/b: c}}]}",
    ]);
    let files = files([("pod.yaml", POD), ("fakes.yaml", &fakes)]);
    files.review("-f pod.yaml --fakes fakes.yaml").check(
        1,
        &expect![[r#"
        error: Pod "web" is invalid: spec.containers[2].name: Duplicate value: "proxy"
          = webhook: admit-fakes/a.fakes.local
          = request: CREATE Pod default/web (pod.yaml:1)
          = why: the webhook set spec.containers[2].name to an invalid value
          = note: the webhook added spec.containers[1] in the first round and spec.containers[2] in the
                  second: it is not idempotent
          = help: add the item only if the list does not contain it

        Webhooks
          mutating, first round
            ok a.fakes.local  N ms  allowed, changed spec.containers[1]
            ok b.fakes.local  N ms  allowed, changed metadata.labels.b
          mutating, second round
            ok a.fakes.local  N ms  allowed, changed spec.containers[2]
            -  b.fakes.local  not called: its reinvocationPolicy is Never

        Object
          a.fakes.local
            + spec.containers[1]:
            +   image: envoy
            +   imagePullPolicy: Always
            +   name: proxy
            +   resources: {}
            +   terminationMessagePath: /dev/termination-log
            +   terminationMessagePolicy: File
          b.fakes.local
            + metadata.labels.b: "c"
          a.fakes.local, second round
            + spec.containers[2]:
            +   image: envoy
            +   imagePullPolicy: Always
            +   name: proxy
            +   resources: {}
            +   terminationMessagePath: /dev/termination-log
            +   terminationMessagePolicy: File
          11 changes by defaults, 3 changes by plugins (-v shows them)

    "#]],
    );
}

#[test]
fn a_denial_has_the_words_of_the_api_server_and_advice() {
    let fakes = fakes(&[
        "name: first, type: mutating, behavior: {deny: {message: not today}}",
        "name: second, type: mutating, behavior: allow",
        "name: third, type: validating, behavior: allow",
    ]);
    let files = files([("pod.yaml", POD), ("fakes.yaml", &fakes)]);
    files.review("-f pod.yaml --fakes fakes.yaml -n shop").check(
        1,
        &expect![[r#"
        error: admission webhook "first.fakes.local" denied the request: not today
          = webhook: admit-fakes/first.fakes.local
          = request: CREATE Pod shop/web (pod.yaml:1)
          = status: 400
          = why: The request would also have failed with failurePolicy Ignore.
          = help: the webhook rejects such requests; change the object, or read the documentation and the
                  log of the webhook
          = docs: admit explain-error MESSAGE
        note: namespace "shop" was created for this review

        Webhooks
          mutating, first round
            x  first.fakes.local   N ms  denied: not today
            -  second.fakes.local  not reached
          validating
            -  third.fakes.local   not reached

        Object
          11 changes by defaults, 3 changes by plugins (-v shows them)

    "#]],
    );
}

#[test]
fn a_webhook_that_cannot_be_reached_fails_open_or_decides() {
    for (policy, status, expected) in [
        (
            "Ignore",
            0,
            expect![[r#"
                pod/web created

                Webhooks
                  validating
                    !  hook.example.com  N ms  failed open: failed to call webhook: Post "https://127.0.0.1:PORT/?timeout=10s": dial tcp 127.0.0.1:PORT: connect: connection refused
                        no process listens on the port; start the webhook, or correct the port

                Object
                  11 changes by defaults, 3 changes by plugins, 6 changes by the server (-v shows them)

            "#]],
        ),
        (
            "Fail",
            3,
            expect![[r#"
                error: Internal error occurred: failed calling webhook "hook.example.com": failed to call webhook: Post "https://127.0.0.1:PORT/?timeout=10s": dial tcp 127.0.0.1:PORT: connect: connection refused
                 --> hooks.yaml:5
                  = webhook: hooks/hook.example.com
                  = request: CREATE Pod default/web (pod.yaml:1)
                  = status: 500 InternalError
                  = why: Nothing listens on the port that the API server connected to. failurePolicy is Fail: the
                         request failed. With Ignore, the request would have continued without the webhook.
                  = help: no process listens on the port; start the webhook, or correct the port
                  = docs: admit explain-error MESSAGE

                Webhooks
                  validating
                    x  hook.example.com  N ms  failed: failed to call webhook: Post "https://127.0.0.1:PORT/?timeout=10s": dial tcp 127.0.0.1:PORT: connect: connection refused

                Object
                  11 changes by defaults (-v shows them)

            "#]],
        ),
    ] {
        let configuration =
            configuration("ValidatingWebhookConfiguration", NOWHERE, &format!("  failurePolicy: {policy}\n"));
        let files = files([("pod.yaml", POD), ("hooks.yaml", &configuration)]);
        files.review("-f pod.yaml -c hooks.yaml").check(status, &expected);
    }
}

#[test]
fn dry_run_calls_only_webhooks_without_side_effects() {
    let promising = fakes(&["name: hook, type: validating, behavior: allow, sideEffects: NoneOnDryRun"]);
    let effects = configuration("ValidatingWebhookConfiguration", NOWHERE, "")
        .replace("sideEffects: None", "sideEffects: Some");
    let files = files([("pod.yaml", POD), ("hooks.yaml", &effects), ("fakes.yaml", &promising)]);
    files.review("-f pod.yaml --fakes fakes.yaml --dry-run=server").check(
        0,
        &expect![[r#"
            pod/web created (server dry run)

            Webhooks
              validating
                ok hook.fakes.local  N ms  allowed

            Object
              11 changes by defaults, 3 changes by plugins, 5 changes by the server (-v shows them)

        "#]],
    );
    let report = files.report("-f pod.yaml --fakes fakes.yaml --dry-run=server");
    assert_eq!(report["request"]["dryRun"], true);
    // The v1 API rejects webhooks whose `sideEffects` value does not support dry runs.
    let said = files.review("-f pod.yaml -c hooks.yaml --dry-run=server");
    assert!(
        said.stderr.contains("hooks.yaml:1: ") && said.stderr.contains("webhooks[0].sideEffects"),
        "{}",
        said.stderr
    );
    assert_eq!(said.status, 2);
}

#[test]
fn a_webhook_that_is_not_called_says_why() {
    let fakes = fakes(&[
        "name: labeled, type: mutating, behavior: allow, objectSelector: {matchLabels: {app: db}}",
        "name: elsewhere, type: validating, behavior: allow, namespaceSelector: {matchLabels: {tier: gold}}, objectSelector: {matchLabels: {app: db}}",
    ]);
    let namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {tier: bronze, admit-fakes: enabled}}}";
    let files = files([("pod.yaml", POD), ("fakes.yaml", &fakes), ("namespaces/shop.yaml", namespace)]);
    let line = "-f pod.yaml --fakes fakes.yaml --with namespaces -n shop";
    files.review(&format!("{line} --explain")).check(0, &expect![[r#"
        pod/web created

        Webhooks
          mutating, first round
            -  labeled.fakes.local    not called: its objectSelector requires app=db; the object has the labels {"app":"web"}
          validating
            -  elsewhere.fakes.local  not called: its namespaceSelector requires tier=gold; the namespace "shop" has the labels {"admit-fakes":"enabled","kubernetes.io/metadata.name":"shop","tier":"bronze"}
                objectSelector requires app=db; the object has the labels {"app":"web"}

        Object
          11 changes by defaults, 3 changes by plugins, 6 changes by the server (-v shows them)

    "#]]);
    let report = files.report(line);
    assert_eq!(report["webhooks"][1]["skipped"][0]["test"], "namespaceSelector");
    assert_eq!(report["webhooks"][1]["considered"], true);
    assert_eq!(report["calls"], Value::Array(Vec::new()));
}

#[test]
fn resource_of_a_rule_that_is_misspelled_is_pointed_out() {
    let configuration = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: policy}
webhooks:
- name: policy.example.com
  clientConfig: {url: 'https://127.0.0.1:1/'}
  admissionReviewVersions: [v1]
  sideEffects: None
  rules:
  - {apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pod]}
  - {apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [services]}
";
    let files = files([("pod.yaml", POD), ("webhooks.yaml", configuration)]);
    let output = files.review("-f pod.yaml -c webhooks.yaml --explain");
    output.check(
        0,
        &expect![[r#"
        pod/web created

        Webhooks
          validating
            -  policy.example.com  not called: none of its rules matches the request
                rules[0].resources has ["pod"], but the request has "pods" (is the resource name misspelled?)
                rules[1].resources has ["services"], but the request has "pods"

        Object
          11 changes by defaults, 3 changes by plugins, 6 changes by the server (-v shows them)

    "#]],
    );
}

#[test]
fn conditions_are_shown_with_their_values_and_costs() {
    let fakes = fakes(&[
        "name: asked, type: validating, behavior: allow, matchConditions: [{name: web, expression: \"object.metadata.labels.app == 'web'\"}]",
        "name: excluded, type: validating, behavior: allow, matchConditions: [{name: error, expression: object.none == 1}, {name: never, expression: 'false'}]",
        "name: skipped, type: validating, behavior: allow, failurePolicy: Ignore, matchConditions: [{name: error, expression: object.none == 1}]",
    ]);
    let files = files([("pod.yaml", POD), ("fakes.yaml", &fakes)]);
    files.review("-f pod.yaml --fakes fakes.yaml --explain").check(
        0,
        &expect![[r#"
            pod/web created

            Webhooks
              validating
                ok asked.fakes.local     N ms  allowed
                    condition web (cost 5): true
                -  excluded.fakes.local  not called: its match condition "never" is false
                    condition error (cost 3): error: expression 'object.none == 1' resulted in error: no such key: none
                    condition never (cost 0): false
                -  skipped.fakes.local   not called: its matchConditions cannot be evaluated, and its failurePolicy is Ignore: expression 'object.none == 1' resulted in error: no such key: none
                    condition error (cost 3): error: expression 'object.none == 1' resulted in error: no such key: none

            Object
              11 changes by defaults, 3 changes by plugins, 6 changes by the server (-v shows them)

        "#]],
    );
    let report = files.report("-f pod.yaml --fakes fakes.yaml --explain");
    let excluded = &report["webhooks"][1];
    assert_eq!(excluded["skipped"][0]["test"], "matchConditions");
    assert_eq!(excluded["conditions"][1]["value"], false);
    assert_eq!(excluded["conditions"][0]["cost"], 3);
}

#[test]
fn second_round_is_marked_as_reinvocation() {
    let fakes = fakes(&[
        "name: env, type: mutating, behavior: {container-env: {name: A, value: b}}, reinvocationPolicy: IfNeeded",
        "name: sidecar, type: mutating, behavior: {sidecar: {name: proxy, image: envoy}}",
    ]);
    let files = files([("pod.yaml", POD), ("fakes.yaml", &fakes)]);
    files.review("-f pod.yaml --fakes fakes.yaml").check(
        0,
        &expect![[r#"
            pod/web created

            Webhooks
              mutating, first round
                ok env.fakes.local      N ms  allowed, changed spec.containers[0].env
                ok sidecar.fakes.local  N ms  allowed, changed spec.containers[1]
              mutating, second round
                ok env.fakes.local      N ms  allowed, changed spec.containers[1].env
                -  sidecar.fakes.local  not called: its reinvocationPolicy is Never

            Object
              env.fakes.local
                + spec.containers[0].env:
                +   - name: A
                +     value: b
              sidecar.fakes.local
                + spec.containers[1]:
                +   image: envoy
                +   imagePullPolicy: Always
                +   name: proxy
                +   resources: {}
                +   terminationMessagePath: /dev/termination-log
                +   terminationMessagePolicy: File
              env.fakes.local, second round
                + spec.containers[1].env:
                +   - name: A
                +     value: b
              11 changes by defaults, 3 changes by plugins, 6 changes by the server (-v shows them)

        "#]],
    );
}

#[test]
fn deletion_shows_the_old_object() {
    let fakes = fakes(&[
        "name: policy, type: validating, behavior: deny, objectSelector: {matchLabels: {keep: 'yes'}}",
    ]);
    let old = POD.replace("app: web", "keep: 'yes'");
    let files = files([("pod.yaml", POD), ("old.yaml", &old), ("fakes.yaml", &fakes)]);
    files.review("-f pod.yaml --old old.yaml --operation delete --fakes fakes.yaml").check(
        1,
        &expect![[r#"
            error: admission webhook "policy.fakes.local" denied the request without explanation
              = webhook: admit-fakes/policy.fakes.local
              = request: DELETE Pod default/web (pod.yaml:1)
              = status: 400
              = why: The webhook responded with allowed false, or without allowed, and without a reason. The
                     request would also have failed with failurePolicy Ignore.
              = help: return the reason of the denial as `response.status.message`
              = docs: admit explain-error MESSAGE

            Webhooks
              validating
                x  policy.fakes.local  N ms  denied without explanation

        "#]],
    );
    files.review("-f pod.yaml --operation delete --fakes fakes.yaml").check(
        0,
        &expect![[r#"
            pod "web" deleted from default namespace

            Webhooks
              validating
                -  policy.fakes.local  not called: its objectSelector requires keep=yes; the old object has the labels {"app":"web"}

        "#]],
    );
}

#[test]
fn the_values_of_a_secret_are_masked_unless_they_are_asked_for() {
    let fakes = fakes(&[
        "name: hook, type: mutating, behavior: {patch: {operations: [{op: replace, path: /data/a, value: bmV3}, {op: add, path: /data/b, value: bmV3}]}}",
    ]);
    let secret = "{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {a: old}}";
    let files = files([("secret.yaml", secret), ("fakes.yaml", &fakes)]);
    let said = files.review("-f secret.yaml --fakes fakes.yaml -v");
    assert!(!said.stdout.contains("old") && !said.stdout.contains("b2xk"), "{}", said.stdout);
    files.review("-f secret.yaml --fakes fakes.yaml").check(
        0,
        &expect![[r#"
            secret/s created

            Webhooks
              mutating, first round
                ok hook.fakes.local  N ms  allowed, changed data.a, data.b
              mutating, second round
                -  hook.fakes.local  not called: its reinvocationPolicy is Never

            Object
              hook.fakes.local
                ~ data.a: "*** (before)" -> "*** (after)"
                + data.b: "***"
              3 changes by defaults, 3 changes by the server (-v shows them)

        "#]],
    );
    let line = "-f secret.yaml --fakes fakes.yaml --explain";
    for format in ["json", "yaml"] {
        let said = files.review(&format!("{line} -o {format}")).stdout;
        for value in ["old", "b2xk", "bmV3", "eHg"] {
            assert!(!said.contains(value), "{value} in {said}");
        }
    }
    let report = files.report(line);
    assert_eq!(report["object"]["data"], json!({"a": "Kioq", "b": "Kioq"}));
    assert_eq!(report["calls"][0]["patch"][1], json!({"op": "add", "path": "/data/b", "value": "Kioq"}));
    let shown = files.report(&format!("{line} --show-secrets"));
    assert_eq!(shown["object"]["data"]["b"], "bmV3");
    let text = files.review(&format!("{line} --show-secrets")).stdout;
    assert!(text.contains("+ data.b: \"bmV3\""), "{text}");
}

#[test]
fn terminal_escapes_of_a_webhook_are_removed() {
    let steering = r#""\e[2J\nError: all is well \u202e\u009b31m""#;
    let mutating = format!(
        "name: first, type: mutating, behavior: {{patch: {{operations: [{{op: add, path: /metadata/annotations, value: \
         {{a: {steering}}}}}]}}}}"
    );
    let warning = format!("name: second, type: validating, behavior: {{allow: {{warnings: [{steering}]}}}}");
    let denying = format!("name: third, type: validating, behavior: {{deny: {{message: {steering}}}}}");
    let annotated = format!(
        "name: fourth, type: validating, behavior: {{allow: {{auditAnnotations: {{why: {steering}}}}}}}"
    );
    let fakes = fakes(&[&mutating, &warning, &denying, &annotated]);
    let files = files([("pod.yaml", POD), ("fakes.yaml", &fakes)]);
    let said = files.review("-f pod.yaml --fakes fakes.yaml -v --explain");
    assert_eq!(said.status, 1, "{}", said.stderr);
    for quoted in ["denied: ", "why: ", "annotations"] {
        assert!(said.stdout.contains(quoted), "{quoted} in {}", said.stdout);
    }
    assert!(said.stdout.contains(r"\u{1b}[2J\nError: all is well \u{202e}\u{9b}31m"), "{}", said.stdout);
    let steers = |letter: char| (letter.is_control() && letter != '\n') || letter == '\u{202e}';
    assert!(!said.stdout.contains(steers), "{:?}", said.stdout);
    assert!(!said.stdout.lines().any(|line| line.starts_with("Error: all")), "{}", said.stdout);
}

#[test]
fn a_string_that_yaml_reads_as_a_boolean_is_to_be_quoted() {
    let settings = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {debug: yes}}\n";
    let namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: default}}\n";
    let files = files([("settings.yaml", settings), ("namespace.yaml", namespace)]);
    let said = files.review("-f settings.yaml --with namespace.yaml");
    let help = "  = help: quote the value: YAML reads values such as `y`, `on`, or `true` without quotes as a boolean\n";
    assert!(said.stdout.contains("cannot unmarshal bool") && said.stdout.contains(help), "{}", said.stdout);
}
