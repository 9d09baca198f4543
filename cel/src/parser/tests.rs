//! What the parser accepts, and how deep it goes.

use super::{MacroSet, Syntax, parse};
use crate::source::{Issues, Source};

/// The errors of a text; none if it is right.
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
