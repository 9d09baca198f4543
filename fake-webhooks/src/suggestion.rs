//! Suggests names that are similar to an unknown name.

use std::collections::BTreeSet;

/// The minimum similarity of two words, from 0 to 1.
const SIMILAR: f64 = 0.6;

/// The similarity of a synonym, or of the same words in a different order.
///
/// If there is such a name, less similar names are not suggested.
const CERTAIN: f64 = 1.0;

/// The maximum length of a name in bytes, because the comparison takes quadratic time.
const LONGEST_NAME: usize = 64;

/// The maximum number of suggestions.
const MAX: usize = 3;

/// Words that users try, and the behaviors that they mean.
const SYNONYMS: [(&str, &str); 12] = [
    ("add-label", "always-mutate"),
    ("crash", "bad-response"),
    ("error", "bad-response"),
    ("hang", "timeout"),
    ("json-patch", "patch"),
    ("label", "always-mutate"),
    ("latency", "delay"),
    ("refuse", "deny"),
    ("reject", "deny"),
    ("sleep", "delay"),
    ("slow", "delay"),
    ("status", "bad-response"),
];

/// Returns the names that are most similar to `text`, best first.
pub(crate) fn similar<'a>(text: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    if text.len() > LONGEST_NAME {
        return Vec::new();
    }
    let mut ranked: Vec<(f64, &str)> = names
        .into_iter()
        .map(|name| (similarity(text, name), name))
        .filter(|(similarity, _)| *similarity >= SIMILAR)
        .collect();
    ranked.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let is_certain = ranked.first().is_some_and(|(best, _)| *best >= CERTAIN);
    ranked.retain(|(similarity, _)| !is_certain || *similarity >= CERTAIN);
    ranked.into_iter().take(MAX).map(|(_, name)| name).collect()
}

fn similarity(text: &str, name: &str) -> f64 {
    let (text, name) = (text.to_lowercase(), name.to_lowercase());
    let words = |text: &str| text.split(['-', '_', ' ']).map(str::to_owned).collect::<BTreeSet<_>>();
    let is_synonym = SYNONYMS.iter().any(|(word, meant)| *word == text && *meant == name);
    if is_synonym || words(&text) == words(&name) {
        CERTAIN
    } else if text.len() > 1 && name.starts_with(&text) {
        0.9
    } else {
        strsim::normalized_damerau_levenshtein(&text, &name)
    }
}

/// Returns the question `did you mean …? `, or an empty string without suggestions.
pub(crate) fn question(suggestions: &[String]) -> String {
    match suggestions {
        [] => String::new(),
        [one] => format!("did you mean {one}? "),
        [one, other] => format!("did you mean {one} or {other}? "),
        [others @ .., last] => format!("did you mean {}, or {last}? ", others.join(", ")),
    }
}

/// Rewrites a message about a YAML value as a plain sentence, and suggests a name for an unknown one.
///
/// The message is from serde or the YAML parser, without its position.
pub fn plain_yaml_message(message: &str) -> String {
    for (kind, plain) in [("unknown variant `", "value"), ("unknown field `", "field")] {
        if let Some((unknown, expected)) =
            message.strip_prefix(kind).and_then(|rest| rest.split_once("`, expected "))
        {
            let names = expected.strip_prefix("one of ").unwrap_or(expected).split(", ");
            let names = names.flat_map(|name| name.split(" or ")).map(|name| name.trim_matches('`'));
            let similar: Vec<String> =
                similar(unknown, names).into_iter().map(|name| format!("`{name}`")).collect();
            return match question(&similar).trim_end() {
                "" => format!("unknown {plain} `{unknown}`: expected {expected}"),
                question => format!("unknown {plain} `{unknown}`: {question} Expected {expected}"),
            };
        }
    }
    if let Some(rest) = message.strip_prefix("duplicate mapping key: ") {
        let key = rest.split(", set ").next().unwrap_or(rest);
        return format!("duplicate key `{key}`: remove it, or rename it");
    }
    match message {
        "expected mapping start" => {
            "expected a map, such as `{field: value}`, found another value".to_owned()
        }
        "expected sequence start" => {
            "expected a list, such as `[first, second]`, found another value".to_owned()
        }
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_about_unknown_names_suggest_similar_ones() {
        for (message, expected) in [
            (
                "unknown variant `slow`, expected one of `allow`, `deny`, `delay`",
                "unknown value `slow`: did you mean `delay`? Expected one of `allow`, `deny`, `delay`",
            ),
            (
                "unknown field `behaviour`, expected one of `name`, `behavior`",
                "unknown field `behaviour`: did you mean `behavior`? Expected one of `name`, `behavior`",
            ),
            (
                "unknown field `behaviour`, expected one of name, type, behavior",
                "unknown field `behaviour`: did you mean `behavior`? Expected one of name, type, behavior",
            ),
            (
                "unknown variant `uid-wrong`, expected one of `wrong-uid`, `missing-uid`",
                "unknown value `uid-wrong`: did you mean `wrong-uid`? Expected one of `wrong-uid`, `missing-uid`",
            ),
            ("unknown field `x`, expected `name` or `type`", "unknown field `x`: expected `name` or `type`"),
            ("expected mapping start", "expected a map, such as `{field: value}`, found another value"),
            (
                "duplicate mapping key: type, set DuplicateKeyPolicy in Options if acceptable",
                "duplicate key `type`: remove it, or rename it",
            ),
            ("missing field `name`", "missing field `name`"),
        ] {
            assert_eq!(plain_yaml_message(message), expected);
        }
    }
}
