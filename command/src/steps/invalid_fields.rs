//! Explains why the server rejected an object as invalid: unknown fields, and fields that a webhook set.

use harness::json::at;
use harness::verify::similar_name::{most_similar, suggestion};
use http::StatusCode;
use serde_json::Value;

use super::api::Answer;
use super::world::World;
use crate::target::RecordedCall;
use crate::unknown_fields::unknown_field;

/// Names the unknown fields of an invalid object, each with the invalid field whose name is similar.
pub(super) fn unknown_fields(answer: &Answer) -> Option<String> {
    let invalid: Vec<&str> = invalid_fields(answer).collect();
    let unknown = answer.warnings.iter().filter_map(|warning| {
        let field = unknown_field(warning)?;
        let (parent, name) = split(field);
        let names = invalid.iter().map(|field| split(field)).filter(|(other, _)| *other == parent);
        Some(format!("{field}{}", suggestion(most_similar(name, names.map(|(_, name)| name)))))
    });
    let unknown: Vec<String> = unknown.collect();
    let noun = if unknown.len() == 1 { "field" } else { "fields" };
    (!invalid.is_empty() && !unknown.is_empty())
        .then(|| format!("the API server ignores the unknown {noun} {}", unknown.join(", ")))
}

/// Returns a warning for each unknown field of an object that the server accepted as it was `sent`.
///
/// Names a similar field of the response that the client did not set: the server adds the fields that have a default.
pub(super) fn ignored_fields(answer: &Answer, sent: Option<&Value>) -> Vec<String> {
    let warning = |field: &str| {
        let (parent, name) = split(field);
        let members = |object: &'_ Value| {
            let parent =
                if parent.is_empty() { Some(object) } else { object.pointer(&Path::parse(parent).pointer()) };
            let names = parent.and_then(Value::as_object).map(|members| members.keys().cloned().collect());
            names.unwrap_or_else(Vec::<String>::new)
        };
        let own = sent.map(members).unwrap_or_default();
        let stored = members(&answer.body);
        let added = stored.iter().filter(|name| !own.contains(name)).map(String::as_str);
        format!("unknown field \"{field}\"{}", suggestion(most_similar(name, added)))
    };
    let unknown = answer.warnings.iter().filter_map(|warning| unknown_field(warning));
    unknown.filter(|_| answer.is_success()).map(warning).collect()
}

impl World {
    /// Keeps warnings about the unknown fields of an object that a step stores, for the next request.
    pub(super) fn keep_ignored_fields(&mut self, answer: &Answer, sent: &Value) {
        let text = |path: &[&str]| harness::json::text(sent, path);
        let object = format!("{} \"{}\"", text(&["kind"]), text(&["metadata", "name"]));
        let object = self.names.shorten(&object);
        for warning in ignored_fields(answer, Some(sent)) {
            if let Ok(target) = self.target() {
                target.unknown_fields.insert(format!("{object}: the API server ignores the {warning}"));
            }
            self.ignored_fields.push(format!("Warning: {object}: {warning}"));
        }
    }

    /// Returns a line for each part of an invalid object that a mutating webhook added or changed.
    pub(super) fn parts_set_by_webhooks(&self) -> Vec<String> {
        let Some(answer) = &self.last else { return Vec::new() };
        let identities = self.identities();
        let name = |call: &RecordedCall| identities.iter().find(|it| it.received(call)).map(|it| it.short);
        let fields: Vec<&str> = invalid_fields(answer).collect();
        let calls = self.own_calls.iter().flatten().chain(&self.fake_calls);
        let mut calls: Vec<&RecordedCall> = calls.filter(|_| !fields.is_empty()).collect();
        calls.sort_by_key(|call| call.time);
        let changes: Vec<(&str, Change)> =
            calls.into_iter().filter_map(|call| Some((name(call)?, Change::of(call)?))).collect();
        let mut lines: Vec<String> = Vec::new();
        for field in fields {
            let mut setting = changes.iter().rev().filter_map(|(name, it)| Some((name, it.to_part(field)?)));
            if let Some((name, what)) = setting.next() {
                let line = format!("{name} {what}");
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
        }
        lines
    }
}

/// Returns the fields that the server found invalid.
fn invalid_fields(answer: &Answer) -> impl Iterator<Item = &str> {
    let causes = at(&answer.body, &["details", "causes"]).as_array();
    let causes = causes.filter(|_| answer.code == StatusCode::UNPROCESSABLE_ENTITY);
    causes.into_iter().flatten().filter_map(|cause| cause.get("field")?.as_str())
}

/// Splits a path into the path of the parent and the name of the field.
fn split(field: &str) -> (&str, &str) {
    field.rsplit_once('.').unwrap_or(("", field))
}

/// An object before and after the patch of a webhook.
struct Change {
    before: Value,
    after: Value,
}

impl Change {
    /// Applies the patch of a call, or returns `None` if the webhook did not return a patch that can be applied.
    fn of(call: &RecordedCall) -> Option<Self> {
        if call.patch.is_empty() {
            return None;
        }
        let mut review: Value = serde_json::from_slice(&call.review).ok()?;
        let before = review.pointer_mut("/request/object")?.take();
        let mut after = before.clone();
        let operations: json_patch::Patch = serde_json::from_value(Value::Array(call.patch.clone())).ok()?;
        json_patch::patch(&mut after, &operations).ok()?;
        Some(Self { before, after })
    }

    /// Describes what the patch did to a field or, if the field does not exist, to the part of the object that lacks it.
    ///
    /// Returns `None` if the patch did not change this part.
    fn to_part(&self, field: &str) -> Option<String> {
        let part = Path::parse(field).existing(&self.after)?;
        let pointer = part.pointer();
        match (self.before.pointer(&pointer), self.after.pointer(&pointer)) {
            (None, Some(_)) => Some(format!("added {}", part.text)),
            (Some(before), Some(after)) if before != after => Some(format!("changed {}", part.text)),
            _ => None,
        }
    }
}

/// The path of a field, such as `spec.containers[1].image`.
struct Path<'a> {
    text: &'a str,
    names: Vec<&'a str>,
}

impl<'a> Path<'a> {
    fn parse(text: &'a str) -> Self {
        let names = text.split(['.', '[']).map(|name| name.trim_end_matches(']'));
        Self { text, names: names.collect() }
    }

    /// Returns the longest part of the path that exists in `object`; `None` if not even its first field exists.
    fn existing(self, object: &Value) -> Option<Self> {
        let Self { mut text, mut names } = self;
        while object.pointer(&Self { text, names: names.clone() }.pointer()).is_none() {
            names.pop();
            text = text.get(..text.rfind(['.', '['])?)?;
        }
        (!names.is_empty()).then_some(Self { text, names })
    }

    fn pointer(&self) -> String {
        let escaped = self.names.iter().map(|name| name.replace('~', "~0").replace('/', "~1"));
        escaped.fold(String::new(), |pointer, name| pointer + "/" + &name)
    }
}
