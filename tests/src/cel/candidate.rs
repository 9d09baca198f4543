//! Computes the answers of the crate `kubernetes-cel`, in the format of the Go program `tests/cel/oracle`.
//!
//! The tests of `kubernetes-cel` also compile this file.

use std::sync::{Arc, LazyLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubernetes_cel::authorization::{
    Attributes, AuthorizationDecision, Authorizer, Decision, Resource, User,
};
use kubernetes_cel::environment::{CompileError, Environment};
use kubernetes_cel::estimate::{Sizes, Unbounded};
use kubernetes_cel::kubernetes::{Variables as Admission, Version, environment_at, with_admission_variables};
use kubernetes_cel::value::{Origin, Value};
use kubernetes_cel::{Limits, Program, Variables};
use kubernetes_cel::{authorizer_value, request_resource_value};
use serde_json::{Value as Json, json};

use super::answer::{Answer, Estimate, Question};
use super::rules;

static CONTEXTS: LazyLock<Json> =
    LazyLock::new(|| serde_json::from_str(include_str!("../../cel/contexts.json")).unwrap_or_default());

static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(|| {
    let variables = Admission { params: false, authorizer: true };
    with_admission_variables(environment_at(Version::new(1, 37)), variables)
});

/// Returns the crate's answer to a question.
pub(crate) fn answer(question: &Question) -> Answer {
    question.schema.as_ref().map_or_else(|| of_admission(question), |name| rules::answer(question, name))
}

fn of_admission(question: &Question) -> Answer {
    let context = &CONTEXTS[question.context.as_deref().unwrap_or("update")];
    let answer = match ENVIRONMENT.compile(&question.expr) {
        Ok(program) => {
            let kind = program.result_type();
            let refused =
                (!kind.is_bool()).then(|| format!("must evaluate to bool but got {}", kind.runtime_text()));
            let answer = evaluated(&ENVIRONMENT, &program, &Bindings { context }, &Unbounded::default());
            Answer { compile_error: refused, ..answer }
        }
        Err(error) => refused(&question.expr, &error),
    };
    Answer { context: question.context.clone(), ..answer }
}

/// Returns the answer for an expression that does not compile.
pub(crate) fn refused(expression: &str, error: &CompileError) -> Answer {
    Answer { expr: expression.to_owned(), compile_error: Some(error.to_string()), ..Answer::default() }
}

/// Evaluates a compiled program and returns the answer.
pub(crate) fn evaluated<'p>(
    environment: &Environment,
    program: &'p Program,
    variables: &dyn Variables<'p>,
    sizes: &dyn Sizes,
) -> Answer {
    let estimate = environment.estimate(program.source(), sizes).ok();
    let evaluation = program.evaluate(variables, &Limits::default());
    let mut answer = Answer {
        expr: program.source().to_owned(),
        r#type: Some(program.result_type().runtime_text()),
        cost: Some(evaluation.cost),
        estimate: estimate.map(|range| Estimate { min: range.min, max: range.max }),
        ..Answer::default()
    };
    match evaluation.value {
        Ok(value) => {
            answer.value_type = Some(value.type_name().to_owned());
            answer.value = Some(rendered(&value));
        }
        Err(error) => answer.run_error = Some(error.to_string()),
    }
    answer
}

/// An authorizer with the same permissions as `tests/cel/kubecel/context.go`.
#[derive(Debug)]
struct Permissions;

impl Authorizer for Permissions {
    fn authorize(&self, asked: &Attributes<'_>) -> Decision {
        let decision = |verdict, reason: &str| Decision { verdict, reason: reason.to_owned(), error: None };
        match (asked.user.name.as_str(), asked.verb) {
            (_, "err") => Decision { error: Some("boom".to_owned()), ..Decision::default() },
            ("alice", "get" | "create") => decision(AuthorizationDecision::Allow, "ok"),
            ("system:serviceaccount:default:sa1", _) => decision(AuthorizationDecision::Allow, "sa"),
            _ => decision(AuthorizationDecision::Deny, "no"),
        }
    }
}

/// The variables that a context defines.
struct Bindings<'c> {
    context: &'c Json,
}

impl<'c> Variables<'c> for Bindings<'c> {
    fn get(&self, name: &str) -> Option<Value<'c>> {
        let origin = if self.context["typed"] == true { Origin::Typed } else { Origin::Unstructured };
        let permissions = Arc::new(Permissions);
        Some(match name {
            "object" | "oldObject" => Value::from_json_of(&self.context[name], origin),
            "request" => Value::from_json_of(&self.context[name], Origin::Request),
            "namespaceObject" => Value::from_json_of(&self.context[name], Origin::Typed),
            "authorizer" => authorizer_value(self.user(), permissions),
            "authorizer.requestResource" => request_resource_value(self.user(), permissions, self.resource()),
            _ => return None,
        })
    }
}

impl Bindings<'_> {
    fn user(&self) -> Arc<User> {
        let info = &self.context["request"]["userInfo"];
        let extra = info["extra"].as_object().into_iter().flatten();
        Arc::new(User {
            name: text(&info["username"]),
            uid: text(&info["uid"]),
            groups: texts(&info["groups"]),
            extra: extra.map(|(key, list)| (key.clone(), texts(list))).collect(),
        })
    }

    fn resource(&self) -> Resource {
        let request = &self.context["request"];
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

fn text(value: &Json) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(list: &Json) -> Vec<String> {
    list.as_array().into_iter().flatten().map(text).collect()
}

/// Converts a value to the format of `Render` in `tests/cel/kubecel/value.go`.
pub(crate) fn rendered(value: &Value<'_>) -> Json {
    match value {
        Value::Null => json!({"null": null}),
        Value::Bool(value) => json!({"bool": value}),
        Value::Int(value) => json!({"int": value.to_string()}),
        Value::Uint(value) => json!({"uint": value.to_string()}),
        Value::Double(_) => json!({"double": value.to_string()}),
        Value::String(text) => json!({"string": text.as_str()}),
        Value::Bytes(bytes) => json!({"bytes": STANDARD.encode(bytes)}),
        Value::Duration(value) => json!({"duration": value.to_string()}),
        Value::Timestamp(time) => json!({"timestamp": time.to_utc().rfc3339()}),
        Value::Type(name) => json!({"type": &**name}),
        Value::Optional(value) => json!({"optional": value.as_deref().map(rendered)}),
        Value::List(list) => {
            json!({"list": list.iter().map(|element| rendered(&element)).collect::<Vec<_>>()})
        }
        Value::Map(map) => {
            let mut entries: Vec<Json> =
                map.iter().map(|(key, value)| json!([rendered(&key), rendered(&value)])).collect();
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
        Value::Invalid(why) => json!({"error": &**why}),
        Value::Preserved(_) | _ => json!({"object": value.type_name()}),
    }
}
