//! Evaluates conditions for requests with fields that are only partly known.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use kubernetes_cel::function::Error;
use kubernetes_cel::value::{Map, Origin, Value};
use kubernetes_cel::{Limits, Members, Program, SHALLOW, Variables};
use serde_json::{Value as Json, json};

use super::{Condition, variable_error};
pub use crate::attributes::{GroupVersionKind, GroupVersionResource, Operation};

/// The known fields of a set of requests. The user, names, options, and objects are unknown.
#[derive(Debug)]
pub struct KnownFields {
    operation: Operation,
    request: serde_json::Map<String, Json>,
    unknown: Vec<&'static str>,
}

/// The variable whose fields are the variables of a policy.
const VARIABLES: &str = "variables";

/// The request fields that rules do not determine.
const NEVER_KNOWN: [&str; 5] = ["name", "namespace", "userInfo", "dryRun", "options"];

impl KnownFields {
    /// Returns the operation of the requests.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// Returns the object that is null in the requests.
    fn null_object(&self) -> Option<&'static str> {
        match self.operation {
            Operation::Delete => Some("object"),
            Operation::Create | Operation::Connect => Some("oldObject"),
            Operation::Update => None,
        }
    }

    /// Creates the known fields of a set of requests.
    ///
    /// These are the operation, the resource, the subresource (empty for the main resource), the kind in the review,
    /// and the kind of the request. `None` means unknown.
    pub fn new(
        operation: Operation,
        resource: Option<&GroupVersionResource>,
        subresource: Option<&str>,
        kind: Option<&GroupVersionKind>,
        request_kind: Option<&GroupVersionKind>,
    ) -> Self {
        let mut request = serde_json::Map::new();
        let mut unknown = NEVER_KNOWN.to_vec();
        for (name, value) in [("uid", json!("")), ("object", Json::Null), ("oldObject", Json::Null)] {
            request.insert(name.to_owned(), value);
        }
        request.insert("operation".to_owned(), json!(operation));
        for (names, value) in [
            (["resource", "requestResource"].as_slice(), resource.map(|resource| json!(resource))),
            (&["subResource", "requestSubResource"], subresource.map(|subresource| json!(subresource))),
            (&["kind"], kind.map(|kind| json!(kind))),
            (&["requestKind"], request_kind.map(|kind| json!(kind))),
        ] {
            match value {
                None => unknown.extend(names),
                // Empty fields are omitted.
                Some(value) if value == "" => {}
                Some(value) => {
                    request.extend(names.iter().map(|name| ((*name).to_owned(), value.clone())));
                }
            }
        }
        Self { operation, request, unknown }
    }
}

/// Resolves known variables only.
///
/// An unknown variable is an error. `&&`, `||`, and `?:` ignore the error if it cannot affect the result. Therefore, an
/// expression that has a value has the same value for all unknown fields.
impl<'a> Variables<'a> for &'a KnownFields {
    fn get(&self, name: &str) -> Option<Value<'a>> {
        match (name, self.operation) {
            ("request", _) => Some(Value::Map(Map::partial(&self.request, &self.unknown, Origin::Request))),
            ("namespaceObject", _)
            | ("object", Operation::Delete)
            | ("oldObject", Operation::Create | Operation::Connect) => Some(Value::Null),
            _ => None,
        }
    }
}

/// Returns the value of `condition` for all requests that match `known`; `None` if it may vary or fails.
pub fn constant_value(condition: &Condition, known: &KnownFields) -> Option<bool> {
    let program = condition.expression.as_ref().ok()?.program();
    // With `dyn`, an expression could count or iterate over the fields of `request`, of which only some are known.
    if program.calls("dyn") {
        return None;
    }
    match program.evaluate(&known, &Limits::default()).value {
        Ok(Value::Bool(value)) => Some(value),
        Ok(_) | Err(_) => None,
    }
}

/// Returns the error of `condition` for all requests that match `known`; `None` if the error is not certain.
///
/// An error is certain only if the condition reads a single variable that is null: `object` on DELETE, or `oldObject`
/// on CREATE and CONNECT.
pub fn constant_error(condition: &Condition, known: &KnownFields) -> Option<String> {
    let program = condition.expression.as_ref().ok()?.program();
    constant_error_of(program, &[], known)
}

/// Returns the error of a policy's expression for all requests that match `known`, like [`constant_error`].
///
/// `composed` contains the variables of the policy, each with its name. An error is also certain if a variable that the
/// expression reads has it.
pub fn constant_error_of(
    program: &Program,
    composed: &[(&str, &Program)],
    known: &KnownFields,
) -> Option<String> {
    known.null_object()?;
    let values = composed.iter().map(|_| OnceLock::new()).collect();
    let reads =
        Reads { known, composed, values, null: AtomicBool::new(false), others: AtomicBool::new(false) };
    let error = program.evaluate(&reads, &Limits::default()).value.err()?;
    let is_certain = reads.null.load(Ordering::Relaxed) && !reads.others.load(Ordering::Relaxed);
    (is_certain && !matches!(error, Error::Unsupported(_))).then(|| error.to_string())
}

/// Resolves known variables and the variables of a policy, and records which variables were read.
struct Reads<'a> {
    known: &'a KnownFields,
    composed: &'a [(&'a str, &'a Program)],
    /// The values of `composed`, each evaluated when it is first read.
    values: Vec<OnceLock<Result<Value<'a>, Error>>>,
    /// Whether the object that is null was read.
    null: AtomicBool,
    /// Whether another variable was read.
    others: AtomicBool,
}

impl<'a> Variables<'a> for Reads<'a> {
    fn get(&self, name: &str) -> Option<Value<'a>> {
        if name == VARIABLES {
            return None;
        }
        let is_null = self.known.null_object() == Some(name);
        let read = if is_null { &self.null } else { &self.others };
        read.store(true, Ordering::Relaxed);
        self.known.get(name)
    }

    fn members(&self, name: &str) -> Option<&dyn Members<'a>> {
        (name == VARIABLES).then_some(self)
    }
}

impl<'a> Members<'a> for Reads<'a> {
    fn get(&self, name: &str) -> Option<Result<Value<'a>, Error>> {
        let position = self.composed.iter().rposition(|(variable, _)| *variable == name);
        let found = position.and_then(|it| Some((self.composed.get(it)?.1, self.values.get(it)?)));
        let Some((program, value)) = found else {
            self.others.store(true, Ordering::Relaxed);
            return None;
        };
        if let Some(value) = value.get() {
            return Some(value.clone());
        }
        // The evaluation runs on its own thread, because the depth of the programs on this one is unknown.
        let evaluated = program.evaluate_inside(self, &Limits::default(), SHALLOW).value;
        let evaluated = evaluated.map_err(|error| variable_error(name, "evaluate", error));
        Some(value.get_or_init(|| evaluated).clone())
    }
}

#[cfg(test)]
mod tests {
    use kubernetes_cel::kubernetes::{
        self, Expressions, RELEASE, environment, with_admission_variables, with_composed_variable,
        with_composed_variables,
    };
    use kubernetes_cel::types::Type;

    use super::*;

    #[track_caller]
    fn check(operation: Operation, subresource: Option<&str>, expression: &str, expected: Option<bool>) {
        let pods = GroupVersionResource::new("", "v1", "pods");
        let kind = GroupVersionKind::new("", "v1", "Pod");
        let known = KnownFields::new(operation, Some(&pods), subresource, Some(&kind), None);
        let condition = Condition::new("c", expression);
        assert!(condition.expression.is_ok(), "{expression}");
        assert_eq!(constant_value(&condition, &known), expected, "{expression}");
    }

    #[test]
    fn a_condition_on_fields_in_rules_has_a_constant_value() {
        let create = |expression, expected| check(Operation::Create, Some(""), expression, expected);
        create("true", Some(true));
        create("request.operation == 'DELETE'", Some(false));
        create("request.resource.group == '' && request.kind.kind == 'Pod'", Some(true));
        create("request.resource.resource == 'leases' && object.spec.x == 1", Some(false));
        create("object.spec.x == 1 || request.operation != 'DELETE'", Some(true));
        create("has(request.subResource)", Some(false));
        create("oldObject == null", Some(true));
        check(Operation::Connect, Some("exec"), "request.subResource == 'exec'", Some(true));
        check(Operation::Delete, Some(""), "object == null || object.x == 1", Some(true));
    }

    #[test]
    fn condition_that_reads_a_field_of_a_null_object_always_fails() {
        let fails = |operation, expression: &str| {
            let known = KnownFields::new(operation, None, Some(""), None, None);
            let condition = Condition::new("c", expression);
            assert!(condition.expression.is_ok(), "{expression}");
            constant_error(&condition, &known).is_some()
        };
        assert!(fails(Operation::Delete, "object.metadata.name == 'a'"));
        assert!(fails(Operation::Delete, "!has(object.metadata.labels)"));
        assert!(fails(Operation::Create, "oldObject.spec.x == 1"));
        for (operation, expression) in [
            (Operation::Delete, "object == null || object.metadata.name == 'a'"),
            (Operation::Delete, "oldObject.metadata.name == 'a'"),
            (Operation::Delete, "request.name == 'b' && object.metadata.name == 'a'"),
            (Operation::Create, "object.metadata.name == 'a'"),
            (Operation::Update, "oldObject.metadata.name == 'a'"),
        ] {
            assert!(!fails(operation, expression), "{expression}");
        }
    }

    #[test]
    fn expression_fails_always_if_a_variable_reads_a_field_of_a_null_object() {
        let known = KnownFields::new(Operation::Delete, None, Some(""), None, None);
        let declared = with_admission_variables(
            environment(RELEASE, Expressions::Stored),
            kubernetes::Variables { params: true, authorizer: true },
        );
        let mut declared = with_composed_variables(declared, []);
        let mut programs = Vec::new();
        for (name, text) in [
            ("spec", "object.spec"),
            ("containers", "variables.spec.containers"),
            ("guarded", "object == null ? [] : object.spec.containers"),
            ("others", "oldObject.spec.containers"),
        ] {
            programs.push((name, declared.compile(text).unwrap()));
            declared = with_composed_variable(declared, name, &Type::Dyn);
        }
        let composed: Vec<(&str, &Program)> = programs.iter().map(|(name, it)| (*name, it)).collect();
        let error = |text: &str| constant_error_of(&declared.compile(text).unwrap(), &composed, &known);
        let spec = "composited variable \"spec\" fails to evaluate: no such key: spec";
        let containers = format!("composited variable \"containers\" fails to evaluate: {spec}");
        assert_eq!(error("variables.containers.all(c, c.image != '')"), Some(containers));
        assert_eq!(error("variables.spec == null || variables.spec.x == 1").as_deref(), Some(spec));
        for text in [
            "variables.guarded.all(c, c.image != '')",
            "variables.others.all(c, c.image != '')",
            "variables.spec.x == 1 || request.name == 'a'",
            "variables.spec.x == params.x",
            "request.operation == 'DELETE' || variables.spec.x == 1",
        ] {
            assert_eq!(error(text), None, "{text}");
        }
    }

    #[test]
    fn a_condition_on_unknown_fields_has_no_constant_value() {
        let create = |expression| check(Operation::Create, None, expression, None);
        create("object.spec.x == 1");
        create("has(object.spec)");
        create("has(request.name)");
        create("request.name != 'a'");
        create("!has(request.subResource)");
        create("request.?name.orValue('') == ''");
        create("request.requestKind.kind == 'Pod'");
        create("'system:nodes' in request.userInfo.groups");
        create("object != null");
        create("dyn(request).size() == 4");
        create("authorizer.group('').resource('pods').check('get').allowed()");
        create("[request].all(r, !has(r.name))");
    }
}
