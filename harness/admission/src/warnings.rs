//! Derives from the [`Record`] the warnings that a client receives.

use std::collections::BTreeSet;

use crate::event::{Event, Record};

/// The maximum total length, in characters, of a response's warnings. Longer warnings are truncated.
pub const TOTAL: usize = 4096;
/// The maximum length, in characters, of each truncated warning.
const EACH: usize = 256;

/// Returns the values of the `Warning` headers: `299 - "…"`.
pub fn headers(record: &Record) -> Vec<String> {
    encode(texts(record))
}

/// Returns the warnings of webhooks, policies, and in-tree plugins, without escaping.
pub fn texts(record: &Record) -> impl Iterator<Item = &String> {
    record.events.iter().flat_map(|event| match event {
        Event::Called(called) => called.warnings.as_slice(),
        Event::PluginRemarked { warnings, .. } => warnings,
        Event::Policies(checked) => &checked.warnings,
        Event::Skipped { .. }
        | Event::Conditions(_)
        | Event::PluginChanged { .. }
        | Event::PluginRefused { .. }
        | Event::MatchFailed { .. } => &[],
    })
}

/// Encodes warnings as values of `Warning` headers, omitting duplicates and warnings with control characters.
///
/// If the warnings exceed 4096 characters in total, each is truncated to 256 characters.
///
/// Source: apiserver pkg/endpoints/filters/warning.go; apimachinery pkg/util/net/http.go, `NewWarningHeader`.
/// Rule: WRN-01, WRN-02, WRN-03.
pub fn encode<'a>(texts: impl IntoIterator<Item = &'a String>) -> Vec<String> {
    let mut recorded = BTreeSet::new();
    let mut ordered: Vec<&str> = Vec::new();
    let mut headers = Vec::new();
    let mut written = 0;
    let mut cutting = false;
    for text in texts {
        if text.is_empty() || (cutting && written >= TOTAL) || !recorded.insert(text) {
            continue;
        }
        ordered.push(text);
        let sent = if cutting { cut(text) } else { text };
        let Some(header) = header(sent) else { continue };
        let length = sent.chars().count();
        if cutting || written + length <= TOTAL {
            written += length;
            headers.push(header);
            continue;
        }
        cutting = true;
        headers.clear();
        written = 0;
        for text in ordered.iter().map(|text| cut(text)) {
            if let Some(header) = self::header(text) {
                written += text.chars().count();
                headers.push(header);
            }
        }
    }
    headers
}

/// Returns the decoded text of a `Warning` header of the form `299 - "text"`; `None` for other headers.
pub fn decode(header: &str) -> Option<String> {
    let quoted = header.split_once('"')?.1;
    let mut text = String::new();
    let mut characters = quoted.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => return Some(text),
            '\\' => text.extend(characters.next()),
            other => text.push(other),
        }
    }
    None
}

fn cut(text: &str) -> &str {
    text.char_indices().nth(EACH).and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

fn header(text: &str) -> Option<String> {
    let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
    (!text.contains(char::is_control)).then(|| format!("299 - \"{quoted}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(texts: &[&str], expect: &[&str]) {
        let texts: Vec<String> = texts.iter().map(|&text| text.to_owned()).collect();
        assert_eq!(encode(&texts), expect);
    }

    #[test]
    fn a_warning_is_quoted_and_deduplicated() {
        check(&["a \"b\" \\c", " ", "é", "é"], &[r#"299 - "a \"b\" \\c""#, "299 - \" \"", "299 - \"é\""]);
    }

    #[test]
    fn empty_texts_and_control_characters_are_dropped() {
        check(&["", "a\nb", "a\tb", "\u{7f}", "\u{85}", "ok"], &["299 - \"ok\""]);
    }

    #[test]
    fn exceeding_the_total_length_truncates_all_warnings() {
        let warning = |letter: &str, length| letter.repeat(length);
        let lengths = |texts: &[String]| -> Vec<usize> {
            encode(texts).iter().map(|header| header.chars().count() - "299 - \"\"".len()).collect()
        };
        assert_eq!(lengths(&[warning("a", 4000), warning("b", 96)]), [4000, 96]);
        assert_eq!(lengths(&[warning("a", 4000), warning("b", 97), warning("c", 300)]), [256, 97, 256]);
        let many: Vec<String> = (0..40).map(|number| format!("{number:>300}")).collect();
        assert_eq!(lengths(&many), [256; 16]);
    }

    #[test]
    fn a_header_round_trips() {
        let check =
            |header: &str, text: Option<&str>| assert_eq!(decode(header).as_deref(), text, "{header}");
        check(r#"299 - "say \"please\"""#, Some(r#"say "please""#));
        check(r#"299 - "a \\ b" "Sat, 21 Nov 2026""#, Some(r"a \ b"));
        check("299 - nothing", None);
        check(r#"299 - "open"#, None);
    }
}
