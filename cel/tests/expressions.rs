//! Expressions with the answers of Kubernetes' own packages: types, values, costs and errors.

#![expect(clippy::expect_used, reason = "a test may panic about a file that cannot be read")]
#![expect(clippy::wildcard_enum_match_arm, reason = "values of further types have no text here")]

use std::collections::BTreeMap;
use std::sync::Arc;

use kubernetes_cel::authorization::{
    Attributes, Authorizer, Decision, Resource, User, Verdict, authorizer_value, request_resource_value,
};
use kubernetes_cel::environment::Environment;
use kubernetes_cel::kubernetes::{Variables as Admission, Version, environment_at, with_admission_variables};
use kubernetes_cel::value::{Origin, Value};
use kubernetes_cel::{Limits, Variables};
use serde_json::{Value as Json, json};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/cel");

/// What is answered differently, and why.
const KNOWN: [(&str, &str); 1] = [(
    "timestamp('1900-01-01T00:00:00Z').getMinutes('Europe/Amsterdam')",
    "the servers' time zones have what Debian keeps of the years before 1970; what is compiled in here does not",
)];

fn read(file: &str) -> String {
    std::fs::read_to_string(format!("{FOLDER}/{file}")).expect("the file is there")
}

/// What the contexts' authorizer allows: alice to get and create, a service account everything.
#[derive(Debug)]
struct Permissions;

impl Authorizer for Permissions {
    fn authorize(&self, asked: &Attributes<'_>) -> Decision {
        let decision = |verdict, reason: &str| Decision { verdict, reason: reason.to_owned(), error: None };
        match (asked.user.name.as_str(), asked.verb) {
            (_, "err") => Decision { error: Some("boom".to_owned()), ..Decision::default() },
            ("alice", "get" | "create") => decision(Verdict::Allow, "ok"),
            ("system:serviceaccount:default:sa1", _) => decision(Verdict::Allow, "sa"),
            _ => decision(Verdict::Deny, "no"),
        }
    }
}

/// The variables of a context.
struct Context<'a> {
    description: &'a Json,
    origin: Origin,
}

impl<'a> Context<'a> {
    fn new(description: &'a Json) -> Self {
        let typed = description["typed"] == true;
        Self { description, origin: if typed { Origin::Typed } else { Origin::Unstructured } }
    }

    fn user(&self) -> Arc<User> {
        let info = &self.description["request"]["userInfo"];
        let texts = |list: &Json| -> Vec<String> {
            list.as_array().into_iter().flatten().filter_map(Json::as_str).map(str::to_owned).collect()
        };
        Arc::new(User {
            name: info["username"].as_str().unwrap_or_default().to_owned(),
            uid: info["uid"].as_str().unwrap_or_default().to_owned(),
            groups: texts(&info["groups"]),
            extra: info["extra"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(key, list)| (key.clone(), texts(list)))
                .collect(),
        })
    }

    fn resource(&self) -> Resource {
        let request = &self.description["request"];
        let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
        Resource {
            group: text(&request["resource"]["group"]),
            resource: text(&request["resource"]["resource"]),
            subresource: text(&request["subResource"]),
            namespace: text(&request["namespace"]),
            name: text(&request["name"]),
            ..Resource::default()
        }
    }
}

impl<'a> Variables<'a> for Context<'a> {
    fn get(&self, name: &str) -> Option<Value<'a>> {
        Some(match name {
            "object" | "oldObject" => Value::from_json_of(&self.description[name], self.origin),
            "request" | "namespaceObject" => Value::from_json_of(&self.description[name], Origin::Typed),
            "authorizer" => authorizer_value(self.user(), Arc::new(Permissions)),
            "authorizer.requestResource" => {
                request_resource_value(self.user(), Arc::new(Permissions), self.resource())
            }
            _ => return None,
        })
    }
}

/// A value as the answers have it, see kubecel/value.go.
fn render(value: &Value<'_>) -> Json {
    match value {
        Value::Null => json!({"null": null}),
        Value::Bool(value) => json!({"bool": value}),
        Value::Int(value) => json!({"int": value.to_string()}),
        Value::Uint(value) => json!({"uint": value.to_string()}),
        Value::Double(_) => json!({"double": value.to_string()}),
        Value::String(text) => json!({"string": text.as_str()}),
        Value::Bytes(bytes) => json!({"bytes": base64(bytes)}),
        Value::Duration(value) => json!({"duration": value.to_string()}),
        Value::Timestamp(time) => json!({"timestamp": time.to_utc().rfc3339()}),
        Value::Type(name) => json!({"type": &**name}),
        Value::Optional(None) => json!({"optional": null}),
        Value::Optional(Some(value)) => json!({"optional": render(value)}),
        Value::List(list) => json!({"list": list.iter().map(|element| render(&element)).collect::<Vec<_>>()}),
        Value::Map(map) => {
            let mut entries: Vec<_> =
                map.iter().map(|(key, value)| json!([render(&key), render(&value)])).collect();
            entries.sort_by_key(|entry| entry[0].to_string());
            json!({"map": entries})
        }
        Value::Opaque(opaque) => {
            let text = opaque.to_string();
            match opaque.type_name() {
                "kubernetes.URL" => json!({"url": text}),
                "kubernetes.Quantity" => json!({"quantity": text}),
                "net.IP" => json!({"ip": text}),
                "net.CIDR" => json!({"cidr": text}),
                "kubernetes.Semver" => json!({"semver": text}),
                "kubernetes.NamedFormat" => json!({"format": text}),
                other => json!({"object": other}),
            }
        }
        _ => json!(null),
    }
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    bytes
        .chunks(3)
        .flat_map(|chunk| {
            let bits = chunk
                .iter()
                .chain([0, 0].iter())
                .take(3)
                .fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
            (0..4).map(move |place| {
                let digit = (bits >> (18 - 6 * place)) & 63;
                if place <= chunk.len() { char::from(DIGITS[digit as usize]) } else { '=' }
            })
        })
        .collect()
}

/// What this crate answers, in the words of the file.
fn answer(
    environment: &Environment,
    expression: &str,
    context: &Context<'_>,
) -> BTreeMap<&'static str, Json> {
    let program = match environment.compile(expression) {
        Ok(program) => program,
        Err(error) => return [("compile_error", json!(error.to_string()))].into(),
    };
    let evaluation = program.evaluate(context, &Limits::default());
    let mut answer: BTreeMap<_, _> =
        [("type", json!(program.result_type().runtime_text())), ("cost", json!(evaluation.cost))].into();
    match evaluation.value {
        Ok(value) => {
            answer.insert("value_type", json!(value.type_name()));
            answer.insert("value", render(&value));
        }
        Err(error) => {
            answer.insert("run_error", json!(error.to_string()));
        }
    }
    answer
}

#[test]
fn expressions_evaluate_as_in_kubernetes() {
    let contexts: Json = serde_json::from_str(&read("contexts.json")).expect("the contexts are JSON");
    let environment = with_admission_variables(
        environment_at(Version::new(1, 37)),
        Admission { params: false, authorizer: true },
    );
    let file = std::env::var("CEL_EXPRESSIONS");
    let text =
        file.map_or_else(|_| read("expressions.jsonl"), |file| std::fs::read_to_string(file).expect("text"));
    let (mut count, mut deep, mut known, mut differences) = (0, 0, 0, Vec::new());
    for line in text.lines() {
        // Values of lists in lists in lists are more than serde_json reads.
        let Ok(expected) = serde_json::from_str::<Json>(line) else {
            deep += 1;
            continue;
        };
        let expression = expected["expr"].as_str().expect("an expression");
        if expected.get("failure").is_some() {
            continue;
        }
        let context = Context::new(&contexts[expected["context"].as_str().unwrap_or("update")]);
        let found = answer(&environment, expression, &context);
        count += 1;
        // That a condition must be boolean is said elsewhere. Kubernetes says that first, and then what is wrong with the
        // program.
        let program = expected["program_error"]
            .as_str()
            .map(|error| json!(format!("program instantiation failed: {error}")));
        for member in ["compile_error", "type", "value", "value_type", "cost", "run_error"] {
            let expected = match (member, &program) {
                ("compile_error", Some(error)) => Some(error),
                ("compile_error", None) if expected.get("type").is_some() => None,
                ("type", Some(_)) => None,
                _ => expected.get(member),
            };
            let found = found.get(member);
            if expected != found && KNOWN.iter().any(|(known, _)| *known == expression) {
                known += 1;
            } else if expected != found {
                let text = |json: Option<&Json>| json.map_or_else(|| "nothing".to_owned(), Json::to_string);
                differences.push(format!(
                    "{expression}\n  {member}: expected {}\n  {member}: found    {}",
                    text(expected),
                    text(found),
                ));
            }
        }
    }
    assert!(
        differences.is_empty(),
        "{}\n{} differences in {count} expressions",
        differences.join("\n"),
        differences.len()
    );
    assert!(
        std::env::var("CEL_EXPRESSIONS").is_ok() || known == KNOWN.len(),
        "what is listed in KNOWN agrees now"
    );
    assert!(deep < 5, "{deep} lines cannot be read");
    assert!(count > 200, "only {count} expressions");
}
