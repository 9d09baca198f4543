//! Finds names that are similar to an unknown name.

use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_types::schema::{Kind, MESSAGES};

/// The minimum similarity of two names, from 0 to 1.
const SIMILAR: f64 = 0.6;

/// The maximum length of a name that is compared. The comparison of two long names takes seconds.
const MAX_LENGTH: usize = 253;

/// Returns the name that is most similar to `text`; `None` if no name is similar.
pub fn most_similar<'a>(text: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if text.len() > MAX_LENGTH {
        return None;
    }
    let similarity = |name: &str| strsim::normalized_damerau_levenshtein(text, name);
    let similar = names
        .into_iter()
        .filter(|name| name.len() <= MAX_LENGTH)
        .map(|name| (similarity(name), name))
        .filter(|(likeness, _)| *likeness >= SIMILAR);
    similar.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, name)| name)
}

/// Returns ` (did you mean NAME?)` for the end of a message; empty without a similar name.
pub fn suggestion(similar: Option<&str>) -> String {
    similar.map(|similar| format!(" (did you mean {similar}?)")).unwrap_or_default()
}

/// Returns the field that is most similar to the unknown field at `path`, such as `spec.containers[0].imag`, in objects of
/// `kind`.
///
/// Returns `None` for custom resources.
pub fn similar_field(kind: &GroupVersionKind, path: &str) -> Option<&'static str> {
    let mut names: Vec<&str> = path.split('.').filter(|name| !name.is_empty()).collect();
    let unknown = names.pop()?;
    let mut message = MESSAGES.get(MESSAGES.of_kind(kind)?);
    for name in names {
        // A list item has a position or a key in brackets.
        let name = name.split('[').next().unwrap_or_default();
        let Kind::Message(id) = message.member(name)?.kind else { return None };
        message = MESSAGES.get(id);
    }
    most_similar(unknown, message.members().iter().map(|field| field.name))
}

/// Sorts names by their edit distance from `text`, so that the most similar name is the first.
pub fn by_distance<'a>(text: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<&str> = names.into_iter().collect();
    names.sort_by_cached_key(|name| strsim::damerau_levenshtein(text, name));
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_with_the_smallest_edit_distance_is_the_first() {
        let names = ["payments", "shipping", "shop"];
        assert_eq!(by_distance("shpo", names), ["shop", "shipping", "payments"]);
        assert_eq!(most_similar("shpo", names), Some("shop"));
        assert_eq!(most_similar("paymets", names), Some("payments"));
        assert_eq!(most_similar("kube-system", names), None);
        let long = "a".repeat(1 << 20);
        assert_eq!(most_similar(&long, [long.as_str()]), None);
        assert_eq!(most_similar("a", [long.as_str()]), None);
    }
}
