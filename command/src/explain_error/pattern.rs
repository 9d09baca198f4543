//! Compiles patterns of messages.

use regex::Regex;

/// Compiles a pattern in which `\d`, `\w`, `\s`, and `\S` match only ASCII digits, word characters, and white space.
///
/// With the classes of Unicode, compiling all patterns takes a third of a short run, and names in messages are ASCII.
pub(super) fn compile(text: &str) -> Result<Regex, regex::Error> {
    let classes =
        [(r"\d", "[0-9]"), (r"\w", "[0-9A-Za-z_]"), (r"\s", r"[\t-\r\x20]"), (r"\S", r"[^\t-\r\x20]")];
    let text = classes.iter().fold(text.to_owned(), |text, (class, ascii)| text.replace(class, ascii));
    Regex::new(&text)
}

/// Compiles a constant pattern as [`compile`] does.
pub(super) fn pattern(text: &str) -> Regex {
    compile(text).unwrap_or_else(|error| panic!("{error}"))
}

#[cfg(test)]
mod tests {
    use super::pattern;

    #[test]
    fn classes_match_ascii_alone_and_in_brackets() {
        let regex = pattern(r"(?x)^ (?<word>[\w.]+) \ (?<number>\d+) \s (?<rest>[^,\s]+),(?<last>\S+) $");
        let captures = regex.captures("a_1.B 23\tgröße,größe").expect("it matches");
        let groups = ["word", "number", "rest", "last"].map(|name| &captures[name]);
        assert_eq!(groups, ["a_1.B", "23", "größe", "größe"]);
        for other in ["größe 23 a,b", "a ٣ a,b", "a 1 a b,c", "a 1 a,b c"] {
            assert!(!regex.is_match(other), "{other}");
        }
    }
}
