//! The Unicode character properties that Go supports in regular expressions.
//!
//! Source: Go regexp/syntax/parse.go, `unicodeTable`, and unicode/tables.go of Unicode 15.

/// The names of categories. The `regex` crate uses the same names.
const CATEGORIES: [&str; 37] = [
    "C", "Cc", "Cf", "Cn", "Co", "Cs", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N", "Nd",
    "Nl", "No", "P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Z", "Zl", "Zp",
    "Zs",
];

/// The names of scripts.
///
/// Names with an underscore are missing: Go ignores underscores and therefore does not find such names.
const SCRIPTS: &str = "Adlam Ahom Arabic Armenian Avestan Balinese Bamum Batak Bengali Bhaiksuki Bopomofo Brahmi \
    Braille Buginese Buhid Carian Chakma Cham Cherokee Chorasmian Common Coptic Cuneiform Cypriot Cyrillic Deseret \
    Devanagari Dogra Duployan Elbasan Elymaic Ethiopic Georgian Glagolitic Gothic Grantha Greek Gujarati Gurmukhi Han \
    Hangul Hanunoo Hatran Hebrew Hiragana Inherited Javanese Kaithi Kannada Katakana Kawi Kharoshthi Khmer Khojki \
    Khudawadi Lao Latin Lepcha Limbu Lisu Lycian Lydian Mahajani Makasar Malayalam Mandaic Manichaean Marchen \
    Medefaidrin Miao Modi Mongolian Mro Multani Myanmar Nabataean Nandinagari Newa Nko Nushu Ogham Oriya Osage Osmanya \
    Palmyrene Phoenician Rejang Runic Samaritan Saurashtra Sharada Shavian Siddham Sinhala Sogdian Soyombo Sundanese \
    Syriac Tagalog Tagbanwa Takri Tamil Tangsa Tangut Telugu Thaana Thai Tibetan Tifinagh Tirhuta Toto Ugaritic Vai \
    Vithkuqi Wancho Yezidi Yi";

/// Alternative names of categories, without underscores, and the names that they stand for.
const ALIASES: [(&str, &str); 42] = [
    ("Casedletter", "LC"),
    ("Closepunctuation", "Pe"),
    ("Combiningmark", "M"),
    ("Connectorpunctuation", "Pc"),
    ("Control", "Cc"),
    ("Currencysymbol", "Sc"),
    ("Dashpunctuation", "Pd"),
    ("Decimalnumber", "Nd"),
    ("Enclosingmark", "Me"),
    ("Finalpunctuation", "Pf"),
    ("Format", "Cf"),
    ("Initialpunctuation", "Pi"),
    ("Letter", "L"),
    ("Letternumber", "Nl"),
    ("Lineseparator", "Zl"),
    ("Lowercaseletter", "Ll"),
    ("Mark", "M"),
    ("Mathsymbol", "Sm"),
    ("Modifierletter", "Lm"),
    ("Modifiersymbol", "Sk"),
    ("Nonspacingmark", "Mn"),
    ("Number", "N"),
    ("Openpunctuation", "Ps"),
    ("Other", "C"),
    ("Otherletter", "Lo"),
    ("Othernumber", "No"),
    ("Otherpunctuation", "Po"),
    ("Othersymbol", "So"),
    ("Paragraphseparator", "Zp"),
    ("Privateuse", "Co"),
    ("Punctuation", "P"),
    ("Separator", "Z"),
    ("Spaceseparator", "Zs"),
    ("Spacingmark", "Mc"),
    ("Surrogate", "Cs"),
    ("Symbol", "S"),
    ("Titlecaseletter", "Lt"),
    ("Unassigned", "Cn"),
    ("Uppercaseletter", "Lu"),
    ("Cntrl", "Cc"),
    ("Digit", "Nd"),
    ("Punct", "P"),
];

/// Returns the class of a property for use in brackets, or `None` if Go does not support the name.
pub(super) fn class(name: &str, negated: bool) -> Option<String> {
    let name = canonical(name);
    let assigned_later = r"\P{Age:15.0}";
    let (class, negated) = match name.as_str() {
        "Any" => (r"\x{0}-\x{10FFFF}".to_owned(), negated),
        "Assigned" => (category("Cn"), !negated),
        "Ascii" => (r"\x{0}-\x{7F}".to_owned(), negated),
        "Lc" => (category("LC"), negated),
        known if CATEGORIES.contains(&known) => (category(known), negated),
        known if SCRIPTS.split_whitespace().any(|script| script == known) => {
            (format!(r"\p{{sc:{known}}}--{assigned_later}"), negated)
        }
        other => {
            let (_, known) = ALIASES.iter().find(|(alias, _)| *alias == other)?;
            (category(known), negated)
        }
    };
    let caret = if negated { "^" } else { "" };
    Some(format!("[{caret}{class}]"))
}

/// Returns a category of Unicode 15. Characters that were assigned later count as unassigned.
fn category(name: &str) -> String {
    match name {
        // Strings do not contain surrogates, so the class matches no character.
        "Cs" => r"a&&b".to_owned(),
        "C" | "Cn" => format!(r"\p{{{name}}}\P{{Age:15.0}}"),
        _ => format!(r"\p{{{name}}}--\P{{Age:15.0}}"),
    }
}

/// Returns the name with an uppercase first letter and lowercase letters, and without spaces, hyphens, or underscores.
fn canonical(name: &str) -> String {
    let mut canonical = String::with_capacity(name.len());
    for letter in name.chars().filter(|letter| !matches!(letter, '_' | '-' | ' ')) {
        canonical.push(if canonical.is_empty() {
            letter.to_ascii_uppercase()
        } else {
            letter.to_ascii_lowercase()
        });
    }
    canonical
}
