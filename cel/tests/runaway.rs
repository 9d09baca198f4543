//! Tests that expressions that would exhaust memory or time end with an error.

use kubernetes_cel::environment::Environment;
use kubernetes_cel::function::Error;
use kubernetes_cel::kubernetes::{Expressions, Version, environment};
use kubernetes_cel::types::Type;
use kubernetes_cel::value::Value;
use kubernetes_cel::{Limits, Variables};
use serde_json::json;

fn declared() -> Environment {
    environment(Version::new(1, 37), Expressions::New).with_variable("object", Type::Dyn)
}

/// Returns the error of an expression about an object, or `None` if the expression has a value.
fn error(expression: &str) -> Option<Error> {
    let object = json!({"text": "x".repeat(1 << 20), "list": vec![1; 1000]});
    let program = declared().compile(expression).unwrap_or_else(|error| panic!("{expression}: {error}"));
    let variables = [("object", Value::from_json(&object))];
    let variables: &dyn Variables<'_> = &variables;
    program.evaluate(variables, &Limits::default()).value.err()
}

/// Returns an expression for a list with one dynamic value that is doubled `times` times.
fn doubled(value: &str, times: usize) -> String {
    format!("[{value}]{}", ".map(t, t + t)".repeat(times))
}

#[test]
fn doubling_strings_end_before_memory_is_exhausted() {
    let found = error(&format!("size({}[0]) > 0", doubled("object.text", 40)));
    assert!(matches!(found, Some(Error::Unsupported(_))), "{found:?}");
    // Even `|| true` does not absorb the error.
    let found = error(&format!("size({}[0]) > 0 || true", doubled("object.text", 40)));
    assert!(matches!(found, Some(Error::Unsupported(_))), "{found:?}");
}

#[test]
fn doubling_lists_end_before_they_are_traversed() {
    let list = doubled("object.list", 40);
    let found = error(&format!("{list}[0] == {list}[0]"));
    assert!(matches!(found, Some(Error::Unsupported(_))), "{found:?}");
}

#[test]
fn total_size_of_strings_is_bounded() {
    let found = error("object.list.all(n, object.list.all(m, size(object.text + object.text) > 0))");
    assert!(matches!(found, Some(Error::Unsupported(_))), "{found:?}");
}

#[test]
fn nested_loops_end_at_the_cost_limit() {
    let found = error("object.list.all(a, object.list.all(b, object.list.all(c, a + b + c > 0)))");
    assert_eq!(found, Some(Error::new("operation cancelled: actual cost limit exceeded")));
}
