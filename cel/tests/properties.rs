//! What holds for all expressions: no panic, no runaway, the same cost each time.

use std::sync::LazyLock;

use kubernetes_cel::environment::Environment;
use kubernetes_cel::kubernetes::{Variables as Admission, Version, environment_at, with_admission_variables};
use kubernetes_cel::value::{Origin, Value, add, compare, equal, modulo, multiply, subtract};
use kubernetes_cel::{COST_LIMIT, Limits};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(|| {
    let admission = Admission { params: false, authorizer: true };
    with_admission_variables(environment_at(Version::new(1, 37)), admission)
});

static OBJECT: LazyLock<Json> = LazyLock::new(|| {
    json!({
        "metadata": {"name": "web-1", "labels": {"app": "web", "a/b": "x"}, "annotations": {}},
        "spec": {"n": 3, "d": 1.5, "b": true, "z": null, "l": [1, "two", 3.5, null, [4], {"five": 5}], "e": []},
    })
});

/// Pieces of expressions, most of which fit together.
fn leaf() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "object",
        "object.metadata.labels",
        "object.spec.n",
        "object.spec.d",
        "object.spec.l",
        "object.spec.z",
        "object.nothing",
        "oldObject",
        "request",
        "x",
        "1",
        "-9223372036854775808",
        "9223372036854775807",
        "2u",
        "1.5",
        "'abc'",
        "''",
        "'é😀'",
        "b'ab'",
        "null",
        "true",
        "false",
        "[]",
        "[1, 2, 3]",
        "{}",
        "{'a': 1}",
        "duration('1h')",
        "timestamp(0)",
        "int",
        "optional.none()",
        "optional.of(1)",
        "object.?spec.?n",
        "dyn([1])",
        "quantity('1')",
        "ip('::1')",
        "double('NaN')",
        "1.0 / 0.0",
    ])
    .prop_map(str::to_owned)
}

fn expression() -> impl Strategy<Value = String> {
    leaf().prop_recursive(5, 48, 3, |inner| {
        let operators = prop::sample::select(vec![
            "+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "in",
        ]);
        let functions = prop::sample::select(vec![
            "size",
            "int",
            "uint",
            "double",
            "string",
            "bool",
            "bytes",
            "type",
            "dyn",
            "duration",
            "timestamp",
            "!",
            "-",
            "optional.of",
            "optional.ofNonZeroValue",
            "optional.unwrap",
            "lists.range",
        ]);
        let methods = prop::sample::select(vec![
            "size()",
            "hasValue()",
            "value()",
            "first()",
            "last()",
            "getHours()",
            "getFullYear('Europe/Rome')",
            "sum()",
            "max()",
            "sort()",
            "distinct()",
            "flatten()",
            "reverse()",
            "join()",
            "lowerAscii()",
            "trim()",
            "split('')",
            "nothing",
            "?n",
            "name",
            "isSorted()",
            "unwrapOpt()",
        ]);
        let macros = prop::sample::select(vec![
            "all(x, {})",
            "exists(x, {})",
            "exists_one(x, {})",
            "map(x, {})",
            "filter(x, {})",
            "map(x, true, {})",
            "all(i, x, {})",
            "transformList(i, x, {})",
            "transformMap(i, x, {})",
            "transformMapEntry(i, x, {x: {}})",
            "optMap(x, {})",
            "optFlatMap(x, {})",
            "sortBy(x, {})",
            "orValue({})",
            "or({})",
            "startsWith({})",
            "matches({})",
            "contains({})",
            "indexOf({})",
            "find({})",
            "replace('a', {})",
            "format([{}])",
        ]);
        prop_oneof![
            (inner.clone(), operators, inner.clone())
                .prop_map(|(left, operator, right)| format!("({left} {operator} {right})")),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(c, t, f)| format!("({c} ? {t} : {f})")),
            (functions, inner.clone()).prop_map(|(function, argument)| format!("{function}({argument})")),
            (inner.clone(), methods).prop_map(|(target, method)| format!("{target}.{method}")),
            (inner.clone(), macros, inner.clone())
                .prop_map(|(target, of, body)| format!("{target}.{}", of.replacen("{}", &body, 1))),
            (inner.clone(), inner.clone()).prop_map(|(map, key)| format!("{map}[{key}]")),
            (inner.clone(), inner.clone()).prop_map(|(map, key)| format!("{map}[?{key}]")),
            (inner.clone(), inner.clone()).prop_map(|(left, right)| format!("[{left}, ?{right}]")),
            (inner.clone(), inner.clone())
                .prop_map(|(key, value)| format!("{{{key}: {value}, ?'b': optional.none()}}")),
            inner.prop_map(|operand| format!("has({operand}.a)")),
        ]
    })
}

fn check(text: &str) {
    let Ok(program) = ENVIRONMENT.compile(text) else { return };
    for origin in [Origin::Unstructured, Origin::Typed] {
        let variables = [
            ("object", Value::from_json_of(&OBJECT, origin)),
            ("oldObject", Value::Null),
            ("request", Value::from_json_of(&OBJECT, Origin::Typed)),
        ];
        let limits = Limits::default();
        let first = program.evaluate(&variables, &limits);
        let (second, observations) = program.observe(&variables, &limits);
        assert_eq!(first.cost, second.cost, "{text}");
        assert_eq!(first.value.is_ok(), second.value.is_ok(), "{text}");
        assert!(first.value.is_err() || first.cost <= COST_LIMIT, "{text} costs {}", first.cost);
        if let Ok(value) = &first.value {
            assert!(!observations.is_empty(), "{text}");
            for observation in &observations {
                assert!(text.contains(observation.text));
            }
            // Texts of values and comparisons with themselves end, too.
            drop((value.to_string(), value.native_text(), equal(value, value)));
        }
        // With half the budget it ends early, or just in time.
        let half = program.evaluate(&variables, &Limits::of_cost(first.cost / 2));
        assert!(first.cost < 2 || half.value.is_err() || half.cost <= first.cost / 2, "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_expression_panics(text in expression()) {
        check(&text);
    }

    #[test]
    fn integers_and_doubles_calculate_without_panic(left in any::<i64>(), right in any::<i64>(), real in any::<f64>()) {
        let values = [Value::Int(left), Value::Int(right), Value::Double(real), Value::Duration(left)];
        for left in &values {
            for right in &values {
                let results = [add(left, right), subtract(left, right), multiply(left, right), modulo(left, right)];
                for result in results.into_iter().flatten() {
                    prop_assert_eq!(result.type_name(), left.type_name());
                }
                if let (Ok(order), Ok(same)) = (compare("_<_", left, right), equal(left, right)) {
                    prop_assert_eq!(order.is_eq(), same);
                }
            }
        }
    }
}

#[test]
fn deep_expressions_evaluate() {
    let sums = vec!["1"; 5_000].join(" + ");
    let selections = format!("object{}", ".a".repeat(5_000));
    let lists = format!("[1]{}", ".map(x, [x])".repeat(500));
    for (text, value) in [(sums, Ok("5000".to_owned())), (selections, Err("no such key: a".to_owned()))] {
        let Ok(program) = ENVIRONMENT.compile(&text) else { continue };
        let evaluation = program.evaluate(&[("object", Value::from_json(&OBJECT))], &Limits::default());
        assert_eq!(evaluation.value.map(|value| value.to_string()).map_err(|error| error.to_string()), value);
    }
    if let Ok(program) = ENVIRONMENT.compile(&lists) {
        assert!(program.evaluate(&[("object", Value::Null)], &Limits::default()).value.is_ok());
    }
}

#[test]
fn parts_of_an_expression_are_observed_with_their_text() {
    let text = "(object.spec.n + 1) * 2 == 8 && [1, 2].all(x, x < int('3')) && has(object.spec['d'].e)";
    let program = ENVIRONMENT.compile(text).expect("it compiles");
    let variables = [("object", Value::from_json(&OBJECT))];
    let (evaluation, parts) = program.observe(&variables, &Limits::default());
    let parts: Vec<_> = parts
        .iter()
        .map(|part| {
            let value = part.value.as_ref().map_or_else(ToString::to_string, ToString::to_string);
            format!("{} = {value} ({})", part.text, part.cost)
        })
        .collect();
    let expected = [
        "object.spec.n = 3 (3)",
        "1 = 1 (3)",
        "object.spec.n + 1 = 4 (4)",
        "2 = 2 (4)",
        "(object.spec.n + 1) * 2 = 8 (5)",
        "8 = 8 (5)",
        "(object.spec.n + 1) * 2 == 8 = true (6)",
        "[1, 2] = [1, 2] (6)",
        "x = 1 (10)",
        "int('3') = 3 (10)",
        "x < int('3') = true (11)",
        "x = 2 (15)",
        "int('3') = 3 (15)",
        "x < int('3') = true (16)",
        "[1, 2].all(x, x < int('3')) = true (17)",
        "(object.spec.n + 1) * 2 == 8 && [1, 2].all(x, x < int('3')) = true (17)",
        "has(object.spec['d'].e) = false (20)",
    ];
    assert_eq!(parts.get(..expected.len()), Some(expected.map(str::to_owned).as_slice()), "{parts:#?}");
    assert!(evaluation.value.is_ok());
}
