//! Explanations of messages of kube-apiserver about webhooks.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use fake_webhooks::Class;
use regex::{Captures, Regex};
use serde::Serialize;
use serde_json::Value;
use url::Url;

use super::causes::{CAUSES, Cause};

/// Matches `failed calling webhook "NAME": `, or the message of a failed call of a conversion webhook.
static CALL: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"(?x)
        (?: failed\ calling\ webhook\ "(?<webhook>[^"]*)":\  | conversion\ webhook\ for\ (?<kind>.+?)\ (?:failed:\ |returned\ ) )
        (?: failed\ to\ call\ webhook:\  | received\ invalid\ webhook\ response:\  | could\ not\ get\ REST\ client:\  )?
        (?<problem>.*)"#,
    )
});
static DENIAL: LazyLock<Regex> = LazyLock::new(|| pattern(r#"admission webhook "(?<webhook>[^"]*)" "#));
static POST: LazyLock<Regex> = LazyLock::new(|| pattern(r#"Post "(?<url>[^"]*)""#));
static BEGIN: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^(?:[IWEF]\d{4} |\[?\d{4}-\d\d-\d\d|\{|(?i:error|warning|info|fatal)\b|time=|level=|ts=)")
});
static NAME: LazyLock<Regex> = LazyLock::new(|| pattern(r"\{(\w+)\}"));

fn pattern(text: &str) -> Regex {
    Regex::new(text).unwrap_or_else(|error| panic!("{error}"))
}

/// The explanation of a message.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Explanation {
    pub(super) message: String,
    /// The number of occurrences.
    pub(super) count: u64,
    /// The name of the webhook in its configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) webhook: Option<String>,
    /// The kind of the objects that the conversion webhook converts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) converts: Option<String>,
    /// The URL of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) url: Option<String>,
    /// The Service in the URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) service: Option<Service>,
    /// The ID of the cause.
    pub(super) cause: &'static str,
    /// The explanation of the cause.
    pub(super) meaning: String,
    /// How the failure policy applied.
    pub(super) consequence: &'static str,
    /// The most common reasons for the error.
    pub(super) usually: &'static [String],
    /// Commands for diagnosis.
    pub(super) look: Vec<String>,
    /// The Kubernetes file or Go package that contains the message, if the message has no recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'static str>,
    /// The behavior of a fake that causes the message, if the message is not a fault of the webhook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) behavior: Option<&'static str>,
    /// The faults of the catalog that reproduce the error.
    pub(super) faults: Vec<KnownFault>,
}

/// A Service in the URL of a call.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Service {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) port: u16,
}

/// A fault of the catalog that reproduces an error.
#[derive(Debug, Serialize)]
pub(super) struct KnownFault {
    pub(super) id: &'static str,
    pub(super) name: &'static str,
    pub(super) help: &'static str,
}

/// Explains the messages in `text`: one message, a `Status` as JSON, or the lines of a log.
///
/// Each message is explained once; other text is ignored.
pub(super) fn explain(text: &str) -> Vec<Explanation> {
    if let Some(message) = message_of_status(text) {
        return explain_message(&message).into_iter().collect();
    }
    let mut all: Vec<Explanation> = Vec::new();
    let messages = messages(text);
    for found in messages.iter().filter_map(|message| explain_message(message)) {
        let same = |known: &&mut Explanation| {
            (known.cause, &known.meaning, &known.webhook) == (found.cause, &found.meaning, &found.webhook)
        };
        match all.iter_mut().find(same) {
            Some(known) => known.count += 1,
            None => all.push(found),
        }
    }
    if all.is_empty() {
        // A terminal or an editor may have wrapped the line.
        let text = unquoted(&messages.join(" "));
        all.extend(explain_message(&text.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
    all
}

/// Splits a log into messages: lines with their continuation lines, and the strings in lines that are JSON.
fn messages(text: &str) -> Vec<String> {
    let mut messages: Vec<String> = Vec::new();
    for line in text.lines() {
        // Terraform draws a bar in front of its errors.
        let line = line.trim_start_matches(['│', '╷', '╵', '|', ' ', '\t']).trim_end();
        if let Ok(value @ Value::Object(_)) = serde_json::from_str(line) {
            collect_strings(&value, &mut messages);
            continue;
        }
        let line = unquoted(line);
        match messages.last_mut() {
            Some(message) if is_incomplete(message) && !begins_message(&line) => {
                message.push(' ');
                message.push_str(&line);
            }
            _ => messages.push(line),
        }
    }
    messages
}

/// Returns the message without the backslashes with which a log escapes quotation marks.
fn unquoted(text: &str) -> String {
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

/// Returns whether `message` is about a webhook, so that the next line may continue it.
fn is_incomplete(message: &str) -> bool {
    ["failed calling webhook", "conversion webhook for", "admission webhook \""]
        .iter()
        .any(|it| message.contains(it))
}

/// Returns whether a line begins a message: it is empty, or has a time, a klog header, or a word such as `Error`.
fn begins_message(line: &str) -> bool {
    line.is_empty() || BEGIN.is_match(line)
}

fn message_of_status(text: &str) -> Option<String> {
    let status: Value = serde_json::from_str(text).ok()?;
    Some(status.get("message")?.as_str()?.to_owned())
}

fn explain_message(message: &str) -> Option<Explanation> {
    let message = message.trim();
    let call = CALL.captures(message);
    let problem = call.as_ref().and_then(|call| Some(call.name("problem")?.as_str()));
    let (cause, captures) = CAUSES.iter().find_map(|cause| {
        let text = if cause.anywhere { message } else { problem? };
        Some((cause, cause.pattern.captures(text)?))
    })?;
    let group = |name| Some(call.as_ref()?.name(name)?.as_str().to_owned());
    let denied = || Some(DENIAL.captures(message)?.name("webhook")?.as_str().to_owned());
    let webhook = group("webhook").or_else(denied);
    let url = POST.captures(message).and_then(|post| Some(post.name("url")?.as_str().to_owned()));
    let parsed = url.as_deref().and_then(|url| Url::parse(url).ok());
    let service = parsed.as_ref().and_then(service);
    let names = names(cause, &captures, webhook.as_deref(), parsed.as_ref(), service.as_ref());
    let converts = group("kind");
    Some(Explanation {
        message: message.to_owned(),
        count: 1,
        consequence: consequence(cause, message, converts.is_some()),
        webhook,
        converts,
        url,
        service,
        cause: &cause.id,
        meaning: filled(&cause.meaning, &names).unwrap_or_else(|| cause.meaning.clone()),
        usually: &cause.usually,
        look: cause.look.iter().filter_map(|line| filled(line, &names)).collect(),
        source: cause.source.as_deref(),
        behavior: cause.behavior.as_deref(),
        faults: cause
            .faults()
            .map(|fault| KnownFault { id: &fault.id, name: &fault.name, help: &fault.help })
            .collect(),
    })
}

/// Returns the Service in `https://NAME.NAMESPACE.svc:PORT/`.
fn service(url: &Url) -> Option<Service> {
    let host = url.host_str()?;
    let (name, namespace) = host.strip_suffix(".svc")?.split_once('.')?;
    let port = url.port_or_known_default()?;
    Some(Service { namespace: namespace.to_owned(), name: name.to_owned(), port })
}

/// Returns the names that braces in an explanation may contain, with their values if known.
fn names(
    cause: &Cause,
    captures: &Captures<'_>,
    webhook: Option<&str>,
    url: Option<&Url>,
    service: Option<&Service>,
) -> BTreeMap<String, Option<String>> {
    let groups = cause.pattern.capture_names().flatten();
    let caught = groups.map(|name| (name, captures.name(name).map(|value| value.as_str().to_owned())));
    let seconds = url.and_then(|url| url.query_pairs().find(|(key, _)| key == "timeout"));
    let known = [
        ("webhook", webhook.map(str::to_owned)),
        ("seconds", seconds.map(|(_, seconds)| seconds.into_owned())),
        ("namespace", service.map(|service| service.namespace.clone())),
        ("service", service.map(|service| service.name.clone())),
        ("port", service.map(|service| service.port.to_string())),
    ];
    caught.chain(known).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Replaces the known names in braces; returns `None` if a value is missing.
fn filled(text: &str, names: &BTreeMap<String, Option<String>>) -> Option<String> {
    let mut filled = String::new();
    let mut end = 0;
    for name in NAME.captures_iter(text) {
        let whole = name.get(0)?;
        filled += text.get(end..whole.start())?;
        filled += match names.get(name.get(1)?.as_str()) {
            Some(value) => value.as_deref()?,
            None => whole.as_str(),
        };
        end = whole.end();
    }
    Some(filled + text.get(end..)?)
}

fn consequence(cause: &Cause, message: &str, converts: bool) -> &'static str {
    if converts {
        return "Conversion webhooks have no failure policy: every request that needs the conversion fails.";
    }
    if message.contains("failing open") {
        return "failurePolicy is Ignore: the request was admitted without the webhook.";
    }
    match cause.class() {
        Some(Class::Policy) => {
            "failurePolicy is Fail: the request failed. With Ignore it would have been admitted without the webhook."
        }
        Some(Class::Immune) => "The request failed, and would have failed with failurePolicy Ignore, too.",
        Some(Class::Refused) => "The configuration was rejected.",
        // A test checks that no cause has an accepted fault.
        _ => "",
    }
}
