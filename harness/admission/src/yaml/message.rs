//! Writes syntax errors in Go's words.
//!
//! Source: sigs.k8s.io/yaml goyaml.v2/readerc.go, `yaml_parser_update_buffer`; scannerc.go and parserc.go; decode.go,
//! `parser.fail`.

use granit_parser::ScanError;

/// Words in errors of the parser, with Go's messages.
const IN_GO: [(&str, &str); 2] = [
    ("unexpected character", "found character that cannot start any token"),
    ("tab", "found a tab character that violates indentation"),
];

/// Checks that YAML may contain all characters of a text.
///
/// # Errors
/// Returns Go's message if it may not.
pub(super) fn check_characters(text: &str) -> Result<(), String> {
    if text.chars().all(is_allowed) {
        Ok(())
    } else {
        Err("yaml: control characters are not allowed".to_owned())
    }
}

fn is_allowed(letter: char) -> bool {
    matches!(letter,
        '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}'
        | '\u{10000}'..='\u{10ffff}')
}

/// Returns the message for a syntax error, with the line but without the column.
pub(super) fn syntax(text: &str, error: &ScanError) -> String {
    let line = error.marker().line();
    let info = error.info();
    let problem = info.as_str();
    let brackets = [("unclosed bracket '{'", "'}'"), ("unclosed bracket '['", "']'")];
    if let Some((_, closing)) = brackets.iter().find(|(opening, _)| problem.contains(opening)) {
        let end = text.lines().count();
        if text.trim_end().ends_with(['{', '[', ',', ':']) {
            return format!("yaml: line {end}: did not find expected node content");
        }
        return format!("yaml: line {end}: did not find expected ',' or {closing}");
    }
    if problem.contains("unsupported YAML") {
        return "yaml: found incompatible YAML document".to_owned();
    }
    if problem.contains("misplaced bracket") || problem.contains("unexpected EOF") {
        return at(line, 1, "did not find expected node content");
    }
    if let Some((_, problem)) = IN_GO.iter().find(|(word, _)| problem.contains(word)) {
        return at(line, 0, problem);
    }
    let is_grammar = problem.starts_with("while parsing a") && !problem.contains("scalar");
    let (_, reason) =
        problem.split_once(", ").filter(|_| problem.starts_with("while ")).unwrap_or(("", problem));
    at(line, usize::from(is_grammar), reason)
}

/// Returns a message with its line, or a line `above` it. Go does not name the first line.
fn at(line: usize, above: usize, problem: &str) -> String {
    match line.checked_sub(above) {
        Some(shown @ 1..) if line > 1 => format!("yaml: line {shown}: {problem}"),
        _ => format!("yaml: {problem}"),
    }
}
