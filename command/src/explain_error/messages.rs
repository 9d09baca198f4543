//! Splits logs and kubectl's output into messages.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::explanation::explain_message;
use super::pattern::pattern;

/// Matches the beginning of a line that begins a message.
///
/// Such a line begins with a time, a klog header, a word such as `Error`, a row of `kubectl get events`, or a result of
/// kubectl.
static BEGIN: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"(?x)^ (?:
            [IWEF]\d{4}\  | \[?\d{4}[-/]\d\d[-/]\d\d | \d\d:\d\d:\d\d | [A-Z][a-z]{2}\ [\ \d]\d\ \d\d:\d\d
            | \{ | (?i: error | warning | info | fatal )\b | time= | level= | ts=
            | LAST\ SEEN\b | Normal\s\s | (?: \S+\s+ )? (?: \d+[smhdy] )+ (?: \s\( .*? \) )? \s+ (?: Normal | Warning )\s
            | Unable\ to\  | The\ \S+\ "[^"]*"\ is\ invalid | \S+\ "[^"]*"\ is\ (?: invalid | forbidden ):
            | [\w.-]+/[\w.-]+\ (?: \w+ed | unchanged )\b
        )"#,
    )
});

/// Matches text that occurs only at the beginning of a message.
static MARKER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"Internal error occurred:|failed calling webhook "|conversion webhook for |admission webhook "|ValidatingAdmissionPolicy '|policy '[^']*' with binding '|policy "[^"]*" denied request: "#,
    )
});

/// Matches the beginning of a denial by a mutating policy.
static MUTATING_POLICY: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"\bpolicy (?:'[^']*' with binding '|"[^"]*" denied request: )"#));

/// Matches a message that ends within a name or a URL, because a terminal broke the line there.
static WITHIN_WORD: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"(?:webhook|Post|service|[Ll]ease) "[^"\s]*$"#));

/// The message of log entries about errors that do not fail the request.
///
/// Source: apimachinery pkg/util/runtime/runtime.go, `logError`.
pub(super) const UNHANDLED: &str = "Unhandled Error";

/// The minimum number of characters in lines that a terminal may have broken within words.
const MIN_WIDTH: usize = 40;

/// The maximum length of a message, in bytes, so that a log without timestamps is not read as a single message.
const MAX_LENGTH: usize = 16 << 10;

/// A message and the line of the text on which it begins, starting with 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LocatedMessage {
    pub(super) text: String,
    pub(super) line: u64,
}

/// A message, and the lengths of the lines that it consists of.
#[derive(Default)]
struct Message {
    text: String,
    /// The line on which the message begins, starting with 1.
    line: u64,
    /// The text without added spaces between the lines, as a terminal breaks it within words.
    unspaced: String,
    /// The number of characters in the first line.
    width: usize,
    /// Whether each line except the last one has this number of characters.
    is_rectangular: bool,
    lines: usize,
    /// The number of characters in the last line.
    last: usize,
    /// Whether the last line ends with a space.
    ends_with_space: bool,
    /// Whether the next line cannot continue the message.
    is_closed: bool,
}

/// Splits a log into messages: lines with their continuation lines, and the strings in lines that are JSON.
pub(super) fn messages(text: &str) -> Vec<LocatedMessage> {
    let mut messages: Vec<Message> = Vec::new();
    for (number, raw) in (1..).zip(text.lines()) {
        // Terraform draws a bar in front of its errors.
        let line = raw.trim_start_matches(['│', '╷', '╵', '|', ' ', '\t']).trim_end();
        if let Ok(value @ Value::Object(_)) = serde_json::from_str(line) {
            let mut strings = Vec::new();
            collect_strings(&value, &mut strings);
            if value.get("msg").is_some_and(|message| message == UNHANDLED) {
                strings = vec![strings.join(" ")];
            }
            messages.extend(strings.into_iter().map(|text| Message {
                text,
                line: number,
                is_closed: true,
                ..Message::default()
            }));
            continue;
        }
        // Some webhooks write a blank line before their message.
        let is_introduction = |message: &Message| message.text.ends_with("denied the request:");
        if line.is_empty() && messages.last().is_some_and(is_introduction) {
            continue;
        }
        let (line, length) = (unquoted(line), raw.chars().count());
        match messages.last_mut() {
            Some(message) if message.is_continued_by(&line) => {
                message.append(&line, raw);
            }
            _ => messages.push(Message {
                unspaced: line.clone(),
                text: line,
                line: number,
                width: length,
                is_rectangular: true,
                lines: 1,
                last: length,
                ends_with_space: raw.ends_with(' '),
                is_closed: false,
            }),
        }
    }
    let located = |message: Message| {
        let line = message.line;
        separated(message.best()).into_iter().map(move |text| LocatedMessage { text, line })
    };
    messages.into_iter().flat_map(located).collect()
}

impl Message {
    /// Returns the message. Its lines are joined without spaces only if otherwise no cause is found.
    fn best(&self) -> &str {
        let is_known = |text: &str| explain_message(text).is_some();
        if self.lines > 1 && !is_known(&self.text) && is_known(&self.unspaced) {
            return &self.unspaced;
        }
        &self.text
    }

    fn is_continued_by(&self, line: &str) -> bool {
        !self.is_closed
            && self.text.len() <= MAX_LENGTH
            && is_incomplete(&self.text)
            && !begins_message(&self.text, line)
    }

    fn append(&mut self, line: &str, raw: &str) {
        let length = raw.chars().count();
        let has_space = raw.starts_with(' ') || self.ends_with_space;
        self.is_rectangular &= self.last == self.width;
        let is_cut = self.is_rectangular && self.lines > 1 && self.width >= MIN_WIDTH && length <= self.width;
        if !WITHIN_WORD.is_match(&self.text) && (has_space || !is_cut) {
            self.text.push(' ');
        }
        if has_space {
            self.unspaced.push(' ');
        }
        self.text.push_str(line);
        self.unspaced.push_str(line);
        self.lines += 1;
        self.last = length;
        self.ends_with_space = raw.ends_with(' ');
    }
}

/// Splits a line with several messages, such as an aggregated error, before each `Internal error occurred: `.
pub(super) fn separated(text: &str) -> Vec<String> {
    const BEGIN: &str = "Internal error occurred: failed calling webhook \"";
    let mut messages: Vec<String> = Vec::new();
    for (index, part) in text.split(BEGIN).enumerate() {
        match messages.last_mut() {
            None => messages.push(part.to_owned()),
            // The words before the first message belong to that message.
            Some(message) if index == 1 && !is_about_webhook(message) => {
                *message = format!("{message}{BEGIN}{part}");
            }
            Some(_) => messages.push(format!("{BEGIN}{part}")),
        }
    }
    messages
}

/// Returns the message without the backslashes that logs add before quotation marks.
pub(super) fn unquoted(text: &str) -> String {
    text.replace("\\\"", "\"")
}

/// Adds the strings in a JSON log entry that may be messages: those with several words.
fn collect_strings(value: &Value, strings: &mut Vec<String>) {
    match value {
        // The message and the error of an entry are often the same.
        Value::String(text)
            if text.contains(' ') && !strings.last().is_some_and(|last| last.contains(text)) =>
        {
            strings.push(unquoted(&text.split_whitespace().collect::<Vec<_>>().join(" ")));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_strings(item, strings)),
        Value::Object(members) => members.values().for_each(|member| collect_strings(member, strings)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns whether `message` is about a webhook or a policy, so that the next line may continue it.
fn is_incomplete(message: &str) -> bool {
    is_about_webhook(message)
        || message.ends_with("Internal error occurred:")
        // The line may break off within `failed calling webhook`.
        || message.contains("Internal error occurred: failed")
}

/// Returns whether `message` names a webhook, the kind that a webhook converts, or an admission policy.
pub(super) fn is_about_webhook(message: &str) -> bool {
    [
        "failed calling webhook",
        "conversion webhook for",
        "admission webhook \"",
        "ValidatingAdmissionPolicy '",
    ]
    .iter()
    .any(|it| message.contains(it))
        || MUTATING_POLICY.is_match(message)
}

/// Returns whether `line` begins a message and does not continue `message`.
fn begins_message(message: &str, line: &str) -> bool {
    if line.is_empty() || BEGIN.is_match(line) {
        return true;
    }
    let is_introduction = message.ends_with(':') && !is_about_webhook(message);
    if MARKER.is_match(line) {
        return !is_introduction || line.contains("Internal error occurred:");
    }
    // A line that breaks off before the cause ends with a colon.
    !message.ends_with(':') && explain_message(line).is_some() && explain_message(message).is_some()
}
