//! Builds character classes in the syntax of the `regex` crate.

use super::node::write_character;
use super::property;

/// A class that is being parsed: its items as the `regex` crate writes them in brackets.
#[derive(Debug, Default)]
pub(super) struct Class {
    items: String,
}

/// The ASCII classes that Go writes with a backslash, such as `\d`.
const PERL: [(u8, &str, bool); 6] = [
    (b'd', "0-9", false),
    (b'D', "0-9", true),
    (b's', r"\t\n\f\r\x{20}", false),
    (b'S', r"\t\n\f\r\x{20}", true),
    (b'w', "0-9A-Za-z_", false),
    (b'W', "0-9A-Za-z_", true),
];

/// The ASCII classes that Go writes as `[:name:]`.
const POSIX: [(&str, &str); 14] = [
    ("alnum", "0-9A-Za-z"),
    ("alpha", "A-Za-z"),
    ("ascii", r"\x{0}-\x{7F}"),
    ("blank", r"\t\x{20}"),
    ("cntrl", r"\x{0}-\x{1F}\x{7F}"),
    ("digit", "0-9"),
    ("graph", "!-~"),
    ("lower", "a-z"),
    ("print", r"\x{20}-~"),
    ("punct", r"!-/:-@\[-`\{-~"),
    ("space", r"\t-\r\x{20}"),
    ("upper", "A-Z"),
    ("word", "0-9A-Za-z_"),
    ("xdigit", "0-9A-Fa-f"),
];

/// The first and the last surrogate; strings do not contain surrogates.
const SURROGATES: (u32, u32) = (0xD800, 0xDFFF);

impl Class {
    /// Adds the characters from `low` to `high`, where `low` is not greater than `high`.
    pub(super) fn add_range(&mut self, low: u32, high: u32) {
        for (low, high) in [(low, high.min(SURROGATES.0 - 1)), (low.max(SURROGATES.1 + 1), high)] {
            if let (true, Some(low), Some(high)) = (low <= high, char::from_u32(low), char::from_u32(high)) {
                // Writing into a String cannot fail.
                let _ = write_character(&mut self.items, low);
                self.items.push('-');
                let _ = write_character(&mut self.items, high);
            }
        }
    }

    /// Adds a class that has its own brackets.
    pub(super) fn add(&mut self, class: &str) {
        self.items.push_str(class);
    }

    /// Returns the class in brackets, with its flags.
    pub(super) fn finish(self, negated: bool, fold: bool) -> String {
        let caret = if negated { "^" } else { "" };
        match self.items.as_str() {
            // A class without items matches no character or, if negated, any character.
            "" if negated => r"[\x{0}-\x{10FFFF}]".to_owned(),
            "" => "[a&&b]".to_owned(),
            items if fold => format!("(?i:[{caret}{items}])"),
            items => format!("[{caret}{items}]"),
        }
    }
}

fn bracketed(items: &str, negated: bool) -> String {
    let caret = if negated { "^" } else { "" };
    format!("[{caret}{items}]")
}

/// Returns the class for an escape such as `\d`, or `None` for other letters.
pub(super) fn perl(letter: u8) -> Option<String> {
    let (_, items, negated) = PERL.iter().find(|(known, ..)| *known == letter)?;
    Some(bracketed(items, *negated))
}

/// Returns the class `[:name:]`, or `None` if the name is unknown.
pub(super) fn posix(name: &str) -> Option<String> {
    let (name, negated) = name.strip_prefix('^').map_or((name, false), |name| (name, true));
    let (_, items) = POSIX.iter().find(|(known, _)| *known == name)?;
    Some(bracketed(items, negated))
}

/// Returns the class `\p{name}`, or `None` if the name is unknown.
pub(super) fn property(name: &str, negated: bool) -> Option<String> {
    let (name, negated) = name.strip_prefix('^').map_or((name, negated), |name| (name, !negated));
    property::class(name, negated)
}
