//! Groups findings that have the same cause: webhooks of one server that fail in the same way.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::report::{Finding, MAX_EXAMPLES};
use super::violation::Severity;

/// The properties that findings of one check share if they have the same cause.
#[derive(PartialEq, Eq)]
struct Cause {
    /// The server of the webhook. If the server is unknown, the webhook counts as a separate server.
    server: String,
    kind: String,
    severity: Severity,
    /// The message without the webhook's name and addresses.
    message: String,
}

/// Merges findings of one check that have the same cause, and sorts them by descending severity.
///
/// A merged finding keeps the message, calls, and object of the webhook that reproduces it with the smallest object.
pub(super) fn grouped(findings: Vec<Finding>, servers: &BTreeMap<String, String>) -> Vec<Finding> {
    let mut causes: Vec<(Cause, Finding)> = Vec::new();
    for finding in findings {
        let cause = Cause::from_finding(&finding, servers);
        match causes.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, known)) => unite(known, finding),
            None => causes.push((cause, finding)),
        }
    }
    let mut findings: Vec<Finding> = causes.into_iter().map(|(_, finding)| finding).collect();
    findings.sort_by_key(|finding| Reverse(finding.severity));
    findings
}

/// Splits each finding into findings about a single webhook.
pub(super) fn single(findings: Vec<Finding>) -> Vec<Finding> {
    let mut single = Vec::new();
    for finding in findings {
        for (webhook, count) in &finding.webhooks {
            let webhooks = BTreeMap::from([(webhook.clone(), *count)]);
            single.push(Finding { webhooks, ..finding.clone() });
        }
    }
    single
}

fn unite(known: &mut Finding, mut other: Finding) {
    known.webhooks.append(&mut other.webhooks);
    for example in std::mem::take(&mut other.examples) {
        if known.examples.len() < MAX_EXAMPLES && !known.examples.contains(&example) {
            known.examples.push(example);
        }
    }
    // A merged finding is accepted only if it is accepted for all webhooks.
    let accepted = known.accepted.take().filter(|_| other.accepted.is_some());
    known.absorb(other);
    known.accepted = accepted;
}

impl Cause {
    fn from_finding(finding: &Finding, servers: &BTreeMap<String, String>) -> Self {
        let webhook = finding.webhook();
        Self {
            server: servers.get(webhook).map_or(webhook, String::as_str).to_owned(),
            kind: finding.kind.clone(),
            severity: finding.severity,
            message: anonymous(&finding.message, webhook),
        }
    }
}

/// Removes the webhook's names, its URL, and memory addresses from `message`.
///
/// Memory addresses differ between panics.
fn anonymous(message: &str, webhook: &str) -> String {
    let own = webhook.split('/').nth(1).unwrap_or(webhook);
    let message = word_masked(&word_masked(message, webhook, "WEBHOOK"), own, "WEBHOOK");
    let message = masked(&message, "\"https://", "URL", |letter| letter != '"');
    masked(&message, "0x", "ADDRESS", |letter| letter.is_ascii_hexdigit())
}

/// Replaces `word` with `mask` in `text`, except where `word` is part of another name.
pub(super) fn word_masked(text: &str, word: &str, mask: &str) -> String {
    if word.is_empty() {
        return text.to_owned();
    }
    let is_inner = |letter: char| letter.is_alphanumeric() || "-_".contains(letter);
    let mut parts = text.split(word);
    let mut masked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_word = !masked.ends_with(is_inner) && !part.starts_with(is_inner);
        masked.push_str(if is_word { mask } else { word });
        masked.push_str(part);
    }
    masked
}

/// Replaces each `start`, and the following characters that `continues` accepts, with `mask`.
fn masked(text: &str, start: &str, mask: &str, continues: fn(char) -> bool) -> String {
    let mut parts = text.split(start);
    let mut masked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        masked.push_str(mask);
        masked.push_str(part.trim_start_matches(continues));
    }
    masked
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn finding(webhook: &str, message: &str, object: &Value) -> Finding {
        let finding = json!({"kind": "no answer", "severity": "warning", "message": message, "webhooks": {webhook: 2},
            "examples": [format!("Pod {webhook}")], "object": object, "differences": [], "steps": []});
        serde_json::from_value(finding).unwrap()
    }

    fn servers(webhooks: &[(&str, &str)]) -> BTreeMap<String, String> {
        webhooks.iter().map(|(webhook, server)| ((*webhook).to_owned(), (*server).to_owned())).collect()
    }

    #[test]
    fn same_failure_on_one_server_is_one_finding() {
        let panics = |webhook: &str, path: &str, address: &str, object: &Value| {
            let message =
                format!("Post \"https://s.n.svc:443/{path}?timeout=5s\": {webhook} EOF at {address}");
            finding(webhook, &message, object)
        };
        let found = vec![
            panics("c/b.example.com", "b", "0xc000a1", &json!({"kind": "Deployment"})),
            panics("d/a.example.com", "a", "0xc000b2", &json!({"kind": "Pod"})),
            panics("e/other.example.com", "a", "0xc000b2", &json!({})),
        ];
        let servers =
            servers(&[("c/b.example.com", "s"), ("d/a.example.com", "s"), ("e/other.example.com", "t")]);
        let grouped = grouped(found, &servers);
        assert_eq!(grouped.len(), 2, "{grouped:#?}");
        let webhooks: Vec<(&str, u64)> =
            grouped[0].webhooks.iter().map(|(webhook, count)| (webhook.as_str(), *count)).collect();
        assert_eq!(webhooks, [("c/b.example.com", 2), ("d/a.example.com", 2)]);
        assert_eq!(grouped[0].count(), 4);
        assert_eq!(grouped[0].object, Some(json!({"kind": "Pod"})));
        assert!(grouped[0].message.contains("/a?timeout"), "the message is of the smallest object");
        assert_eq!(grouped[0].examples, ["Pod c/b.example.com", "Pod d/a.example.com"]);

        // Only the message and the calls of each object are lost.
        let single = single(grouped);
        assert_eq!(single.len(), 3);
        assert!(single.iter().all(|finding| finding.count() == 2));
    }

    #[test]
    fn different_failure_or_unknown_server_is_a_separate_cause() {
        let object = json!({"kind": "Pod"});
        let found = || vec![finding("c/a", "status 500", &object), finding("c/b", "status 404", &object)];
        assert_eq!(grouped(found(), &servers(&[("c/a", "s"), ("c/b", "s")])).len(), 2);
        let found = vec![finding("c/a", "status 500", &object), finding("c/b", "status 500", &object)];
        assert_eq!(grouped(found.clone(), &servers(&[])).len(), 2);
        assert_eq!(grouped(found, &servers(&[("c/a", "s"), ("c/b", "s")])).len(), 1);
    }

    #[test]
    fn name_is_masked_only_as_a_whole_word() {
        for (text, word, expected) in [
            ("status a/b: a", "a", "status X/b: X"),
            ("\"a\" denied it", "a", "\"X\" denied it"),
            ("data-a a_b", "a", "data-a a_b"),
            ("anything", "", "anything"),
        ] {
            assert_eq!(word_masked(text, word, "X"), expected);
        }
    }

    #[test]
    fn most_severe_findings_come_first() {
        let object = json!({});
        let mut worse = finding("c/b", "b", &object);
        worse.severity = Severity::Error;
        let sorted = grouped(vec![finding("c/a", "a", &object), worse], &BTreeMap::new());
        assert_eq!(sorted.iter().map(Finding::webhook).collect::<Vec<_>>(), ["c/b", "c/a"]);
    }
}
