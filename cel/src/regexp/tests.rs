//! Tests regular expressions against the results of Go 1.26.

use std::sync::Arc;

use proptest::prelude::*;

use super::{Engine, Machine, Regexp, RegexpError, parser};

#[track_caller]
fn refused(expression: &str, message: &str) {
    let error = Regexp::new(expression).map(|_| ()).unwrap_err();
    assert_eq!(error.to_string(), format!("error parsing regexp: {message}"), "{expression}");
}

#[test]
fn invalid_expressions_have_the_errors_of_go() {
    for (expression, message) in [
        ("[a", "missing closing ]: `[a`"),
        ("[]", "missing closing ]: `[]`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        (r"[a-\d]", r"invalid escape sequence: `\d`"),
        ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
        (r"a\p{foo}b", r"invalid character class range: `\p{foo}`"),
        (r"\p{Old_Italic}", r"invalid character class range: `\p{Old_Italic}`"),
        (r"\p{foo", r"invalid character class range: `\p{foo`"),
        (r"\p", r"invalid character class range: `\p`"),
        ("(a", "missing closing ): `(a`"),
        ("a)b", "unexpected ): `a)b`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("a|*?", "missing argument to repetition operator: `*?`"),
        ("({2})", "missing argument to repetition operator: `{2}`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a{2}+?b", "invalid nested repetition operator: `{2}+?`"),
        ("a{3,1}", "invalid repeat count: `{3,1}`"),
        ("a{1001}?", "invalid repeat count: `{1001}`"),
        ("a{99999999999}", "invalid repeat count: `{99999999999}`"),
        ("(a{100}){11}?", "invalid repeat count: `{11}?`"),
        (r"a\", "trailing backslash at end of expression: ``"),
        (r"\1", r"invalid escape sequence: `\1`"),
        (r"\8é", r"invalid escape sequence: `\8`"),
        (r"\é", r"invalid escape sequence: `\é`"),
        (r"\x{110000}", r"invalid escape sequence: `\x{110000`"),
        (r"\x{}", r"invalid escape sequence: `\x{}`"),
        (r"\x4", r"invalid escape sequence: `\x4`"),
        (r"\C", r"invalid escape sequence: `\C`"),
        ("(?<n", "invalid named capture: `(?<n`"),
        ("(?P<a-b>c)", "invalid named capture: `(?P<a-b>`"),
        ("(?P=n)", "invalid or unsupported Perl syntax: `(?P`"),
        ("(?i-)", "invalid or unsupported Perl syntax: `(?i-)`"),
        ("(?", "invalid or unsupported Perl syntax: `(?`"),
        ("a(?!b)", "invalid or unsupported Perl syntax: `(?!`"),
    ] {
        refused(expression, message);
    }
}

#[test]
fn matches_are_the_same_as_in_go() {
    for (expression, text, found) in [
        ("a+?b|", "aab", vec!["aab"]),
        ("a*", "baac", vec!["", "aa", ""]),
        ("(|a)*", "aa", vec!["", "", ""]),
        ("(|a)+", "aa", vec!["", "", ""]),
        ("x*?", "xé", vec!["", "", ""]),
        (r"(?i)k", "kK\u{212a}", vec!["k", "K", "\u{212a}"]),
        (r"(?i)\w", "ſ-\u{212a}é", vec!["ſ", "\u{212a}"]),
        (r"\w+\b", "aé b1", vec!["a", "b1"]),
        (r"\B.", "aéb", vec![]),
        (r"\s+", "a\u{b} \t\u{a0}b", vec![" \t"]),
        (r"\d", "1٣", vec!["1"]),
        ("(?m)^.$", "a\nb", vec!["a", "b"]),
        ("^.$", "a\nb", vec![]),
        ("(?s)a.b", "a\nb", vec!["a\nb"]),
        ("(?U)a+", "aa", vec!["a", "a"]),
        ("(?U)a+?", "aa", vec!["aa"]),
        ("a{,2}", "aa{,2}", vec!["a{,2}"]),
        ("{", "{", vec!["{"]),
        (r"\Qa.b\E+", "a.bba+", vec!["a.bb"]),
        ("[]a^-]+", "]^a-b", vec!["]^a-"]),
        (r"[^\x{D800}]", "a", vec!["a"]),
        (r"\x{D800}", "a", vec![]),
        (r"[[:^alpha:]\d]", "a1-", vec!["1", "-"]),
        (r"\p{Lu}|\p{^L}", "aB1", vec!["B", "1"]),
        (r"[\p{greek}&&]+", "αβ&x", vec!["αβ&"]),
        ("a{0}b{2}", "abb", vec!["bb"]),
    ] {
        let regexp = Regexp::new(expression).unwrap();
        let all: Vec<&str> = regexp.find_all(text).collect();
        assert_eq!(all, found, "{expression}");
        assert_eq!(regexp.find(text), found.first().copied(), "{expression}");
        assert_eq!(regexp.is_match(text), !found.is_empty(), "{expression}");
    }
}

#[test]
fn non_boundary_is_found_next_to_a_non_ascii_letter() {
    let regexp = Regexp::new(r"\B|[^\w]").unwrap();
    assert!(regexp.is_match("BſA"));
    assert_eq!(regexp.find_all("BſbſA").collect::<Vec<_>>(), ["ſ", "ſ"]);
}

#[test]
fn limits_are_the_same_as_in_go() {
    let nested = |open: &str, close: &str, depth: usize| open.repeat(depth) + "a" + &close.repeat(depth);
    for expression in [
        nested("(", ")", 999),
        nested("(?:", ")", 5000),
        nested("(?:", ")*", 999),
        nested("(?:ab|c*", ")", 499),
        "a".repeat(50_000),
    ] {
        assert!(Regexp::new(&expression).unwrap().is_match("bcba") || expression.len() == 50_000);
    }
    for expression in [nested("(", ")", 1000), nested("(?:", ")*", 1000), nested("(?:ab|c*", ")", 510)] {
        refused(&expression, &format!("expression nests too deeply: `{expression}`"));
    }
    for repeated in ["a".repeat(3400), "[ab]".repeat(3400), "ab*".repeat(1700)] {
        let expression = format!("(?:{repeated}){{1000}}");
        refused(&expression, &format!("expression too large: `{expression}`"));
    }
    refused(&"(".repeat(1001), &format!("missing closing ): `{}`", "(".repeat(1001)));
}

/// Compiles an expression for the machine, even if the expression is small.
fn on_machine(expression: &str) -> Regexp {
    let node = parser::parse(expression).unwrap();
    Regexp { engine: Engine::Large(Arc::new(Machine::new(&node).unwrap())) }
}

#[test]
fn expressions_too_large_for_the_crate_run_on_the_machine() {
    let regexp = Regexp::new(r"(?:\pL{10}){100}").unwrap();
    assert!(matches!(regexp.engine, Engine::Large(_)));
    assert!(regexp.is_match(&"é".repeat(1000)));
    assert!(!regexp.is_match(&"é".repeat(999)));
}

fn expression() -> impl Strategy<Value = String> {
    let atoms = vec![
        "a", "b", "é", ".", "[ab]", "[^a]", r"\w", r"\W", r"\b", r"\B", "^", "$", r"\z", "(?m:^)", "(?m:$)",
        "", r"\pL",
    ];
    prop::sample::select(atoms).prop_map(str::to_owned).prop_recursive(4, 24, 3, |inner| {
        let repeats =
            prop::sample::select(vec!["*", "+", "?", "*?", "+?", "??", "{2}", "{0,2}", "{1,}", "{0}"]);
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(first, second)| first + &second),
            (inner.clone(), inner.clone()).prop_map(|(first, second)| format!("({first}|{second})")),
            (inner.clone(), repeats).prop_map(|(part, repeat)| format!("(?:{part}){repeat}")),
            inner.prop_map(|part| format!("(?i:{part})")),
        ]
    })
}

proptest! {
    #[test]
    fn the_machine_finds_what_the_crate_finds(expression in expression(), text in "[abAé \n_-]{0,8}") {
        let regexp = Regexp::new(&expression).unwrap();
        let found: Vec<&str> = regexp.find_all(&text).collect();
        let machine = on_machine(&expression);
        prop_assert_eq!(machine.find_all(&text).collect::<Vec<_>>(), found.clone());
        prop_assert_eq!(machine.is_match(&text), !found.is_empty());
        prop_assert_eq!(regexp.is_match(&text), !found.is_empty());
    }

    #[test]
    fn any_text_compiles_or_is_rejected(expression in r"[\\\[\](){}|*+?^$.,:<>=!iPpQEdDsSwWbBxzaé0-9-]{0,12}") {
        let refused = Regexp::new(&expression).err();
        prop_assert!(refused.is_none_or(|error| matches!(error, RegexpError::Invalid(_))), "{}", expression);
    }
}
