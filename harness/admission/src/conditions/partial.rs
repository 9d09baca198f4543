//! Evaluates conditions for requests with fields that are only partly known.

use kubernetes_cel::value::{Map, Origin, Value};
use kubernetes_cel::{Limits, Variables};
use serde_json::{Value as Json, json};

use super::Condition;
pub use crate::attributes::{GroupVersionKind, GroupVersionResource, Operation};

/// The known fields of a set of requests. The user, names, options, and objects are unknown.
#[derive(Debug)]
pub struct KnownFields {
    operation: Operation,
    request: serde_json::Map<String, Json>,
    unknown: Vec<&'static str>,
}

/// The request fields that rules do not determine.
const NEVER_KNOWN: [&str; 5] = ["name", "namespace", "userInfo", "dryRun", "options"];

impl KnownFields {
    /// Returns the operation of the requests.
    pub fn operation(&self) -> Operation {
        self.operation
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
    let null = match known.operation {
        Operation::Delete => "object",
        Operation::Create | Operation::Connect => "oldObject",
        Operation::Update => return None,
    };
    let others = ["object", "oldObject", "request", "namespaceObject", "authorizer"];
    if others.into_iter().any(|name| name != null && condition.mentions(name)) || !condition.mentions(null) {
        return None;
    }
    let program = condition.expression.as_ref().ok()?.program();
    program.evaluate(&known, &Limits::default()).value.err().map(|error| error.to_string())
}

#[cfg(test)]
mod tests {
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
