//! Explains messages from kube-apiserver about webhooks.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::LazyLock;

use fake_webhooks::{Class, Family, Fault};
use regex::{Captures, Regex};
use serde::Serialize;
use serde_json::Value;
use url::Url;

use super::causes::{CAUSES, Cause};
use super::messages::{LocatedMessage, UNHANDLED, is_about_webhook, messages, separated, unquoted};
use super::narrowed;
use super::pattern::pattern;

/// Matches `failed calling webhook "NAME": `, or the message about a failed call to a conversion webhook.
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
static FRAGMENT_PREFIX: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"(?x)^
        (?: failed\ to\ call\ webhook:\  | received\ invalid\ webhook\ response:\  )? (?: (?:Post|Get)\ "[^"]*":\  )? (?: dial\ tcp\ [\da-f.:\[\]]+\  (?: connect:\  )? )?
        (?: tls:\ failed\ to\ verify\ certificate:\  )? (?: http:\  )? $"#,
    )
});
/// Matches a parenthesized placeholder, such as ` ({url})`. It is omitted if its value is unknown.
static PARENTHESES: LazyLock<Regex> = LazyLock::new(|| pattern(r" \(\{\w+\}\)"));
static NAME: LazyLock<Regex> = LazyLock::new(|| pattern(r"\{(\w+)\}"));

/// The explanation of a message.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Explanation {
    pub(super) message: String,
    /// The number of times that the message occurs in the text.
    pub(super) count: u64,
    /// The file that contains the message, or `STDIN`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) file: Option<String>,
    /// The lines of the file on which the first occurrences begin.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) lines: Vec<u64>,
    /// The name of the webhook in its configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) webhook: Option<String>,
    /// The name of the admission policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) policy: Option<String>,
    /// The name of the binding of the admission policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) binding: Option<String>,
    /// The kind of the objects that the conversion webhook converts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "convertedKind")]
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
    /// What happened to the request, usually because of the failure policy.
    pub(super) consequence: &'static str,
    /// The most common reasons for the error.
    #[serde(rename = "commonCauses")]
    pub(super) usually: Vec<String>,
    /// The commands for diagnosis.
    #[serde(rename = "commands")]
    pub(super) look: Vec<String>,
    /// The Kubernetes file or Go package that contains the message, if the message was not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'static str>,
    /// The behavior of a fake that causes the message, if the message is not a fault of the webhook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) behavior: Option<&'static str>,
    /// The faults in the catalog that reproduce the error.
    pub(super) faults: Vec<KnownFault>,
}

/// A Service in the URL of a call.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Service {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) port: u16,
}

/// A fault in the catalog that reproduces an error.
#[derive(Debug, Serialize)]
pub(super) struct KnownFault {
    pub(super) id: &'static str,
    pub(super) name: &'static str,
    pub(super) help: &'static str,
}

/// The explanations of the messages in a text.
#[derive(Debug, Default)]
pub(super) struct Explanations {
    pub(super) known: Vec<Explanation>,
    /// The messages about webhooks that have no known cause.
    pub(super) unknown: Vec<LocatedMessage>,
}

/// The maximum number of lines to keep for an explanation.
const MAX_LINES: usize = 100;

/// Explains the messages in `text`: one message, a `Status` as JSON, or the lines of a log.
///
/// Each message is explained once; text that is not about webhooks is ignored. `file` is the name of the file that
/// contains the text, if any. If it is set, explanations contain line numbers.
pub(super) fn explain(text: &str, file: Option<&str>) -> Explanations {
    let mut all = explain_text(text);
    for explanation in &mut all.known {
        match file.filter(|_| !explanation.lines.is_empty()) {
            Some(file) => explanation.file = Some(file.to_owned()),
            None => explanation.lines.clear(),
        }
    }
    all
}

fn explain_text(text: &str) -> Explanations {
    let mut all = Explanations::default();
    if let Some(message) = message_of_status(text) {
        all.add(&message, None);
        return all;
    }
    let messages = messages(text);
    for LocatedMessage { text, line } in &messages {
        all.add(text, Some(*line));
    }
    if all.known.is_empty() {
        // A terminal or an editor may have wrapped the line.
        let texts: Vec<&str> = messages.iter().map(|message| message.text.as_str()).collect();
        let text = unquoted(&texts.join(" "));
        let mut joined = Explanations::default();
        for message in separated(&text.split_whitespace().collect::<Vec<_>>().join(" ")) {
            // The line on which a message begins is not known.
            joined.add(&message, None);
        }
        if !joined.known.is_empty() {
            return joined;
        }
    }
    all
}

impl Explanations {
    fn add(&mut self, message: &str, line: Option<u64>) {
        let Some(mut found) = explain_message(message) else {
            if is_about_webhook(message) && !self.unknown.iter().any(|known| known.text == message) {
                let (text, line) = (message.to_owned(), line.unwrap_or(1));
                self.unknown.push(LocatedMessage { text, line });
            }
            return;
        };
        found.lines.extend(line);
        let same = |known: &&mut Explanation| {
            (known.cause, &known.meaning, known.consequence, &known.webhook, &known.binding)
                == (found.cause, &found.meaning, found.consequence, &found.webhook, &found.binding)
        };
        match self.known.iter_mut().find(same) {
            Some(known) => {
                known.count += 1;
                known.lines.extend(line.filter(|_| known.lines.len() < MAX_LINES));
            }
            None => self.known.push(found),
        }
    }
}

fn message_of_status(text: &str) -> Option<String> {
    let status: Value = serde_json::from_str(text).ok()?;
    Some(status.get("message")?.as_str()?.to_owned())
}

/// Explains one message, or returns `None` if no cause is known.
pub(super) fn explain_message(message: &str) -> Option<Explanation> {
    explain_message_at(message, WebhookPlace::Unknown)
}

/// Explains one message about a webhook at `place`; a loopback address in the message takes precedence.
pub(super) fn explain_message_at(message: &str, place: WebhookPlace) -> Option<Explanation> {
    let message = message.trim();
    let call = CALL.captures(message);
    let problem = call.as_ref().and_then(|call| Some(call.name("problem")?.as_str()));
    let (cause, captures) = CAUSES.iter().find_map(|cause| {
        let captures = match problem {
            _ if cause.anywhere => cause.pattern.captures(message),
            Some(problem) => cause.pattern.captures(problem),
            None => fragment(cause, message),
        };
        Some((cause, captures?))
    })?;
    let group = |name| Some(call.as_ref()?.name(name)?.as_str().to_owned());
    let denied = || Some(DENIAL.captures(message)?.name("webhook")?.as_str().to_owned());
    let webhook = group("webhook").or_else(denied);
    let url = POST.captures(message).and_then(|post| Some(post.name("url")?.as_str().to_owned()));
    let parsed = url.as_deref().and_then(|url| Url::parse(url).ok());
    let service = parsed.as_ref().and_then(service);
    let is_loopback = place == WebhookPlace::Loopback
        || parsed.as_ref().and_then(Url::host_str).is_some_and(is_loopback_host);
    let names = names(cause, &captures, webhook.as_deref(), parsed.as_ref(), service.as_ref());
    let converts = group("kind");
    // An admission webhook cannot reproduce an error of a conversion webhook.
    let converted = converts.as_deref();
    let reproduces = |fault: &&'static Fault| converted.is_none() || fault.family == Family::Conversion;
    let caught = |name: &str| Some(captures.name(name)?.as_str().to_owned());
    let (policy, binding) = (caught("policy"), caught("binding"));
    let is_complete = cause.anywhere || call.is_some();
    Some(Explanation {
        message: message.to_owned(),
        count: 1,
        consequence: consequence(cause, message, is_complete, converts.is_some()),
        file: None,
        lines: Vec::new(),
        webhook,
        policy,
        binding,
        converts: converts.clone(),
        url,
        service,
        cause: &cause.id,
        meaning: filled(&cause.meaning, &names)
            .or_else(|| filled(&PARENTHESES.replace_all(&cause.meaning, ""), &names))
            .unwrap_or_else(|| cause.meaning.clone()),
        usually: narrowed::causes(&cause.id, message).unwrap_or_else(|| {
            cause.usually(is_loopback).iter().filter_map(|line| filled(line, &names)).collect()
        }),
        look: cause.look.iter().filter_map(|line| filled(&of_converter(line, converted), &names)).collect(),
        source: cause.source.as_deref(),
        behavior: cause.behavior.as_deref(),
        faults: cause
            .faults()
            .filter(reproduces)
            .map(|fault| KnownFault { id: &fault.id, name: &fault.name, help: &fault.help })
            .collect(),
    })
}

/// Returns a command for diagnosis. For a conversion webhook, a command that prints the configurations of admission
/// webhooks is replaced with one that prints the `spec.conversion` of the kind's `CustomResourceDefinition`.
fn of_converter<'a>(line: &'a str, converted: Option<&str>) -> Cow<'a, str> {
    let kind = converted.and_then(|converted| converted.rsplit_once("Kind=")).map(|(_, kind)| kind);
    match kind {
        Some(kind) if line.contains("webhookconfigurations") => Cow::Owned(format!(
            "kubectl get crd -o jsonpath='{{range .items[?(@.spec.names.kind==\"{kind}\")]}}{{.metadata.name}}: \
             {{.spec.conversion}}{{\"\\n\"}}{{end}}'"
        )),
        Some(_) | None => Cow::Borrowed(line),
    }
}

/// Returns the common causes of a response with this HTTP status, which is 400 or higher.
pub(super) fn causes_of_status(status: u16, place: WebhookPlace) -> &'static [String] {
    let exact = format!("status-{status}");
    let id = match status {
        400 => "status-400-or-redirect",
        404 | 405 | 503 | 504 => &exact,
        500.. => "status-500",
        _ => "other-status",
    };
    let is_loopback = place == WebhookPlace::Loopback;
    CAUSES.iter().find(|cause| cause.id == id).map_or(&[], |cause| cause.usually(is_loopback))
}

/// Matches the end of a message that does not contain `failed calling webhook`. Users copy such messages from logs.
///
/// Only text that kube-apiserver writes may precede the cause, so that errors from other programs are not explained.
fn fragment<'a>(cause: &Cause, message: &'a str) -> Option<Captures<'a>> {
    if !cause.fragment {
        return None;
    }
    let captures = cause.pattern.captures(message)?;
    let before = message.get(..captures.get(0)?.start())?;
    FRAGMENT_PREFIX.is_match(before).then_some(captures)
}

/// Where a webhook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WebhookPlace {
    /// Only the message can show it.
    Unknown,
    /// On the machine of the API server, at a loopback address.
    Loopback,
}

impl WebhookPlace {
    /// Returns the place of a webhook that is called at `host`.
    pub(crate) fn of_host(host: &str) -> Self {
        if is_loopback_host(host) { Self::Loopback } else { Self::Unknown }
    }

    /// Returns the place of a webhook that is called at `url`.
    pub(crate) fn of_url(url: &str) -> Self {
        Url::parse(url).map_or(Self::Unknown, |url| Self::of_host(url.host_str().unwrap_or_default()))
    }
}

/// Returns whether `host` is a loopback address or `localhost`.
fn is_loopback_host(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Returns the Service in `https://NAME.NAMESPACE.svc:PORT/`.
fn service(url: &Url) -> Option<Service> {
    let host = url.host_str()?;
    let (name, namespace) = host.strip_suffix(".svc")?.split_once('.')?;
    let port = url.port_or_known_default()?;
    Some(Service { namespace: namespace.to_owned(), name: name.to_owned(), port })
}

/// Returns the names of the placeholders in explanations, with their values if known.
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

/// Replaces the placeholders (names in braces) in `text`; returns `None` if a value is unknown.
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

fn consequence(cause: &'static Cause, message: &str, is_complete: bool, converts: bool) -> &'static str {
    if let Some(consequence) = &cause.consequence {
        return consequence;
    }
    if converts {
        return "Conversion webhooks have no failure policy: every request that needs the conversion fails.";
    }
    // kube-apiserver logs each failure that it ignores twice; it does not log other failures as unhandled.
    // Source: apiserver pkg/admission/plugin/webhook/mutating/dispatcher.go, `Dispatch`.
    if message.contains("failing open") || message.contains(UNHANDLED) {
        return "failurePolicy is Ignore: the request was admitted without the webhook.";
    }
    match cause.class() {
        Some(Class::Policy) if !is_complete || cause.is_in_webhook_log => {
            "If the call fails, failurePolicy Fail rejects the request; with Ignore, the request continues without the webhook."
        }
        Some(Class::Policy) => {
            "failurePolicy is Fail: the request failed. With Ignore, the request would have continued without the webhook."
        }
        Some(Class::Immune) => "The request would also have failed with failurePolicy Ignore.",
        Some(Class::Refused) => "The configuration was rejected.",
        // A test checks that no cause has an accepted fault.
        _ => "",
    }
}
