//! Formats YAML in the style of kube-apiserver's YAML library.
//!
//! Source: `go.yaml.in/yaml/v3`, `encode.go`, `stringv`, and `emitterc.go`, `yaml_emitter_analyze_scalar`.

use super::ordered::Node;

/// Formats a value as YAML. Protobuf messages contain values of any type as YAML.
pub(super) fn yaml(node: &Node) -> String {
    let mut out = String::new();
    block(&mut out, node, 0);
    out
}

fn block(out: &mut String, node: &Node, depth: usize) {
    match node {
        Node::Members(members) if !members.is_empty() => {
            for (place, (name, value)) in members.iter().enumerate() {
                // The first member follows the dash of its list item.
                if place > 0 || out.is_empty() || out.ends_with('\n') {
                    out.push_str(&"  ".repeat(depth));
                }
                out.push_str(&scalar(name));
                out.push(':');
                match value {
                    Node::Members(inner) if !inner.is_empty() => {
                        out.push('\n');
                        block(out, value, depth + 1);
                    }
                    Node::List(inner) if !inner.is_empty() => {
                        out.push('\n');
                        block(out, value, depth);
                    }
                    Node::Null
                    | Node::Flag(_)
                    | Node::Number(_)
                    | Node::Text(_)
                    | Node::List(_)
                    | Node::Members(_) => {
                        out.push(' ');
                        block(out, value, depth);
                    }
                }
            }
        }
        Node::List(items) if !items.is_empty() => {
            for item in items {
                if out.is_empty() || out.ends_with('\n') {
                    out.push_str(&"  ".repeat(depth));
                }
                out.push_str("- ");
                block(out, item, depth + 1);
            }
        }
        Node::Members(_) => out.push_str("{}\n"),
        Node::List(_) => out.push_str("[]\n"),
        Node::Null => out.push_str("null\n"),
        Node::Flag(flag) => out.push_str(if *flag { "true\n" } else { "false\n" }),
        Node::Number(number) => {
            out.push_str(&number.to_string());
            out.push('\n');
        }
        Node::Text(text) => {
            out.push_str(&scalar(text));
            out.push('\n');
        }
    }
}

/// The words that YAML parsers do not parse as strings unless they are quoted.
const WORDS: [&str; 10] = ["true", "false", "yes", "no", "on", "off", "y", "n", "null", "~"];

/// Returns whether an unquoted string would be parsed as a different type, such as a number.
fn is_other(text: &str) -> bool {
    let is_number = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) && {
        let digits = text.replace('_', "");
        let unsigned = digits.trim_start_matches(['+', '-']);
        digits.parse::<f64>().is_ok() || ["0x", "0b", "0o"].iter().any(|begin| unsigned.starts_with(begin))
    };
    is_number || text.is_empty() || WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Returns whether a string can be written without quotes.
fn is_plain(text: &str) -> bool {
    let second_is_space = text.chars().nth(1).is_none_or(|c| c == ' ');
    let begins = |c: char| "#,[]{}&*!|>'\"%@` ".contains(c) || ("?:-".contains(c) && second_is_space);
    !text.starts_with(begins)
        && !text.starts_with("---")
        && !text.starts_with("...")
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
}

fn scalar(text: &str) -> String {
    if is_other(text) || text.contains(char::is_control) {
        serde_json::Value::from(text).to_string()
    } else if is_plain(text) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_quoted_when_necessary() {
        for (text, expected) in [
            ("", "\"\""),
            ("atomic", "atomic"),
            ("merge,retainKeys", "merge,retainKeys"),
            ("self.x > 1", "self.x > 1"),
            (".x", ".x"),
            ("*", "'*'"),
            ("'x'", "'''x'''"),
            ("a: b", "'a: b'"),
            ("No", "\"No\""),
            ("0x1", "\"0x1\""),
            ("1.5", "\"1.5\""),
        ] {
            assert_eq!(scalar(text), expected);
        }
    }
}
