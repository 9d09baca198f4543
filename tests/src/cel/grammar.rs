//! Defines the grammar of random expressions: for each kind of value, the patterns that produce it.
//!
//! A row is `KIND | PATTERN`. In a pattern, `{KIND}` represents an expression of that kind, and `{KIND/A,B}` an
//! expression in which `$1` and `$2` are variables of the kinds A and B. In a row, `T` represents each kind in
//! [`ELEMENTS`], and `N` each number.

use std::collections::BTreeMap;

use super::literals::LITERALS;
use super::rows::ROWS;

/// The kinds of elements of lists, maps, and optional values.
const ELEMENTS: [&str; 7] = ["int", "string", "double", "bool", "uint", "dyn", "duration"];
/// The variables that occur only in admission conditions.
const ADMISSION: [&str; 4] = ["object", "oldObject", "request.", "authorizer"];
const NUMBERS: [&str; 3] = ["int", "uint", "double"];

/// All patterns, by the kind that they produce.
#[derive(Debug)]
pub(crate) struct Grammar {
    kinds: BTreeMap<String, Vec<Pattern>>,
}

/// A pattern, as a sequence of pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    pub(crate) elements: Vec<Element>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    Text(String),
    /// The name of a variable that the pattern introduces. Variables are counted from 0.
    Variable(usize),
    /// A placeholder for an expression of a kind, with additional variables of the given kinds in scope.
    Hole {
        kind: String,
        variables: Vec<String>,
    },
}

impl Pattern {
    /// Returns whether the pattern has no holes.
    pub(crate) fn is_leaf(&self) -> bool {
        !self.elements.iter().any(|element| matches!(element, Element::Hole { .. }))
    }

    fn parse(text: &str) -> Self {
        let mut elements = Vec::new();
        let mut rest = text;
        while let Some(start) = rest.find(['{', '$']) {
            let (before, found) = rest.split_at(start);
            if !before.is_empty() {
                elements.push(Element::Text(before.to_owned()));
            }
            let hole = found.strip_prefix('{').and_then(|inner| inner.split_once('}'));
            // `{{` and `}}` are literal braces of the expression.
            if let Some(after) = found.strip_prefix("{{") {
                elements.push(Element::Text("{".to_owned()));
                rest = after;
            } else if let Some((hole, after)) = hole {
                let (kind, variables) = hole.split_once('/').unwrap_or((hole, ""));
                let variables =
                    variables.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
                elements.push(Element::Hole { kind: kind.to_owned(), variables });
                rest = after;
            } else {
                let mut letters = found.chars();
                let number = letters.nth(1).and_then(|digit| digit.to_digit(10)).unwrap_or(1);
                elements.push(Element::Variable(number as usize - 1));
                rest = letters.as_str();
            }
        }
        if !rest.is_empty() {
            elements.push(Element::Text(rest.to_owned()));
        }
        for element in &mut elements {
            if let Element::Text(text) = element {
                *text = text.replace("}}", "}");
            }
        }
        Self { elements }
    }
}

impl Grammar {
    /// Returns the grammar for admission conditions.
    pub(crate) fn new() -> Self {
        Self::of_rows(ROWS.lines())
    }

    /// Returns the grammar for the rules of a schema, from its rows (see [`super::schemas::rows`]).
    pub(crate) fn of_schema(rows: &str) -> Self {
        let is_of_admission = |row: &&str| ADMISSION.iter().any(|variable| row.contains(variable));
        Self::of_rows(ROWS.lines().filter(|row| !is_of_admission(row)).chain(rows.lines()))
    }

    fn of_rows<'r>(rows: impl Iterator<Item = &'r str>) -> Self {
        let mut kinds: BTreeMap<String, Vec<Pattern>> = BTreeMap::new();
        for row in rows.filter(|row| !row.trim().is_empty()) {
            let (kind, pattern) = row.split_once(" | ").unwrap_or((row, ""));
            for element in instances(row) {
                let kind = put(kind, element).trim().to_owned();
                kinds.entry(kind).or_default().push(Pattern::parse(&put(pattern, element)));
            }
        }
        for (kind, literals) in LITERALS {
            let patterns = kinds.entry((*kind).to_owned()).or_default();
            let leaf = |text: &&str| Pattern { elements: vec![Element::Text((*text).to_owned())] };
            patterns.extend(literals.iter().map(leaf));
        }
        Self { kinds }
    }

    /// Returns the patterns of `kind` or, if there are none, the patterns of `dyn`.
    pub(crate) fn patterns(&self, kind: &str) -> &[Pattern] {
        self.kinds.get(kind).or_else(|| self.kinds.get("dyn")).map_or(&[], Vec::as_slice)
    }

    /// Returns the names of all kinds.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = &str> {
        self.kinds.keys().map(String::as_str)
    }
}

/// Returns the replacements for `T` or `N` in a row, or a single `None` if the row has neither.
fn instances(row: &str) -> Vec<Option<(char, &'static str)>> {
    let has = |letter| is_parameter(row, letter);
    if has('T') {
        ELEMENTS.iter().map(|kind| Some(('T', *kind))).collect()
    } else if has('N') {
        NUMBERS.iter().map(|kind| Some(('N', *kind))).collect()
    } else {
        vec![None]
    }
}

/// Returns whether `letter` occurs in `row` as a parameter, that is, separated from other letters.
fn is_parameter(row: &str, letter: char) -> bool {
    places(row, letter).next().is_some()
}

fn places(row: &str, letter: char) -> impl Iterator<Item = usize> {
    let bytes = row.as_bytes();
    row.match_indices(letter).map(|(place, _)| place).filter(move |place| {
        let before = place.checked_sub(1).map_or(b' ', |before| bytes[before]);
        let after = bytes.get(place + 1).copied().unwrap_or(b' ');
        let opens = matches!(before, b'{' | b'(' | b',' | b'/') || *place == 0;
        opens && matches!(after, b'}' | b')' | b',' | b'/' | b' ')
    })
}

fn put(text: &str, instance: Option<(char, &str)>) -> String {
    let Some((letter, kind)) = instance else { return text.to_owned() };
    let places: Vec<usize> = places(text, letter).collect();
    let characters = text.char_indices();
    characters.fold(String::new(), |mut made, (place, character)| {
        if places.contains(&place) {
            made.push_str(kind);
        } else {
            made.push(character);
        }
        made
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_with_a_parameter_is_one_for_each_kind() {
        assert_eq!(instances("T | {list(T)}[{int}]").len(), ELEMENTS.len());
        assert_eq!(put("{list(T)}[{int}]", Some(('T', "bool"))), "{list(bool)}[{int}]");
        assert_eq!(instances("string | Text").len(), 1);
    }

    #[test]
    fn a_pattern_has_text_holes_and_variables() {
        let pattern = Pattern::parse("{list(int)}.all($1, {bool/int}) == {{'a': {int}}}");
        let hole = |kind: &str, variables: &[&str]| Element::Hole {
            kind: kind.to_owned(),
            variables: variables.iter().map(|it| (*it).to_owned()).collect(),
        };
        let text = |text: &str| Element::Text(text.to_owned());
        let expected = vec![
            hole("list(int)", &[]),
            text(".all("),
            Element::Variable(0),
            text(", "),
            hole("bool", &["int"]),
            text(") == "),
            text("{"),
            text("'a': "),
            hole("int", &[]),
            text("}"),
        ];
        assert_eq!(pattern.elements, expected);
    }

    #[test]
    fn every_kind_has_a_pattern_without_holes_and_every_hole_a_kind() {
        let grammar = Grammar::new();
        let mut missing = Vec::new();
        for (kind, patterns) in &grammar.kinds {
            if !patterns.iter().any(Pattern::is_leaf) {
                missing.push(format!("{kind} has no leaf"));
            }
            for element in patterns.iter().flat_map(|pattern| &pattern.elements) {
                let Element::Hole { kind: hole, variables } = element else { continue };
                for named in variables.iter().chain([hole]) {
                    if !grammar.kinds.contains_key(named) {
                        missing.push(format!("{kind} needs {named}, of which there is no row"));
                    }
                }
            }
        }
        assert!(missing.is_empty(), "{}", missing.join("\n"));
    }
}
