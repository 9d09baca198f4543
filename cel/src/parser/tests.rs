//! Tests the errors and the nesting limits of the parser.

use super::{MacroSet, Syntax, parse};
use crate::source::{Issues, Source};

/// Returns the errors of an expression, or `None` if the expression is valid.
fn errors(text: &str) -> Option<String> {
    let macros = [MacroSet::Standard, MacroSet::Optional, MacroSet::TwoVariables, MacroSet::SortBy];
    let source = Source::new(text);
    let mut issues = Issues::default();
    let refused = parse(&source, Syntax { macros: &macros }, &mut issues).is_err();
    refused.then(|| issues.into_report(&source).to_string())
}

#[test]
fn rules_and_operators_are_nested_at_most_250_deep() {
    const RULES: &str = "ERROR: <input>:-1:0: expression recursion limit exceeded: 250";
    const OPERATORS: &str = "ERROR: <input>:-1:0: max recursion depth exceeded";
    let nested =
        |open: &str, close: &str, count: usize| format!("{}1{}", open.repeat(count), close.repeat(count));
    for (text, expected) in [
        (nested("(", ")", 249), None),
        (nested("(", ")", 250), Some(RULES)),
        (nested("[", "]", 249), None),
        (nested("f(", ")", 249), None),
        (nested("{1: ", "}", 249), None),
        (nested("a ? b : ", "", 249), None),
        (nested("a ? b : ", "", 250), Some(RULES)),
        (nested("1 == (", ")", 124), None),
        (nested("1 == (", ")", 125), Some(RULES)),
        (nested("1 + 2 * (", ")", 83), None),
        (nested("1 + 2 * (", ")", 84), Some(RULES)),
        (nested("x.map(a, ", ")", 249), None),
        (format!("a{}", ".b".repeat(250)), None),
        (format!("a{}", ".b".repeat(251)), Some(OPERATORS)),
        (format!("a{}", ".b".repeat(40_000)), Some(OPERATORS)),
        (format!("1{}", " + 1".repeat(251)), Some(OPERATORS)),
        (format!("a{}", " && a".repeat(10_000)), None),
        (format!("{}a", "!".repeat(90_001)), None),
    ] {
        assert_eq!(errors(&text).as_deref(), expected, "{}", text.get(..20).unwrap_or(&text));
    }
}

#[test]
fn a_text_has_at_most_100_000_code_points() {
    assert_eq!(errors(&format!("'{}'", "é".repeat(99_998))), None);
    assert_eq!(
        errors(&format!("'{}'", "é".repeat(99_999))).as_deref(),
        Some("ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100001, limit 100000")
    );
}

#[test]
fn macros_that_double_their_target_are_bounded() {
    let text = format!("a{}", ".optMap(x, x)".repeat(30));
    let source = Source::new(&text);
    let syntax = Syntax { macros: &[MacroSet::Optional] };
    let parsed = parse(&source, syntax, &mut Issues::default());
    assert!(matches!(parsed, Err(super::Refused::Unsupported(_))));
}

#[test]
fn syntax_errors_are_those_of_the_generated_parser() {
    const OPERAND: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, \
                           STRING, BYTES, IDENTIFIER}";
    // Line, column, and message. Three dots at the end of a message mean an expected operand.
    for (text, expected) in [
        ("1 ==", &[("1:5", "Syntax error: mismatched input '<EOF>' expecting ...")][..]),
        ("a ? b", &[("1:6", "Syntax error: mismatched input '<EOF>' expecting ':'")]),
        ("a b", &[("1:3", "Syntax error: extraneous input 'b' expecting <EOF>")]),
        ("1 1 1", &[("1:3", "Syntax error: mismatched input '1' expecting <EOF>")]),
        ("(1", &[("1:3", "Syntax error: missing ')' at '<EOF>'")]),
        ("a..b", &[("1:3", "Syntax error: no viable alternative at input '..'")]),
        ("a.false", &[("1:3", "Syntax error: mismatched input 'false' expecting IDENTIFIER")]),
        (
            "x.in",
            &[
                ("1:3", "Syntax error: no viable alternative at input '.in'"),
                ("1:5", "Syntax error: mismatched input '<EOF>' expecting ..."),
            ],
        ),
        (
            "a.?",
            &[
                ("1:4", "Syntax error: mismatched input '<EOF>' expecting {IDENTIFIER, ESC_IDENTIFIER}"),
                ("1:4", "unsupported ident kind"),
            ],
        ),
        (
            "'\\400'",
            &[
                ("1:1", "Syntax error: token recognition error at: ''\\4'"),
                ("1:6", "Syntax error: token recognition error at: '''"),
            ],
        ),
        ("", &[("1:0", "Syntax error: mismatched input '<EOF>' expecting ...")]),
        ("x{a:1,", &[("1:7", "Syntax error: missing '}' at '<EOF>'")]),
        ("if.x", &[("1:1", "reserved identifier: if")]),
        ("[if].map(1, x)", &[("1:2", "reserved identifier: if"), ("1:10", "argument is not an identifier")]),
        (
            "has(1 != 1u",
            &[("1:7", "invalid argument to has() macro"), ("1:12", "Syntax error: missing ')' at '<EOF>'")],
        ),
    ] {
        let found = errors(text).unwrap_or_default();
        let heads = found.lines().filter(|line| line.starts_with("ERROR"));
        let expected = expected
            .iter()
            .map(|(place, message)| format!("ERROR: <input>:{place}: {}", message.replace("...", OPERAND)));
        assert_eq!(heads.map(str::to_owned).collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "{text:?}");
    }
}

#[test]
fn text_with_very_many_errors_is_explained() {
    let text = "a b ".repeat(20_000);
    assert!(errors(&text).is_some_and(|found| found.contains("mismatched input 'b' expecting <EOF>")));
    let text = "@".repeat(150);
    assert_eq!(errors(&text).map(|found| found.matches("ERROR").count()), Some(100));
}
