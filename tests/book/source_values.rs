//! Reads the values of constants from the sources, to compare them with the documentation.

use std::collections::BTreeMap;
use std::path::Path;

use regex::Regex;

use super::read;

/// The values of constants by name, which later constants can refer to.
#[derive(Default)]
pub(crate) struct SourceValues(BTreeMap<String, u64>);

impl SourceValues {
    /// Returns the value of a constant or field that is given as a file and a name; a time is in seconds.
    pub(crate) fn of(&mut self, place: &str) -> u64 {
        let (file, name) = place.split_once(' ').expect("a file and a name");
        let pattern = format!(r"(?:const {name}: [\w:]+ = |\n +{name}: )([^;,\n]+)[;,]");
        let source = read(Path::new(file));
        let found = Regex::new(&pattern).expect("a valid expression");
        let values: Vec<&str> =
            found.captures_iter(&source).filter_map(|found| Some(found.get(1)?.as_str())).collect();
        let values: Vec<u64> = values.into_iter().filter_map(|text| self.evaluate(text)).collect();
        let [value] = values[..] else { panic!("{place}: {values:?}") };
        self.0.insert(name.to_owned(), value);
        value
    }

    /// Evaluates a product, a shift, or `Duration::from_secs`.
    fn evaluate(&self, text: &str) -> Option<u64> {
        let text = text.trim();
        if let Some(seconds) = text.strip_prefix("Duration::from_secs(") {
            return self.evaluate(seconds.strip_suffix(')')?);
        }
        if let Some((number, bits)) = text.split_once(" << ") {
            return Some(self.evaluate(number)? << self.evaluate(bits)?);
        }
        if let Some((first, rest)) = text.split_once(" * ") {
            return Some(self.evaluate(first)? * self.evaluate(rest)?);
        }
        let name = text.rsplit("::").next()?;
        self.0.get(name).copied().or_else(|| text.replace('_', "").parse().ok())
    }
}

/// Returns the ways in which the documentation can state a value.
pub(crate) fn forms(value: u64) -> Vec<String> {
    let digits = value.to_string();
    let grouped: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    let mut forms = vec![grouped.join(",")];
    for (unit, bits) in [("KiB", 10), ("MiB", 20), ("GiB", 30)] {
        if value.trailing_zeros() >= bits {
            forms.push(format!("{} {unit}", value >> bits));
        }
    }
    forms
}

/// Returns whether a text contains a number that is not part of a longer one or has a different unit.
pub(crate) fn states(text: &str, number: &str) -> bool {
    text.match_indices(number).any(|(position, _)| {
        let (before, after) = (&text[..position], &text[position + number.len()..]);
        let is_digit = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_digit());
        let continues = is_digit(after.trim_start_matches([',', '.']).chars().next());
        let has_unit = [" KiB", " MiB", " GiB"].iter().any(|unit| after.starts_with(unit));
        !is_digit(before.trim_end_matches([',', '.']).chars().next_back()) && !continues && !has_unit
    })
}

#[test]
fn values_are_evaluated_and_found_in_text() {
    let mut values = SourceValues::default();
    values.0.insert("BASE".to_owned(), 3);
    for (text, expected) in [
        ("10_000", Some(10_000)),
        ("64 << 10", Some(65_536)),
        ("3 * 1024 * 1024", Some(3 << 20)),
        ("2 * crate::limits::BASE", Some(6)),
        ("Duration::from_secs(34)", Some(34)),
        ("usize::MAX", None),
    ] {
        assert_eq!(values.evaluate(text), expected, "{text}");
    }
    assert_eq!(forms(65_536), ["65,536", "64 KiB"]);
    assert_eq!(forms(100), ["100"]);
    for (text, number, expected) in [
        ("10,000 operations and 250,000 JSON values", "250,000", true),
        ("32 s, as in kube-apiserver", "32", true),
        ("250,000 values", "50,000", false),
        ("250,000 values", "250", false),
        ("8 MiB in total", "8", false),
        ("8 MiB in total", "8 MiB", true),
        ("18 MiB in total", "8 MiB", false),
    ] {
        assert_eq!(states(text, number), expected, "{text} {number}");
    }
}
