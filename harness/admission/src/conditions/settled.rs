//! Conditions of requests of which little is known.

use kubernetes_cel::value::{Map, Origin, Value};
use kubernetes_cel::{Limits, Variables};
use serde_json::{Value as Json, json};

use super::Condition;
pub use crate::attributes::{GroupVersionKind, GroupVersionResource, Operation};

/// What is known of requests: nothing of who makes them, of names, options and the objects themselves.
#[derive(Debug)]
pub struct Known {
    operation: Operation,
    request: serde_json::Map<String, Json>,
    unknown: Vec<&'static str>,
}

/// What no rule says of a request.
const NEVER_KNOWN: [&str; 5] = ["name", "namespace", "userInfo", "dryRun", "options"];

impl Known {
    /// Requests to do this. What they are about: the resource, the subresource (empty for the object itself), the kind
    /// that the webhook sees and the kind of the request, each as far as it is known.
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
                // What is empty is left out.
                Some(value) if value == "" => {}
                Some(value) => {
                    request.extend(names.iter().map(|name| ((*name).to_owned(), value.clone())));
                }
            }
        }
        Self { operation, request, unknown }
    }
}

/// A variable that is not bound is an error, which `&&`, `||` and `?:` pass over where it does not matter. So what has a
/// value has it whatever the unknown parts are.
impl<'a> Variables<'a> for &'a Known {
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

/// The value that `condition` has for all requests of which `known` is true; none if it depends on the rest, or fails.
pub fn settled(condition: &Condition, known: &Known) -> Option<bool> {
    let program = condition.expression.as_ref().ok()?.program();
    // As a dyn the request can be counted and searched, and only what is known of it would be there.
    if program.calls("dyn") {
        return None;
    }
    match program.evaluate(&known, &Limits::default()).value {
        Ok(Value::Bool(value)) => Some(value),
        Ok(_) | Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(operation: Operation, subresource: Option<&str>, expression: &str, expected: Option<bool>) {
        let pods = GroupVersionResource::new("", "v1", "pods");
        let kind = GroupVersionKind::new("", "v1", "Pod");
        let known = Known::new(operation, Some(&pods), subresource, Some(&kind), None);
        let condition = Condition::new("c", expression);
        assert!(condition.expression.is_ok(), "{expression}");
        assert_eq!(settled(&condition, &known), expected, "{expression}");
    }

    #[test]
    fn what_rules_say_is_known() {
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
    fn what_depends_on_anything_else_is_not() {
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
