//! Tests properties of all expressions: they do not panic or exhaust resources, and have the same cost each time.

use kubernetes_cel::Limits;
use kubernetes_cel::value::{Value, add, compare, equal, modulo, multiply, subtract};
use proptest::prelude::*;

use crate::laws::{ENVIRONMENT, OBJECT, check};

/// Generates parts of expressions, most of which can be combined.
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
        "self",
        "self.set",
        "self.keyed",
        "self.map",
        "self.time",
        "self.wrong",
        "dyn(self).any",
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

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

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
fn parts_are_observed_with_their_text() {
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
