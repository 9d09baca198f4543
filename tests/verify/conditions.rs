//! Tests V55, and the effect of match conditions on the static checks V48, V49, V50, V52, and V56.

use harness::verify::report::{CheckReport, Tally};
use harness::verify::{Settings, Severity};
use serde_json::{Value, json};

use super::environment::{
    TestedWebhook, configuration, entry, finds, only, passes, pods, run, verdict, verify,
};

/// Returns match conditions with the names `a`, `b`, and so on.
fn conditions(expressions: &[&str]) -> Value {
    let named = expressions.iter().zip('a'..='z');
    named.map(|(expression, name)| json!({"name": name.to_string(), "expression": expression})).collect()
}

/// Returns the configuration of a webhook for pods. The webhook is behind a Service and has these additional fields.
fn webhook(name: &str, fields: &Value) -> Value {
    let mut webhook = entry(name, "", "");
    webhook["clientConfig"] = json!({"service": {"namespace": name, "name": "webhook"}});
    for (field, value) in fields.as_object().into_iter().flatten() {
        webhook[field] = value.clone();
    }
    configuration("MutatingWebhookConfiguration", name, &[webhook])
}

async fn check(id: &str, configurations: &[Value]) -> CheckReport {
    only(run(id, configurations, pods(), Settings::default()).await)
}

/// Returns the result of a check for a webhook with these match conditions. Its Service is in `gate`.
async fn with(id: &str, expressions: &[&str]) -> CheckReport {
    check(id, &[webhook("gate", &json!({"matchConditions": conditions(expressions)}))]).await
}

#[track_caller]
fn cannot_tell(found: &CheckReport, expected: &str) {
    let (tally, reasons) = verdict(found);
    assert_eq!((tally, found.results[0].unequipped), (Tally::NotChecked, true), "{found:#?}");
    assert!(reasons.keys().all(|reason| reason.contains(expected)), "{reasons:?}");
}

#[track_caller]
fn says(found: &CheckReport, expected: &str) {
    let message = &found.findings[0].message;
    assert!(message.contains(expected), "{message}");
}

#[tokio::test]
async fn v48_evaluates_the_conditions_for_the_objects_of_the_backend() {
    finds(&with("V48", &["request.namespace != 'kube-system'"]).await, &["locks itself out"]);
    passes(&with("V48", &["request.namespace != 'gate'"]).await);
    // Controllers create pods, and nodes bind and update them.
    passes(&with("V48", &["!('system:serviceaccounts:kube-system' in request.userInfo.groups)"]).await);
    passes(&with("V48", &["!request.userInfo.username.startsWith('system:')"]).await);
    cannot_tell(
        &with("V48", &["object.spec.nodeName != ''"]).await,
        "admit cannot determine whether matchConditions exclude pods in gate",
    );
}

#[tokio::test]
async fn v48_warns_if_conditions_depend_on_unknown_fields() {
    let found = with("V48", &["!has(object.metadata.labels) || !('skip' in object.metadata.labels)"]).await;
    finds(&found, &["locks itself out"]);
    assert_eq!(found.findings[0].severity, Severity::Warning);
    says(&found, "unless matchConditions exclude them by their content");
}

#[tokio::test]
async fn v49_evaluates_the_conditions_of_each_webhook_of_a_loop() {
    let excluding = |own: &str, conditions: Value| {
        let elsewhere = json!({"matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [own]},
        ]});
        webhook(own, &json!({"namespaceSelector": elsewhere, "matchConditions": conditions}))
    };
    let mesh = || excluding("mesh", json!([]));
    let gate = |expression| excluding("gate", conditions(&[expression]));
    finds(
        &check("V49", &[gate("request.namespace != 'other'"), mesh()]).await,
        &["gate/webhook, mesh/webhook wait for each other"],
    );
    passes(&check("V49", &[gate("request.namespace != 'mesh'"), mesh()]).await);
    cannot_tell(
        &check("V49", &[gate("object.spec.nodeName == 'a'"), mesh()]).await,
        "a loop through gate/gate.example.com",
    );
}

#[tokio::test]
async fn v50_evaluates_the_conditions_for_the_users_of_the_control_plane() {
    let rules = json!([{"operations": ["*"], "apiGroups": ["", "coordination.k8s.io"], "apiVersions": ["v1"],
        "resources": ["nodes", "nodes/status", "leases"]}]);
    let of = async |expressions: &[&str]| {
        let fields = json!({"rules": rules, "matchConditions": conditions(expressions), "timeoutSeconds": 2});
        check("V50", &[webhook("gate", &fields)]).await
    };
    let nodes = "!('system:nodes' in request.userInfo.groups)";
    let found = of(&[nodes]).await;
    finds(&found, &["matches system resources"]);
    says(&found, "the webhook is called for leases in kube-system;");
    passes(&of(&[nodes, "request.userInfo.username != 'system:kube-scheduler'"]).await);
    passes(&of(&["!(request.resource.resource in ['nodes', 'leases'])"]).await);
    cannot_tell(&of(&["object.spec.renewTime != ''"]).await, "leases in kube-system");
}

#[tokio::test]
async fn v52_and_v56_look_for_a_request_for_which_all_conditions_hold() {
    let one = json!({"url": "https://one.example.com/"});
    let slow = |expressions: &[&str]| json!({"timeoutSeconds": 20, "clientConfig": one, "matchConditions": conditions(expressions)});
    let pair = |a: &[&str], b: &[&str]| [webhook("a", &slow(a)), webhook("b", &slow(b))];
    for (id, kind) in [("V52", "timeouts add up"), ("V56", "a/a.example.com and b/b.example.com overlap")] {
        let update = ["request.operation == 'UPDATE'"];
        let found = check(id, &pair(&["request.operation != 'DELETE'"], &update)).await;
        finds(&found, &[kind]);
        says(&found, "for UPDATE of pods");
        passes(&check(id, &pair(&["request.operation == 'CREATE'"], &update)).await);
        let never = [webhook("a", &slow(&["false"])), webhook("b", &slow(&[]))];
        passes(&check(id, &never).await);
        cannot_tell(&check(id, &pair(&["object.spec.x == 1"], &update)).await, "UPDATE of pods");
    }
    // Findings about two webhooks do not depend on a third one.
    let unknown = webhook("c", &slow(&["object.spec.x == 1"]));
    let three = [&pair(&[], &[])[..], &[unknown]].concat();
    finds(&check("V52", &three).await, &["timeouts add up"]);
}

#[tokio::test]
async fn v55_is_about_webhooks_with_conditions() {
    // Counted by objects, so that the shards of a corpus together report the same as one run.
    let without = (Tally::NotApplicable, [("the webhook has no matchConditions".to_owned(), 3)].into());
    assert_eq!(verdict(&with("V55", &[]).await), without);
    passes(&with("V55", &["request.namespace != 'kube-system'"]).await);
    passes(&with("V55", &["!has(object.metadata.labels) || !('skip' in object.metadata.labels)"]).await);
    let empty = only(
        run(
            "V55",
            &[webhook("gate", &json!({"matchConditions": conditions(&["nonsense"])}))],
            Vec::new(),
            Settings::default(),
        )
        .await,
    );
    finds(&empty, &["rejected expression"]);
}

#[tokio::test]
async fn v55_finds_conditions_that_the_api_server_rejects() {
    let many: Vec<&str> = ["true"; 65].to_vec();
    let many: Value = many
        .iter()
        .enumerate()
        .map(|(index, _)| json!({"name": format!("c{index}"), "expression": "request.name != 'a'"}))
        .collect();
    for (conditions, kind, field) in [
        (
            json!([{"name": "a", "expression": "true"}, {"name": "a", "expression": "true"}]),
            "rejected name",
            "webhooks[0].matchConditions[1].name: Duplicate value",
        ),
        (
            json!([{"name": "a b", "expression": "true"}]),
            "rejected name",
            "webhooks[0].matchConditions[0].name: Invalid value",
        ),
        (conditions(&[" "]), "rejected expression", "matchConditions[0].expression: Required"),
        (conditions(&["object.spec"]), "rejected expression", "must evaluate to bool"),
        (conditions(&["request.nme == 'a'"]), "rejected expression", "undefined field 'nme'"),
        (many, "rejected matchConditions", "webhooks[0].matchConditions: Too many"),
    ] {
        let configuration = webhook("gate", &json!({"matchConditions": conditions}));
        let found = only(run("V55", &[configuration], Vec::new(), Settings::default()).await);
        finds(&found, &[kind]);
        says(&found, field);
    }
}

#[tokio::test]
async fn v55_finds_conditions_that_the_rules_decide() {
    for expressions in [
        &["false"][..],
        &["request.operation == 'DELETE'"],
        &["request.kind.kind == 'Deployment' && object.spec.replicas > 1"],
        &["request.operation == 'CREATE'", "request.operation == 'UPDATE'"],
        &["has(request.subResource)"],
    ] {
        let found = with("V55", expressions).await;
        finds(&found, &["never called"]);
        assert_eq!(found.findings[0].severity, Severity::Error);
    }
    for expression in ["true", "request.resource.resource == 'pods'", "request.operation != 'DELETE'"] {
        let found = with("V55", &["request.namespace != 'a'", expression]).await;
        finds(&found, &["b is always true"]);
        assert_eq!(found.findings[0].severity, Severity::Note);
    }
    // A star matches anything, and with `matchPolicy: Equivalent` a resource is requested in other versions, too.
    let rules = |resource: &str, versions: &str| json!([{"operations": ["CREATE"], "apiGroups": ["*"], "apiVersions": [versions], "resources": [resource]}]);
    for (rules, expression) in [
        (rules("*", "*"), "request.resource.resource == 'leases' || request.resource.resource == 'pods'"),
        (rules("pods", "v2"), "request.resource.version == 'v1'"),
    ] {
        let fields = json!({"rules": rules, "matchConditions": conditions(&[expression])});
        finds(&check("V55", &[webhook("gate", &fields)]).await, &[]);
    }
}

#[tokio::test]
async fn v55_finds_conditions_without_a_value_and_the_smallest_object() {
    let labels = ["object.metadata.labels['inject'] == 'yes'"];
    let found = with("V55", &labels).await;
    finds(&found, &["a has no value for a CREATE", "a has no value for a UPDATE"]);
    says(&found, "no such key: labels; the request is rejected without a call");
    let object = found.findings[0].object.as_ref().expect("an object");
    assert!(object["metadata"].get("labels").is_none(), "{object}");

    let rules = json!([{"operations": ["CREATE", "DELETE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]);
    let fields = json!({"rules": rules, "failurePolicy": "Ignore", "matchConditions": conditions(&["object.metadata.name != ''"])});
    let found = check("V55", &[webhook("gate", &fields)]).await;
    // Before the server generates a name from generateName, there is no name.
    finds(&found, &["a has no value for a DELETE", "a has no value for a CREATE"]);
    says(&found, "the webhook is skipped without a call");

    // A condition needs no value if another condition excludes the request.
    passes(
        &with("V55", &[labels[0], "has(object.metadata.labels) && 'inject' in object.metadata.labels"]).await,
    );
}

#[tokio::test]
async fn v55_finds_conditions_that_cost_too_much() {
    let check = "authorizer.group('').resource('pods').namespace('default').check('get').allowed()";
    let all = |count: usize| format!("!({})", vec![check; count].join(" && "));
    passes(&with("V55", &[&all(1)]).await);
    let twice = format!("{check} == {check}");
    let found = with("V55", &[&twice]).await;
    finds(&found, &["near the budget"]);
    assert_eq!(found.findings[0].severity, Severity::Warning);
    says(&found, "condition a cost 7000");
    let thrice = format!("[{check}, {check}, {check}].size() == 3");
    let found = with("V55", &[&thrice]).await;
    finds(&found, &["a has no value for a CREATE", "a has no value for a UPDATE"]);
    says(&found, "actual cost limit exceeded");
    finds(&with("V55", &[twice.as_str(); 4]).await, &["over the budget of all conditions"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_is_verified_with_the_objects_that_its_conditions_match() {
    let with = |expressions: &[&str]| {
        TestedWebhook::mutating("non-idempotent").with("matchConditions", conditions(expressions))
    };
    finds(&verify("V01", vec![with(&["request.namespace == 'default'"])]).await, &["not idempotent"]);
    let found = verify("V01", vec![with(&["request.namespace == 'elsewhere'"])]).await;
    assert_eq!(verdict(&found).0, Tally::NotApplicable, "{found:#?}");
    // Evaluation errors are the subject of V55.
    let found = verify("V01", vec![with(&["object.metadata.labels['a'] == 'b'"])]).await;
    let (tally, reasons) = verdict(&found);
    assert_eq!(tally, Tally::NotApplicable, "{found:#?}");
    assert!(reasons.keys().any(|reason| reason.contains("see V55")), "{reasons:?}");
}
