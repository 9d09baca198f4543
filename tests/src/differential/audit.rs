//! Generates random audit policies, and requests to log.
//!
//! The requests are those of other situations, reads, and requests that never reach admission.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::situation::Situation;
use crate::audit_events::with_barrier;
use crate::random::Random;

/// The number of consecutive situations that share a policy, and therefore a server.
///
/// The last of them has its own policy, which is invalid, so the server does not start.
const TOGETHER: u64 = 25;
/// The offset in the sequence of random numbers that separates the policies from the situations.
const POLICIES: u64 = 1 << 40;

impl Situation {
    /// Creates a situation about the audit log from `seed` and the situation's `number`.
    ///
    /// The situation does not have the `excluded` features.
    pub fn of_audit(seed: u64, number: u64, excluded: &BTreeSet<String>) -> Self {
        let mut situation = Self::new(seed, number, excluded);
        let mut random = Random::new(seed, POLICIES + number);
        let policy = if number % TOGETHER == TOGETHER - 1 {
            situation.case = json!({"version": 1, "requests": [{"verb": "create", "name": "x"}]});
            let mut policy = policy(&mut random);
            spoil(&mut random, &mut policy);
            policy
        } else {
            add_requests(&mut random, &mut situation.case);
            policy(&mut Random::new(seed, 2 * POLICIES + number / TOGETHER))
        };
        situation.case["plugins"] = json!({"auditPolicy": policy.to_string()});
        situation.case["managedFields"] = json!(true);
        situation
    }
}

const LEVELS: [(usize, &str); 4] = [(15, "None"), (20, "Metadata"), (30, "Request"), (35, "RequestResponse")];
const STAGES: [&str; 4] = ["RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"];
const VERBS: [&str; 9] =
    ["create", "update", "patch", "delete", "deletecollection", "get", "list", "watch", "connect"];

/// Returns a policy whose first rule logs the barrier request.
fn policy(random: &mut Random) -> Value {
    let count = random.between(1, 6);
    let mut rules: Vec<Value> = (0..count).map(|_| rule(random)).collect();
    if random.chance(80) {
        rules.push(json!({"level": random.weighted(&LEVELS)}));
    }
    with_barrier(&mut rules);
    let mut policy = json!({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules});
    add_stages(random, &mut policy, 50);
    if random.chance(30) {
        policy["omitManagedFields"] = json!(random.chance(70));
    }
    policy
}

fn add_stages(random: &mut Random, to: &mut Value, percent: usize) {
    if random.chance(percent) {
        // Without the last stage the tests would wait forever.
        let stages = if percent == 50 { &STAGES[..2] } else { &STAGES[..] };
        to["omitStages"] = json!(random.some_of(stages));
    }
}

fn rule(random: &mut Random) -> Value {
    let mut rule = json!({"level": random.weighted(&LEVELS)});
    if random.chance(20) {
        rule["users"] = json!(random.some_of(&["admin", "jane", "system:anonymous", "a b"]));
    }
    if random.chance(20) {
        rule["userGroups"] =
            json!(random.some_of(&["system:masters", "devs", "system:authenticated", "system:nodes"]));
    }
    if random.chance(40) {
        rule["verbs"] = json!(random.some_of(&VERBS));
    }
    add_stages(random, &mut rule, 20);
    if random.chance(25) {
        rule["omitManagedFields"] = json!(random.chance(50));
    }
    if random.chance(20) {
        rule["nonResourceURLs"] =
            json!(random.some_of(&["/version", "/api*", "/healthz*", "*", "/api/v1", "/nothing/*"]));
        return rule;
    }
    if random.chance(70) {
        let count = random.between(1, 3);
        rule["resources"] = (0..count).map(|_| resources(random)).collect();
    }
    if random.chance(15) {
        rule["namespaces"] = json!(random.some_of(&["", "default", "kube-system"]));
    }
    rule
}

fn resources(random: &mut Random) -> Value {
    let group = random.weighted(&[(50, ""), (15, "*"), (15, "apps"), (10, "autoscaling"), (10, "policy")]);
    let mut resources = json!({});
    if !group.is_empty() || random.chance(50) {
        resources["group"] = json!(group);
    }
    if random.chance(80) {
        resources["resources"] = json!(random.some_of(&[
            "configmaps",
            "pods",
            "secrets",
            "*",
            "pods/*",
            "*/status",
            "*/scale",
            "deployments",
            "namespaces",
            "deployments/status",
            "pods/eviction",
            "widgets",
        ]));
        if random.chance(25) {
            resources["resourceNames"] = json!(random.some_of(&["x", "y", "nobody", ""]));
        }
    }
    resources
}

/// Makes a policy invalid, so that the server does not start.
fn spoil(random: &mut Random, policy: &mut Value) {
    let last = policy["rules"].as_array().map_or(0, Vec::len) - 1;
    for _ in 0..random.weighted(&[(70, 1), (30, 2)]) {
        let fields = match random.below(12) {
            0 => json!({"level": random.one_of(&["metadata", "", "All"])}),
            1 => json!({"omitStages": [random.one_of(&["Received", "", "requestReceived"])]}),
            2 => json!({"nonResourceURLs": [random.one_of(&["version", "/a*b", "", "**", "/**", "/a*/"])]}),
            3 => json!({"nonResourceURLs": ["/version"], "namespaces": [""]}),
            4 => json!({"nonResourceURLs": ["/version"], "resources": [{"group": ""}]}),
            5 => json!({"resources": [{"group": random.one_of(&["Apps", "a/b", "-", "a_b"])}]}),
            6 => json!({"resources": [{"group": "", "resourceNames": ["x"]}]}),
            7 => json!({"level": null}),
            8 => {
                policy["rules"] = random.one_of(&[json!([]), json!(null)]);
                return;
            }
            9 => {
                policy["kind"] = json!(random.one_of(&["Event", "Nothing", "PolicyList"]));
                continue;
            }
            10 => {
                let version = random.one_of(&["audit.k8s.io/v1beta1", "v1", "", "audit.k8s.io/v2"]);
                policy["apiVersion"] = json!(version);
                continue;
            }
            _ => {
                policy["omitStages"] = json!([random.one_of(&["Complete", "", "PANIC"])]);
                continue;
            }
        };
        let mut rule = json!({"level": "Metadata"});
        if let (Some(rule), Value::Object(fields)) = (rule.as_object_mut(), fields) {
            rule.extend(fields);
        }
        policy["rules"][last] = rule;
    }
}

/// Adds requests for which webhooks are not called.
fn add_requests(random: &mut Random, case: &mut Value) {
    let Some(requests) = case["requests"].as_array_mut() else { return };
    for _ in 0..random.between(1, 4) {
        let request = request(random);
        requests.insert(random.below(requests.len() + 1), request);
    }
    if random.chance(40) {
        let place = random.below(requests.len() + 1);
        requests.splice(place..place, in_default(random));
    }
}

fn request(random: &mut Random) -> Value {
    let name = random.one_of(&["x", "y", "nobody"]);
    let resource = random.one_of(&["configmaps", "secrets", "apps/v1/deployments", "pods"]);
    let mut request = match random.below(12) {
        0..=2 => json!({"verb": "get", "resource": resource, "name": name}),
        3 | 4 => json!({"verb": "get", "resource": resource}),
        5 => json!({"verb": "get", "resource": resource, "query": {"limit": "1", "labelSelector": "env"}}),
        6 => json!({"verb": "watch", "resource": resource}),
        7 => {
            let (accept, of_one) = random.one_of(&[
                ("application/json;as=Table;v=v1;g=meta.k8s.io", true),
                ("application/json;as=Table;v=v1;g=meta.k8s.io", false),
                ("application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", true),
                ("application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json", false),
                ("text/html", true),
                ("text/html, */*", true),
            ]);
            let mut request = json!({"verb": "get", "resource": resource, "headers": {"Accept": accept}});
            if of_one {
                request["name"] = json!(name);
            }
            request
        }
        8 => {
            // The contents of these documents do not matter here.
            let (verb, path) = random.one_of(&[
                ("delete", "/version"),
                ("get", "/api/v2"),
                ("create", "/api/v1"),
                ("get", "/healthz"),
                ("delete", "/healthz"),
                ("get", "/nothing/at/all"),
                ("update", "/apis/apps/v1"),
                ("get", "/api/v1/namespaces/<ns>/nothings"),
            ]);
            json!({"verb": verb, "path": path})
        }
        9 => {
            json!({"verb": "create", "resource": resource, "name": name, "text": random.one_of(&["{", "[]", "a: b"])})
        }
        10 => json!({
            "verb": "create", "resource": "serviceaccounts", "subresource": "token", "name": name,
            "body": {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": ["a"]}},
        }),
        _ => json!({
            "verb": "create", "resource": "authorization.k8s.io/v1/subjectaccessreviews", "namespace": "",
            "body": {
                "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                "spec": {"user": "jane", "resourceAttributes": {"verb": "get", "resource": "pods"}},
            },
        }),
    };
    if random.chance(25) {
        let groups = random.one_of(&[json!(["devs"]), json!(["system:masters"])]);
        request["user"] = json!({"name": random.one_of(&["jane", "a b"]), "groups": groups});
    }
    request
}

/// Returns objects in a namespace that policies refer to.
fn in_default(random: &mut Random) -> Vec<Value> {
    let resource = random.one_of(&["configmaps", "secrets"]);
    let one =
        |verb: &str| json!({"verb": verb, "resource": resource, "namespace": "default", "name": "<id>-m"});
    let mut changed = one("patch");
    changed["patch"] = json!("merge");
    changed["body"] = json!({"metadata": {"labels": {"env": "a"}}});
    let mut requests = vec![one("create")];
    for request in [one("get"), changed] {
        if random.chance(60) {
            requests.push(request);
        }
    }
    requests.push(one("delete"));
    requests
}

#[cfg(test)]
mod tests {
    use super::super::situation::cases;
    use super::*;

    #[test]
    fn every_situation_is_a_case_and_several_have_one_policy() {
        let cases = cases(100, |number| Situation::of_audit(1, number, &BTreeSet::new()));
        let policies: BTreeSet<_> = cases.into_iter().map(|case| case.plugins.audit_policy).collect();
        // Four valid policies, and four invalid ones.
        assert_eq!(policies.len(), 8);
    }
}
