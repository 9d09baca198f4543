//! Checks properties of arbitrary strings as expressions: compiling and evaluating them does not panic, and the outcome
//! and cost are always the same.
//!
//! Shared by the tests and the fuzz target.

use std::sync::LazyLock;

use kubernetes_cel::declared_type::with_declared_type;
use kubernetes_cel::environment::Environment;
use kubernetes_cel::estimate::Unbounded;
use kubernetes_cel::function::Error;
use kubernetes_cel::kubernetes::{Variables as Admission, Version, environment_at, with_admission_variables};
use kubernetes_cel::schema::Schema;
use kubernetes_cel::value::{Origin, Value, equal};
use kubernetes_cel::{COST_LIMIT, Limits};
use serde_json::{Value as Json, json};

/// An environment with the admission variables, and with `self`, whose schema is [`SCHEMA`].
pub(crate) static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(|| {
    let admission = Admission { params: false, authorizer: true };
    let environment = with_admission_variables(environment_at(Version::new(1, 37)), admission);
    match SCHEMA.declared_type() {
        Some(of) => with_declared_type(environment, &of, "selfType", &["self"]),
        None => environment,
    }
});

/// The object of an admission request.
pub(crate) static OBJECT: LazyLock<Json> = LazyLock::new(|| {
    json!({
        "metadata": {"name": "web-1", "labels": {"app": "web", "a/b": "x"}, "annotations": {}},
        "spec": {
            "n": 3, "d": 1.5, "b": true, "z": null, "l": [1, "two", 3.5, null, [4], {"five": 5}], "e": [],
            "big": 9_007_199_254_740_993_u64, "text": "añb😀c",
        },
    })
});

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let keyed = json!({"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}});
    let schema = json!({
        "type": "object",
        "properties": {
            "n": {"type": "integer"},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "keyed": {
                "type": "array", "items": keyed,
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            },
            "map": {"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": true}},
            "time": {"type": "string", "format": "date-time"},
            "any": {"x-kubernetes-preserve-unknown-fields": true},
            "wrong": {"type": "array", "items": {"type": "boolean"}},
        },
    });
    Schema::from_json(&schema).unwrap_or_else(|error| panic!("{error}"))
});

/// A document with parts that do not match the schema.
static DOCUMENT: LazyLock<Json> = LazyLock::new(|| {
    json!({
        "n": 1, "set": ["b", "a"], "keyed": [{"k": "x", "v": 1}, {"k": "y"}], "map": {"a": 1, "b": "c"},
        "time": "2024-01-02T03:04:05Z", "any": {"x": [1]}, "wrong": [true, 1, null], "unknown": {},
    })
});

/// Compiles a string as an expression, and evaluates it for objects in each of kube-apiserver's representations.
///
/// # Panics
///
/// Panics if a property does not hold.
pub(crate) fn check(text: &str) {
    let Ok(program) = ENVIRONMENT.compile(text) else { return };
    assert!(
        ENVIRONMENT.estimate(text, &Unbounded::default()).is_ok(),
        "{text} compiles, and has no estimate"
    );
    for origin in [Origin::Unstructured, Origin::Typed] {
        let variables = [
            ("object", Value::from_json_of(&OBJECT, origin)),
            ("oldObject", Value::Null),
            ("request", Value::from_json_of(&OBJECT, Origin::Request)),
            ("self", Value::from_structured(&DOCUMENT, &SCHEMA)),
        ];
        let limits = Limits::default();
        let first = program.evaluate(&variables, &limits);
        let (second, observations) = program.observe(&variables, &limits);
        assert_eq!(first.cost, second.cost, "the cost of {text} depends on who looks");
        assert_eq!(first.value.is_ok(), second.value.is_ok(), "the outcome of {text} depends on who looks");
        assert!(first.value.is_err() || first.cost <= COST_LIMIT, "{text} costs {}", first.cost);
        match &first.value {
            Ok(value) => {
                assert!(!observations.is_empty(), "{text}");
                assert!(observations.iter().all(|observation| text.contains(observation.text)), "{text}");
                // Formatting values and comparing them with themselves also terminate.
                drop((value.to_string(), value.native_text(), equal(value, value)));
            }
            Err(Error::Language(error)) => assert!(!error.is_empty(), "{text}"),
            Err(_) => {}
        }
        // With half the cost as the limit, the evaluation fails or stays within the limit.
        let half = program.evaluate(&variables, &Limits::of_cost(first.cost / 2));
        assert!(first.cost < 2 || half.value.is_err() || half.cost <= first.cost / 2, "{text}");
    }
}
