//! Tests of documents. The values and messages are those of kube-apiserver 1.37.1.

use serde_json::{Value, json};

use super::*;

fn value(text: &str) -> Value {
    first_document(text).expect(text).value
}

#[test]
fn only_the_first_document_is_decoded() {
    for (text, expected) in [
        ("a: 1\n---\na: 2\n", json!({"a": 1})),
        ("{\"a\": 1}{\"a\": 2}", json!({"a": 1})),
        ("a: 1\n---\n{", json!({"a": 1})),
        ("---\n---\na: 1\n", json!(null)),
        ("", json!(null)),
        ("# only\n", json!(null)),
        ("a: 1\na: 2\n", json!({"a": 2})),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn scalars_have_the_types_of_yaml_1_1() {
    for (text, expected) in [
        ("0o17", json!(15)),
        ("017", json!(15)),
        ("-017", json!(-15)),
        ("0644", json!(420)),
        ("08", json!(8)),
        ("1_000", json!(1000)),
        ("0x1F", json!(31)),
        ("0x_1", json!(1)),
        ("0b11", json!(3)),
        ("+5", json!(5)),
        ("1_0.5", json!(10.5)),
        ("1__0", json!(10)),
        ("0_", json!(0)),
        ("1e1_0", json!(10_000_000_000_i64)),
        ("1e3", json!(1000)),
        ("80.0", json!(80)),
        ("-.5", json!(-0.5)),
        ("._1", json!("._1")),
        ("1e400", json!("1e400")),
        ("0x", json!("0x")),
        ("-9223372036854775808", json!(i64::MIN)),
        ("-9223372036854775809", json!(-9_223_372_036_854_775_808.0)),
        ("18446744073709551615", json!(18_446_744_073_709_551_615_u64)),
        ("yes", json!(true)),
        ("Off", json!(false)),
        ("y", json!(true)),
        ("tRue", json!("tRue")),
        ("nULL", json!("nULL")),
        ("~", json!(null)),
        ("'~'", json!("~")),
        ("2001-01-01", json!("2001-01-01")),
        ("190:20:30", json!("190:20:30")),
        ("=", json!("=")),
        ("!!str yes", json!("yes")),
        ("!!int '0x10'", json!(16)),
        ("!!float 1", json!(1)),
        ("!!binary aGVsbG8=", json!("hello")),
        ("!!timestamp 2001-01-01", json!("2001-01-01")),
        ("!!timestamp 2001-01-01T01:02:03.4Z", json!("2001-01-01T01:02:03.4Z")),
        ("!foo 5", json!("5")),
        ("!!unknown 5", json!("5")),
        ("! 5", json!("5")),
    ] {
        assert_eq!(value(&format!("spec:\n  a: {text}\n")), json!({"spec": {"a": expected}}), "{text}");
    }
}

#[test]
fn keys_become_text_by_their_type() {
    for (text, expected) in [
        ("{yes: a}", json!({"true": "a"})),
        ("{0x10: a}", json!({"16": "a"})),
        ("{1_000: a}", json!({"1000": "a"})),
        ("{1e3: a}", json!({"1000": "a"})),
        ("{1e6: a}", json!({"1e+06": "a"})),
        ("{1.5: a}", json!({"1.5": "a"})),
        ("{1e21: a}", json!({"1e+21": "a"})),
        ("{.inf: a}", json!({".inf": "a"})),
        ("{? a : 1}", json!({"a": 1})),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn merge_keys_apply_in_the_order_of_the_document() {
    let line = "line 1: key \"b\" already set in map";
    for (text, expected, repeated) in [
        ("{a: &x {b: 1}, c: {<<: *x}}", json!({"a": {"b": 1}, "c": {"b": 1}}), vec![]),
        ("{a: &x {b: 1}, c: {<<: *x, b: 2}}", json!({"a": {"b": 1}, "c": {"b": 2}}), vec![line]),
        ("{a: &x {b: 1}, c: {b: 2, <<: *x}}", json!({"a": {"b": 1}, "c": {"b": 1}}), vec![line]),
        ("{<<: [{b: 1},{b: 3, d: 4}], c: 2}", json!({"b": 1, "c": 2, "d": 4}), vec![line]),
    ] {
        let found = first_document(text).expect(text);
        assert_eq!(
            (found.value, found.repeated),
            (expected, repeated.into_iter().map(str::to_owned).collect())
        );
    }
}

#[test]
fn errors_have_the_words_of_go() {
    for (text, expected) in [
        ("{", "yaml: line 1: did not find expected node content"),
        ("k8s\u{0}", "yaml: control characters are not allowed"),
        ("{a: b", "yaml: line 1: did not find expected ',' or '}'"),
        ("a:\n  b: [c\n", "yaml: line 2: did not find expected ',' or ']'"),
        ("a:\n  b: *x\n", "yaml: unknown anchor 'x' referenced"),
        ("a: &x [*x]\n", "yaml: anchor 'x' value contains itself"),
        ("a: .inf\n", "json: unsupported value: +Inf"),
        ("a: .nan\n", "json: unsupported value: NaN"),
        ("a: !!null x\n", "yaml: cannot decode !!str `x` as a !!null"),
        ("a: !!int\n", "yaml: cannot decode !!null `` as a !!int"),
        ("a: !!int 1.5\n", "yaml: cannot decode !!float `1.5` as a !!int"),
        ("a: !!timestamp x\n", "yaml: cannot decode !!str `x` as a !!timestamp"),
        ("a: !!binary '***'\n", "yaml: !!binary value contains invalid base64 data"),
        ("a: {<<: 5}\n", "yaml: map merge requires map or sequence of maps as the value"),
        ("a: {<<: ~}\n", "yaml: map merge requires map or sequence of maps as the value"),
        ("a: {~: a}\n", "unsupported map key of type: %!s(<nil>), key: <nil>, value: \"a\""),
        ("a: {[a]: b}\n", "yaml: invalid map key: []interface {}{\"a\"}"),
        ("a: {{a: 1}: b}\n", "yaml: invalid map key: map[interface {}]interface {}{\"a\":1}"),
        ("%YAML 1.2\n---\na: b\n", "yaml: found incompatible YAML document"),
        ("%YAML 2.0\n---\na: b\n", "yaml: found incompatible YAML document"),
        ("x:\na: [b,,c]\n", "yaml: line 1: did not find expected node content"),
        ("a:\n  b: @c\n", "yaml: line 2: found character that cannot start any token"),
        ("a:\n  b: \"\\q\"\n", "yaml: line 2: found unknown escape character"),
        ("a:\n  b: c: d\n", "yaml: line 2: mapping values are not allowed in this context"),
        ("x:\na:\n  b: ]\n", "yaml: line 2: did not find expected node content"),
    ] {
        assert_eq!(first_document(text).expect_err(text), expected, "{text}");
    }
}

#[test]
fn aliases_and_levels_are_limited() {
    let bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n\
                b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\n\
                c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\n\
                d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\n\
                e: [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]\n";
    assert_eq!(first_document(bomb).unwrap_err(), "yaml: document contains excessive aliasing");
    let deep = format!("{}{}", "[".repeat(70), "]".repeat(70));
    assert_eq!(first_document(&deep).unwrap_err(), "yaml: the document is too complex");
}

#[test]
fn bytes_of_aliased_scalars_are_limited() {
    let long = "x".repeat(1 << 20);
    let values = |count: usize| format!("[&a {long}{}]", ", *a".repeat(count));
    assert!(first_document(&values(8)).is_ok());
    assert_eq!(first_document(&values(9)).unwrap_err(), "yaml: the document is too complex");
    let keys = format!("- &a {long}\n- {{a: 1}}\n{}", "- {*a : 1, *a : 2}\n".repeat(5));
    assert_eq!(first_document(&keys).unwrap_err(), "yaml: the document is too complex");
    let merges = format!("- &m {{a: {long}}}\n{}", "- {<<: *m}\n".repeat(9));
    assert_eq!(first_document(&merges).unwrap_err(), "yaml: the document is too complex");
}

#[test]
fn duplicate_keys_are_reported_with_lines() {
    for (text, expected) in [
        ("a: 1\nb: 2\n", &[][..]),
        ("a: 1\na: 2\n", &["line 2: key \"a\" already set in map"]),
        ("{\"a\": {\"b\": 1, \"b\": 2}}", &["line 1: key \"b\" already set in map"]),
        (
            "- x: [1]\n  x: true\n  x: null\n",
            &["line 2: key \"x\" already set in map", "line 3: key \"x\" already set in map"],
        ),
        (
            "a:\n  c: 1\na:\n  b: 1.5\n  b: text\n",
            &["line 5: key \"b\" already set in map", "line 4: key \"a\" already set in map"],
        ),
        ("not: [closed", &[]),
    ] {
        let repeated = first_document(text).map(|document| document.repeated).unwrap_or_default();
        assert_eq!(repeated, expected, "{text}");
    }
}
