//! Tests the JSON Schemas of the reports: the page that describes them, and whether they accept real output.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use expect_test::expect_file;
use serde_json::{Map, Value};

use super::sandbox::Sandbox;
use super::{read, stdout};

/// The schemas, each with the commands whose output it describes.
const SCHEMAS: [(&str, &str); 10] = [
    ("run", "`admit run --json FILE`"),
    ("verify", "`admit verify -o json`"),
    ("checks", "`admit verify --list -o json`, `admit lint --list -o json`"),
    ("lint", "`admit lint -o json`"),
    ("review", "`admit review -o json`, a line of a record"),
    ("pull", "`admit pull -o json`"),
    ("cel", "a line of `admit cel -o json`"),
    ("explain-error", "`admit explain-error -o json`"),
    ("faults", "`admit fakes list -o json`"),
    ("steps", "`admit steps -o json`"),
];

/// The keywords that are annotations. They do not restrict a document.
const ANNOTATIONS: [&str; 5] = ["$schema", "$id", "$defs", "title", "description"];

fn schema(name: &str) -> Value {
    let path = format!("docs/reference/schemas/{name}.json");
    serde_json::from_str(&read(Path::new(&path))).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A validator for the keywords that the schemas use. It rejects fields that a schema does not list.
struct Validator<'a> {
    root: &'a Value,
    violations: Vec<String>,
}

impl Validator<'_> {
    fn validate(&mut self, schema: &Value, value: &Value, place: &str) {
        for (keyword, expected) in schema.as_object().into_iter().flatten() {
            match keyword.as_str() {
                "$ref" => {
                    let name = expected.as_str().and_then(|path| path.strip_prefix("#/$defs/"));
                    let target = name.and_then(|name| self.root["$defs"].get(name));
                    let target = target.unwrap_or_else(|| panic!("{place}: no schema {expected}"));
                    self.validate(target, value, place);
                }
                "type" => self.check(is_of_type(expected, value), place, value, "type", expected),
                "const" => self.check(expected == value, place, value, "const", expected),
                "enum" => {
                    let is_listed = expected.as_array().is_some_and(|list| list.contains(value));
                    self.check(is_listed, place, value, "enum", expected);
                }
                "minimum" => {
                    let is_enough = value.as_f64() >= expected.as_f64();
                    self.check(is_enough, place, value, "minimum", expected);
                }
                "required" => {
                    for name in expected.as_array().into_iter().flatten().filter_map(Value::as_str) {
                        self.check(value.get(name).is_some(), place, &Value::Null, "required", &name.into());
                    }
                }
                "properties" => {
                    for (name, value) in value.as_object().into_iter().flatten() {
                        let place = format!("{place}.{name}");
                        match expected.get(name) {
                            Some(schema) => self.validate(schema, value, &place),
                            None => self.violations.push(format!("{place}: not in the schema")),
                        }
                    }
                }
                "additionalProperties" => {
                    for (name, value) in value.as_object().into_iter().flatten() {
                        self.validate(expected, value, &format!("{place}.{name}"));
                    }
                }
                "items" => {
                    for (index, value) in value.as_array().into_iter().flatten().enumerate() {
                        self.validate(expected, value, &format!("{place}[{index}]"));
                    }
                }
                "oneOf" => {
                    let attempts = expected.as_array().into_iter().flatten().map(|schema| {
                        let mut attempt = Validator { root: self.root, violations: Vec::new() };
                        attempt.validate(schema, value, place);
                        attempt.violations
                    });
                    let attempts: Vec<_> = attempts.collect();
                    if attempts.iter().filter(|violations| violations.is_empty()).count() != 1 {
                        self.violations.extend(attempts.into_iter().flatten());
                    }
                }
                other => assert!(ANNOTATIONS.contains(&other), "{place}: unsupported keyword {other}"),
            }
        }
    }

    fn check(&mut self, is_valid: bool, place: &str, value: &Value, keyword: &str, expected: &Value) {
        if !is_valid {
            self.violations.push(format!("{place}: {value} violates {keyword} {expected}"));
        }
    }
}

fn is_of_type(expected: &Value, value: &Value) -> bool {
    match expected.as_str() {
        Some("string") => value.is_string(),
        Some("integer") => value.is_u64() || value.is_i64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => panic!("unsupported type {expected}"),
    }
}

fn violations(name: &str, document: &str) -> Vec<String> {
    let schema = schema(name);
    let value = serde_json::from_str(document).unwrap_or_else(|error| panic!("{name}: {error}\n{document}"));
    let mut validator = Validator { root: &schema, violations: Vec::new() };
    validator.validate(&schema, &value, name);
    validator.violations
}

#[track_caller]
fn accepts(name: &str, document: &str) {
    let violations = violations(name, document);
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

/// Returns a directory with a fake webhook, its configuration, and objects.
fn sandbox() -> Sandbox {
    let mut sandbox = Sandbox::new();
    sandbox.write("fakes.yaml", FAKES);
    sandbox.write("pod.yaml", POD);
    sandbox.write("one.yaml", POD.split("---").next().expect("the first object"));
    sandbox.write("policy.yaml", POLICY);
    sandbox.write("my.feature", FEATURE);
    let serve = ["fakes", "-f", "fakes.yaml", "--write-configurations", "webhook.yaml"];
    sandbox.serve(&serve.map(str::to_owned));
    sandbox
}

const FAKES: &str = "version: 1
listen: 127.0.0.1:8443
webhooks:
- name: injector
  type: mutating
  namespaceSelector: {}
  matchConditions: [{name: named, expression: has(object.metadata.name)}]
  reinvocationPolicy: IfNeeded
  behavior: {non-idempotent: {annotation: example.com/injected}}
- {name: policy, type: validating, namespaceSelector: {}, behavior: deny}
";

const POLICY: &str = "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: labels}
spec:
  matchConstraints:
    resourceRules: [{operations: [CREATE], apiGroups: ['*'], apiVersions: ['*'], resources: ['*']}]
  variables: [{name: names, expression: '[object.metadata.name]'}]
  validations: [{expression: variables.names.size() > 1}, {expression: object.metadata.labels.team != ''}]
  auditAnnotations: [{key: name, valueExpression: string(object.metadata.name)}]
";

const POD: &str = "apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: web, image: nginx}]}
---
apiVersion: v1
kind: Secret
metadata: {name: settings}
";

const FEATURE: &str = "@a
Feature: F
  Scenario: passes
    Given a mutating webhook \"sidecar\" for pods
    When a pod is created
    Then the request is admitted
  Rule: R
    Scenario: fails
      When a pod is created
      Then the client receives the warning \"of nothing\"
";

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

#[test]
fn reports_match_their_schemas() {
    let sandbox = sandbox();
    let output = |line: &str| {
        let output = sandbox.run(&words(line), None, &[]);
        assert!(
            matches!(output.status.code(), Some(0 | 1)),
            "{line}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).expect("the report is UTF-8")
    };
    accepts("lint", &output("lint -c webhook.yaml -o json --skip L05=known"));
    accepts(
        "verify",
        &output("verify -c webhook.yaml -f pod.yaml -o json --check V01,V02,V25 --skip V02=known"),
    );
    accepts("review", &output("review -f pod.yaml -c webhook.yaml -o json --explain --show-reviews"));
    for options in ["-c webhook.yaml --each", "--policy policy.yaml"] {
        for line in output(&format!("cel {options} -f one.yaml -o json")).lines() {
            accepts("cel", line);
        }
    }
    output("run my.feature --json run.json");
    accepts("run", &sandbox.read("run.json"));
}

#[test]
fn reports_of_pulls_match_their_schema() {
    let mut sandbox = Sandbox::new();
    sandbox.write("tokens.csv", "guest,guest,1,\"\"\n");
    let serve = "serve --listen 127.0.0.1:6443 --kubeconfig-out kubeconfig --authorization-mode RBAC \
                 --token-auth-file tokens.csv";
    sandbox.serve(&words(serve));
    let pull = |line: &str, status: i32| {
        let output = sandbox.run(&words(line), None, &[]);
        assert_eq!(output.status.code(), Some(status), "{}", String::from_utf8_lossy(&output.stderr));
        accepts("pull", &String::from_utf8(output.stdout).expect("the report is UTF-8"));
    };
    pull("pull --out cluster -n default -o json --kubeconfig kubeconfig", 0);
    let kubeconfig = sandbox.read("kubeconfig");
    let token = regex::Regex::new("token: .*").expect("it is an expression");
    sandbox.write("guest", &token.replace(&kubeconfig, "token: guest"));
    pull("pull --out cluster -o json --kubeconfig guest", 6);
}

#[test]
fn reviews_of_a_pulled_cluster_match_their_schema() {
    let mut sandbox = sandbox();
    sandbox.serve(&words("serve --listen 127.0.0.1:6443 --kubeconfig-out kubeconfig"));
    let run = |line: &str, status: i32| {
        let output = sandbox.run(&words(line), None, &[]);
        assert_eq!(output.status.code(), Some(status), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("the report is UTF-8")
    };
    run("pull --out cluster -n default --kubeconfig kubeconfig", 0);
    let marker = sandbox.read("cluster/.admit-pull.yaml");
    let unread = "unread:
- {resource: secrets, name: a, namespace: b, code: 403, reason: Forbidden, message: m, uncertain: u, missingRule: {apiGroups: [''], resources: [secrets], verbs: [get]}}
";
    sandbox.write("cluster/.admit-pull.yaml", &marker.replace("unread: []\n", unread));
    let webhook = sandbox.read("webhook.yaml");
    sandbox.write("cluster/webhook.yaml", &webhook);
    let report = run("review --cluster cluster -f pod.yaml -o json --explain --show-reviews", 6);
    assert!(report.contains("\"conditional\"") && report.contains("\"missingRule\""), "{report}");
    accepts("review", &report);
}

#[test]
fn lists_match_their_schemas() {
    accepts("checks", &stdout(&["verify", "--list", "-o", "json"]));
    accepts("checks", &stdout(&["lint", "--list", "-o", "json"]));
    accepts("faults", &stdout(&["fakes", "list", "-o", "json"]));
    accepts("steps", &stdout(&["steps", "-o", "json"]));
    let message = "failed calling webhook \"a.example.com\": failed to call webhook: Post \"https://b.c.svc:443/\": EOF";
    accepts("explain-error", &stdout(&["explain-error", message, "-o", "json"]));
}

#[test]
fn a_document_that_violates_a_schema_is_rejected() {
    let document = r#"{"version": 2, "steps": [{"keyword": "Maybe", "expression": 1, "help": "", "new": true}], "parameters": {}}"#;
    let expected = [
        "steps.version: 2 violates const 1",
        "steps.steps[0].expression: 1 violates type \"string\"",
        "steps.steps[0].keyword: \"Maybe\" violates enum [\"Given\",\"When\",\"Then\"]",
        "steps.steps[0].new: not in the schema",
        "steps.steps[0]: null violates required \"example\"",
    ];
    let found: BTreeSet<String> = violations("steps", document).into_iter().collect();
    assert_eq!(found, expected.map(str::to_owned).into());
}

/// Describes the type of a field.
fn type_of(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        return format!("`{}`", reference.trim_start_matches("#/$defs/"));
    }
    if let Some(values) = schema["enum"].as_array() {
        return values
            .iter()
            .map(|value| format!("`{}`", value.as_str().unwrap_or_default()))
            .collect::<Vec<_>>()
            .join(", ");
    }
    if let Some(value) = schema.get("const") {
        return format!("`{}`", value.to_string().trim_matches('"'));
    }
    match schema["type"].as_str() {
        Some("array") => match schema.get("items") {
            Some(items) => format!("list of {}", type_of(items)),
            None => "list".to_owned(),
        },
        Some("object") => match (schema.get("additionalProperties"), schema["properties"].as_object()) {
            (Some(values), _) => format!("map of {}", type_of(values)),
            (None, Some(fields)) => {
                let names: Vec<String> = fields.keys().map(|name| format!("`{name}`")).collect();
                format!("object with {}", names.join(", "))
            }
            (None, None) => "object".to_owned(),
        },
        Some(other) => other.to_owned(),
        None => "any".to_owned(),
    }
}

fn fields(page: &mut String, name: &str, schema: &Map<String, Value>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    let text = |name: &str| schema.get(name).and_then(Value::as_str).unwrap_or_default();
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if !name.is_empty() {
        let _ = write!(page, "\n**`{name}`**: {}\n", text("description"));
    }
    page.push_str("\n| Field | Type | Description |\n|---|---|---|\n");
    for (name, field) in properties {
        let optional = if required.contains(&name.as_str()) { "" } else { " (optional)" };
        let description = field["description"].as_str().unwrap_or_default();
        let _ = writeln!(page, "| `{name}`{optional} | {} | {description} |", type_of(field));
    }
}

#[test]
fn the_page_of_schemas_is_generated_from_the_schemas() {
    let mut page = "<!-- Written by `just book-pages`; change docs/reference/schemas instead. -->
# Report schemas

Commands with `-o json` print these documents. The schemas are [JSON Schema](https://json-schema.org) (draft 2020-12), and a test validates
real output against them. Ignore unknown fields: fields may be added. Existing fields keep their meaning; otherwise `version` or `apiVersion`
changes.

| Schema | Document |
|---|---|
"
    .to_owned();
    for (name, commands) in SCHEMAS {
        let _ = writeln!(page, "| [{name}.json](schemas/{name}.json) | {commands} |");
    }
    for (name, _) in SCHEMAS {
        let schema = schema(name);
        let text = |name: &str| schema[name].as_str().unwrap_or_default();
        let _ = write!(page, "\n## {}\n\n{}\n", text("title"), text("description"));
        fields(&mut page, "", schema.as_object().expect("an object"));
        for (name, schema) in schema["$defs"].as_object().into_iter().flatten() {
            fields(&mut page, name, schema.as_object().expect("an object"));
        }
    }
    expect_file!["../../docs/reference/schemas.md"].assert_eq(&page);
}
