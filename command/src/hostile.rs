//! Hostile strings for tests of reports and terminal output, and checks that reject an unsafe report.

use proptest::prelude::*;

/// Characters and sequences that are special to a terminal, XML, JSON, YAML, or Markdown.
const PIECES: [&str; 32] = [
    "\u{0}",
    "\u{7}",
    "\u{8}",
    "\n",
    "\r",
    "\t",
    "\u{b}",
    "\u{1b}[2J",
    "\u{1b}]0;title\u{7}",
    "\u{1b}[31m",
    "\u{7f}",
    "\u{85}",
    "\u{9b}31m",
    "\u{ad}",
    "\u{200f}",
    "\u{202e}",
    "\u{2028}",
    "\u{2066}",
    "\u{feff}",
    "\u{fffe}",
    "\u{ffff}",
    "\u{10ffff}",
    "]]>",
    "<!--",
    "&amp;",
    "<a b=\"c\">",
    "'\"\\",
    "```",
    "| x |",
    "::error::",
    "---\n- ",
    "a: b",
];

/// Generates strings that combine [`PIECES`] and arbitrary characters.
pub(crate) fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => proptest::sample::select(&PIECES[..]).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    proptest::collection::vec(piece, 1..8).prop_map(|pieces| pieces.concat())
}

/// Panics unless `document` is well-formed XML that contains only characters that XML 1.0 allows.
#[track_caller]
pub(crate) fn is_xml(document: &str) {
    use quick_xml::events::Event;

    assert_eq!(output::xml(document), document, "a character that XML forbids");
    let mut reader = quick_xml::Reader::from_str(document);
    let mut elements = 0;
    loop {
        let event = reader.read_event().unwrap_or_else(|error| panic!("{error}: {document}"));
        if matches!(event, Event::Eof) {
            break;
        }
        if let Event::Start(start) | Event::Empty(start) = event {
            elements += 1;
            for attribute in start.attributes() {
                let attribute = attribute.unwrap_or_else(|error| panic!("{error}: {document}"));
                let value = quick_xml::escape::unescape(std::str::from_utf8(&attribute.value).unwrap());
                value.unwrap_or_else(|error| panic!("{error}: {document}"));
            }
        }
    }
    assert!(elements > 0, "{document}");
}

/// Panics if `text` contains terminal control sequences other than admit's styles.
#[track_caller]
pub(crate) fn is_safe(text: &str) {
    let plain = anstream::adapter::strip_str(text).to_string();
    assert_eq!(output::lines(&plain), plain);
    assert_eq!(output::styled(text), text);
}
