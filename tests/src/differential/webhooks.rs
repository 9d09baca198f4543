//! Generates random webhooks: their configurations, rules, and responses.
//!
//! A server calls validating webhooks concurrently, so the order of their rejections and warnings is not defined.
//! Therefore, at most one of them rejects and at most one of them warns.

use serde_json::{Map, Value, json};

use super::situation::{GROUP, Generator};
use super::{behavior, conditions};

/// The permissions of a webhook. In a situation, each is granted to at most one validating webhook.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leave {
    /// Whether the webhook may reject a request.
    pub(crate) refuse: bool,
    /// Whether the webhook may return warnings.
    pub(crate) warn: bool,
}

/// Returns random webhooks for a situation.
pub(crate) fn webhooks(generator: &mut Generator<'_>) -> Vec<Value> {
    let count = generator.random.weighted(&[(15, 1), (25, 2), (25, 3), (20, 4), (10, 5), (5, 7)]);
    let (refuses, warns) = (generator.random.below(count), generator.random.below(count));
    (0..count)
        .map(|place| {
            let is_mutating = generator.random.chance(65);
            webhook(
                generator,
                place,
                is_mutating,
                Leave { refuse: is_mutating || place == refuses, warn: is_mutating || place == warns },
            )
        })
        .collect()
}

fn webhook(generator: &mut Generator<'_>, place: usize, is_mutating: bool, leave: Leave) -> Value {
    let random = &mut generator.random;
    let mut webhook = Map::new();
    let mut set = |name: &str, value: Value| webhook.insert(name.to_owned(), value);
    set("name", json!(format!("w{place}")));
    set("type", json!(if is_mutating { "mutating" } else { "validating" }));
    set("configuration", json!(random.one_of(&["a", "b", "c"])));
    let mut failure_policy = random.one_of(&["", "Fail", "Ignore", "Ignore"]);
    if let Some(policy) = Some(random.one_of(&["", "Exact", "Equivalent"])).filter(|it| !it.is_empty()) {
        set("matchPolicy", json!(policy));
    }
    if is_mutating && random.chance(60) {
        set("reinvocationPolicy", json!(random.one_of(&["Never", "IfNeeded", "IfNeeded"])));
    }
    if random.chance(15) {
        set("sideEffects", json!("NoneOnDryRun"));
    }
    if random.chance(20) {
        set("timeoutSeconds", json!(random.between(8, 30)));
    }
    if random.chance(15) {
        set("path", json!(random.one_of(&["/", "/a", "/a/b", "/deep/er/path"])));
    }
    if random.chance(30) {
        let versions: [&[&str]; 5] =
            [&["v1beta1"], &["v1", "v1beta1"], &["v1beta1", "v1"], &["v2", "v1"], &["v1"]];
        set("admissionReviewVersions", json!(random.one_of(&versions)));
    }
    let behavior = behavior::behavior(generator, is_mutating, leave);
    if !leave.refuse && behavior::may_fail(&behavior) {
        failure_policy = "Ignore";
    }
    if !failure_policy.is_empty() {
        set("failurePolicy", json!(failure_policy));
    }
    set("behavior", behavior);
    if generator.random.chance(75) {
        let count = generator.random.weighted(&[(70, 1), (25, 2), (5, 3)]);
        set("rules", (0..count).map(|_| rule(generator)).collect());
    }
    if generator.random.chance(30) {
        set("namespaceSelector", generator.selector());
    }
    if generator.random.chance(35) {
        set("objectSelector", generator.selector());
    }
    if generator.may("match-conditions", 35) {
        set("matchConditions", conditions::conditions(generator));
    }
    Value::Object(webhook)
}

fn rule(generator: &mut Generator<'_>) -> Value {
    let widgets = generator.widgets;
    let random = &mut generator.random;
    let operations = match random.below(3) {
        0 => vec!["*"],
        _ => random.some_of(&["CREATE", "UPDATE", "DELETE", "CONNECT"]),
    };
    let group = random.weighted(&[
        (45, "core"),
        (if widgets { 55 } else { 3 }, "custom"),
        (15, "both"),
        (12, "all"),
        (10, "other"),
    ]);
    let groups = match group {
        "core" => json!([""]),
        "custom" => json!([GROUP]),
        "both" => json!(["", GROUP]),
        "all" => json!(["*"]),
        _ => json!(["apps", "autoscaling", "coordination.k8s.io", "policy"]),
    };
    let versions: &[&str] = match random.below(6) {
        0 | 1 => &["*"],
        2 | 3 => &["v1"],
        4 => &["v2"],
        _ => &["v1", "v2"],
    };
    let plain: &[&str] = if group == "other" {
        &["deployments", "horizontalpodautoscalers", "leases", "poddisruptionbudgets"]
    } else {
        &["configmaps", "widgets", "secrets", "pods", "namespaces", "gadgets", "serviceaccounts"]
    };
    let resources = match random.below(10) {
        0..=3 => random.some_of(plain),
        4 => {
            let mut resources = random.some_of(plain);
            let subresources = [
                "widgets/status",
                "widgets/scale",
                "deployments/status",
                "deployments/scale",
                "namespaces/status",
                "pods/eviction",
                "pods/exec",
                "pods/*",
            ];
            resources.push(random.one_of(&subresources));
            resources
        }
        5 | 6 => vec!["*"],
        7 => vec!["*/*"],
        _ => vec![random.one_of(&[
            "widgets/*",
            "configmaps/*",
            "pods/*",
            "*/status",
            "widgets/status",
            "*/scale",
        ])],
    };
    // A rule for everything would match the cluster-scoped objects of other situations.
    let scope = if group == "all" {
        "Namespaced"
    } else {
        random.one_of(&["", "", "", "*", "Namespaced", "Cluster"])
    };
    let mut rule = json!({"operations": operations, "apiGroups": groups, "apiVersions": versions, "resources": resources});
    if !scope.is_empty() {
        rule["scope"] = json!(scope);
    }
    rule
}
