//! Tests how the output attributes changes to mutating admission policies.

use expect_test::expect;
use serde_json::{Value, json};

use super::files::{fakes, files};

/// Two policies for `ConfigMap`s: `count` is reinvoked, `once` is not.
const POLICIES: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: count}
spec:
  matchConstraints:
    resourceRules: [{operations: [CREATE], apiGroups: [''], apiVersions: [v1], resources: [configmaps]}]
  paramKind: {apiVersion: v1, kind: ConfigMap}
  reinvocationPolicy: IfNeeded
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: \"Object{metadata: Object.metadata{labels: {'size': string(size(object.data))}}}\"
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: everywhere}
spec: {policyName: count, paramRef: {name: params, namespace: default, parameterNotFoundAction: Deny}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: params, namespace: default}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: once}
spec:
  matchConstraints:
    resourceRules: [{operations: [CREATE], apiGroups: [''], apiVersions: [v1], resources: [configmaps]}]
  reinvocationPolicy: Never
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: \"[JSONPatch{op: 'add', path: '/data/by', value: 'policy'}]\"
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: all}
spec: {policyName: once}
";

const CONFIG_MAP: &str =
    "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: default}, data: {a: b}}";

#[test]
fn a_change_by_a_policy_names_the_policy_its_binding_and_the_round() {
    let fakes = fakes(&[
        "name: adds, type: mutating, behavior: {patch: {operations: [{op: add, path: /data/c, value: d}]}}",
    ]);
    let files = files([("settings.yaml", CONFIG_MAP), ("fakes.yaml", &fakes), ("policies.yaml", POLICIES)]);
    let line = "-f settings.yaml --fakes fakes.yaml --with policies.yaml";
    files.review(line).check(
        0,
        &expect![[r#"
            configmap/settings created

            Webhooks
              mutating, first round
                ok adds.fakes.local  N ms  allowed, changed data.c
              mutating, second round
                -  adds.fakes.local  not called: its reinvocationPolicy is Never

            Policies
              mutating, first round
                ok count (binding everywhere, param default/params)  applied: changed the object
                ok once (binding all)                                applied: changed the object
              mutating, second round
                ok count (binding everywhere, param default/params)  applied: changed the object

            Object
              count (binding everywhere, param default/params)
                + metadata.labels:
                +   size: "1"
              once (binding all)
                + data.by: "policy"
              adds.fakes.local
                + data.c: "d"
              count (binding everywhere, param default/params), second round
                ~ metadata.labels.size: "1" -> "3"
              3 changes by the server (-v shows them)

        "#]],
    );
    let report = files.report(line);
    let steps = report["steps"].as_array().unwrap();
    let by: Vec<Value> = steps
        .iter()
        .map(|step| json!([step["by"], step["name"], step["binding"], step["param"], step["round"]]))
        .collect();
    assert_eq!(
        json!(by),
        json!([
            ["policy", "count", "everywhere", "default/params", 1],
            ["policy", "once", "all", null, 1],
            ["webhook", "adds.fakes.local", null, null, 1],
            ["policy", "count", "everywhere", "default/params", 2],
            ["server", null, null, null, 1],
        ])
    );
}

#[test]
fn a_change_by_a_policy_without_webhooks_is_not_a_change_by_the_server() {
    let files = files([("settings.yaml", CONFIG_MAP), ("policies.yaml", POLICIES)]);
    files.review("-f settings.yaml --with policies.yaml").check(
        0,
        &expect![[r#"
        configmap/settings created

        Policies
          mutating, first round
            ok count (binding everywhere, param default/params)  applied: changed the object
            ok once (binding all)                                applied: changed the object
          mutating, second round
            ok count (binding everywhere, param default/params)  applied: changed the object

        Object
          count (binding everywhere, param default/params)
            + metadata.labels:
            +   size: "1"
          once (binding all)
            + data.by: "policy"
          count (binding everywhere, param default/params), second round
            ~ metadata.labels.size: "1" -> "2"
          3 changes by the server (-v shows them)

    "#]],
    );
}

#[test]
fn policies_without_a_binding_and_bindings_without_a_policy_are_named() {
    let policies = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-latest}
spec:
  matchConstraints:
    resourceRules: [{operations: [CREATE], apiGroups: [''], apiVersions: [v1], resources: [configmaps]}]
  validations: [{expression: 'false'}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: everywhere}
spec: {policyName: no-lates, validationActions: [Deny]}
";
    let files = files([("settings.yaml", CONFIG_MAP), ("policies.yaml", policies)]);
    let line = "-f settings.yaml --with policies.yaml";
    files.review(line).check(
        0,
        &expect![[r#"
            configmap/settings created

            Policies
              validating
                -  no-latest                      not applied: no ValidatingAdmissionPolicyBinding in the files has the policyName "no-latest"
                -  no-lates (binding everywhere)  not applied: the files do not contain the ValidatingAdmissionPolicy "no-lates"

            Object
              3 changes by the server (-v shows them)

        "#]],
    );
    let bound = policies.replace("no-lates,", "no-latest,");
    let files = self::files([("settings.yaml", CONFIG_MAP), ("policies.yaml", &*bound)]);
    let denied = files.review("-f settings.yaml -c policies.yaml");
    assert_eq!((denied.status, &denied.stdout), (1, &files.review(line).stdout));
    assert!(denied.stdout.contains("no-latest (binding everywhere)"), "{}", denied.stdout);
    let files = self::files([("settings.yaml", CONFIG_MAP), ("policies.yaml", policies)]);
    let report = files.report(line);
    assert_eq!(
        report["policies"][0],
        json!({
            "type": "validating",
            "round": 1,
            "policy": "no-latest",
            "outcome": "skipped",
            "message": "no ValidatingAdmissionPolicyBinding in the files has the policyName \"no-latest\"",
        })
    );
    assert_eq!(report["policies"][1]["binding"], "everywhere");
}

#[test]
fn files_of_c_have_the_params_of_their_policies_and_a_denial_names_the_line_of_the_policy() {
    let policies = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: limits.example.com}
spec:
  group: example.com
  names: {plural: limits, kind: Limit}
  scope: Cluster
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {entries: {type: integer}}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: entries}
spec:
  paramKind: {apiVersion: example.com/v1, kind: Limit}
  matchConstraints:
    resourceRules: [{operations: [CREATE], apiGroups: [''], apiVersions: [v1], resources: [configmaps]}]
  validations: [{expression: object.data.size() <= params.entries, message: too many entries}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: all}
spec: {policyName: entries, validationActions: [Deny], paramRef: {name: none, parameterNotFoundAction: Deny}}
---
apiVersion: example.com/v1
kind: Limit
metadata: {name: none}
entries: 0
";
    let files = files([("settings.yaml", CONFIG_MAP), ("policies.yaml", policies)]);
    files.review("-f settings.yaml -c policies.yaml").check(1, &expect![[r#"
        error: configmaps "settings" is forbidden: ValidatingAdmissionPolicy 'entries' with binding 'all' denied request: too many entries
         --> policies.yaml:14
          = policy: entries (binding all)
          = request: CREATE ConfigMap default/settings (settings.yaml:1)
          = status: 422 Invalid
          = why: The request was rejected because the binding has the action Deny. failurePolicy does not
                 apply to a validation that is false.
          = help: the policy rejects such requests; change the object, or look for the message in the
                  validations of the policy
          = docs: admit explain-error MESSAGE

        Policies
          validating
            x  entries (binding all, param none)  denied: too many entries

    "#]]);
    // The policy may be in another file.
    let (definition, rest) = policies.split_once("---\n").expect("a definition comes first");
    let (policy, others) = rest.split_once("---\n").expect("the policy is the second object");
    let files = self::files([
        ("settings.yaml", CONFIG_MAP),
        ("policy.yaml", &*format!("{definition}---\n{policy}")),
        ("others.yaml", others),
    ]);
    let denied = files.review("-f settings.yaml -c others.yaml --with policy.yaml");
    assert!(denied.stdout.contains("entries (binding all, param none)  denied"), "{}", denied.stdout);
}

#[test]
fn failed_test_operation_of_a_json_patch_is_named() {
    let policies = POLICIES.replace(
        "[JSONPatch{op: 'add',",
        "[JSONPatch{op: 'test', path: '/kind', value: 'x'}, JSONPatch{op: 'add',",
    );
    let files = files([("settings.yaml", CONFIG_MAP), ("policies.yaml", &*policies)]);
    let report = files.report("-f settings.yaml -c policies.yaml");
    let policies = report["policies"].as_array().expect("a list");
    let once = policies.iter().find(|policy| policy["policy"] == "once").expect("it is reported");
    assert_eq!(once["outcome"], "applied");
    assert_eq!(once["message"], "did not change the object: testing value /kind failed: test failed");
}

/// Two mutating policies that set the same label.
fn rivals() -> String {
    let policy = |name: &str| {
        format!(
            "\
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {{name: {name}}}
spec:
  matchConstraints:
    resourceRules: [{{operations: [CREATE], apiGroups: [''], apiVersions: [v1], resources: [configmaps]}}]
  reinvocationPolicy: Never
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: \"Object{{metadata: Object.metadata{{labels: {{'last': '{name}'}}}}}}\"
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {{name: {name}}}
spec: {{policyName: {name}}}
---
"
        )
    };
    policy("one") + &policy("two")
}

#[test]
fn policies_can_be_applied_in_a_random_order_that_a_seed_repeats() {
    let files = files([("settings.yaml", CONFIG_MAP), ("policies.yaml", &*rivals())]);
    let order = |flag: &str| -> Vec<String> {
        let report = files.report(&format!("-f settings.yaml -c policies.yaml {flag}"));
        let names = report["policies"].as_array().into_iter().flatten();
        let names: Vec<String> = names.map(|policy| policy["policy"].as_str().unwrap().to_owned()).collect();
        assert_eq!(report["object"]["metadata"]["labels"]["last"], names[1]);
        names
    };
    assert_eq!(order(""), ["one", "two"]);
    assert_eq!(order("--policy-order name"), ["one", "two"]);
    let seeds: Vec<Vec<String>> =
        (0..8).map(|seed| order(&format!("--policy-order random:{seed}"))).collect();
    assert!(seeds.iter().any(|order| order == &["two", "one"]), "{seeds:?}");
    assert_eq!(order("--policy-order random:3"), seeds[3]);
    let output = files.review("-f settings.yaml -c policies.yaml --policy-order random");
    let (_, seed) = output.stderr.trim().split_once("use --policy-order random:").expect("a seed");
    let _: u64 = seed.parse().expect("a number");
}
