//! Masks the values of Secrets in output.
//!
//! Values in `data` and `stringData` are masked wherever a Secret occurs: in documents, in patches, in differences, and
//! in the copy that `kubectl apply` stores in an annotation. The keys remain visible. In other strings, known values
//! are masked, but not parts of values or values in a different encoding.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::go_base64;
use crate::group_version::GroupVersionKind;
use crate::json;

/// The annotation in which `kubectl apply` stores a copy of the object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The replacement for a masked value.
const ASTERISKS: &str = "***";

/// The replacement for a value in `data`, encoded in base64 so that the masked object remains valid.
const ENCODED_ASTERISKS: &str = "Kioq";

/// The minimum length of a value to search for. Shorter values would match too many other strings.
const MIN_SEARCHED_LENGTH: usize = 4;

/// Masks the values of Secrets, and remembers them to mask them in other strings.
#[derive(Debug, Default)]
pub struct Masker {
    values: BTreeSet<String>,
    has_masked: bool,
}

/// The replacements for masked values in one kind of output.
#[derive(Clone, Copy)]
struct Mask {
    data: &'static str,
    string_data: &'static str,
}

/// The replacements that keep a masked object valid.
const IN_OBJECTS: Mask = Mask { data: ENCODED_ASTERISKS, string_data: ASTERISKS };

impl Mask {
    /// Returns the mask for output that is only displayed: each value is replaced with `asterisks`.
    fn shown(asterisks: &'static str) -> Self {
        Self { data: asterisks, string_data: asterisks }
    }
}

/// Returns whether objects of this kind are Secrets.
pub fn is_secret_kind(kind: &GroupVersionKind) -> bool {
    kind.group.is_empty() && kind.kind == "Secret"
}

/// Returns whether `object` is a Secret.
pub fn is_secret(object: &Value) -> bool {
    object.as_object().is_some_and(has_kind_secret)
}

fn has_kind_secret(object: &Map<String, Value>) -> bool {
    let text = |field: &str| object.get(field).and_then(Value::as_str);
    // An object with a missing or unknown version may still be a Secret.
    text("kind") == Some("Secret") && !text("apiVersion").is_some_and(|version| version.contains('/'))
}

/// Returns whether a review contains a Secret.
pub fn is_of_secret(review: &Value) -> bool {
    let request = &review["request"];
    let kind = |field: &str| {
        let text = |part: &str| json::text(request, &[field, part]);
        text("kind") == "Secret" && text("group").is_empty()
    };
    let object = |field: &str| is_secret(&request[field]);
    kind("kind") || kind("requestKind") || object("object") || object("oldObject")
}

impl Masker {
    /// Returns whether any value has been masked so far.
    pub fn has_masked(&self) -> bool {
        self.has_masked
    }

    /// Masks every Secret in `document`: an object, a list, or a review.
    pub fn document(&mut self, document: &mut Value) {
        match document {
            Value::Object(members) if has_kind_secret(members) => self.secret(members, IN_OBJECTS),
            Value::Object(members) => members.values_mut().for_each(|member| self.document(member)),
            Value::Array(items) => items.iter_mut().for_each(|item| self.document(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Masks a review and its reply. Each is a JSON document, or a string if it was not valid JSON.
    pub fn exchange(&mut self, review: &mut Value, reply: &mut Value) {
        let is_of_secret =
            is_of_secret(review) || review.as_str().is_some_and(mentions_a_secret) || is_of_secret(reply);
        for body in [&mut *review, &mut *reply] {
            if let Value::String(text) = body
                && mentions_a_secret(text)
            {
                // In invalid JSON, it is unknown where a value starts and ends.
                self.has_masked = true;
                *text = format!("{ASTERISKS} ({} bytes that may contain a Secret)", text.len());
            }
            self.document(body);
        }
        if is_of_secret
            && let Some(patch) = reply.pointer_mut("/response/patch")
            && !patch.is_null()
        {
            let decoded = go_base64::bytes(patch).ok();
            let operations = decoded.and_then(|json| serde_json::from_slice::<Vec<Value>>(&json).ok());
            *patch = if let Some(mut operations) = operations {
                self.patch(&mut operations);
                let text = Value::Array(operations).to_string();
                if patch.is_array() { text.into_bytes().into() } else { STANDARD.encode(text).into() }
            } else {
                self.has_masked = true;
                ENCODED_ASTERISKS.into()
            };
        }
        self.texts(reply);
    }

    /// Masks the operations of a JSON patch for a Secret.
    pub fn patch(&mut self, operations: &mut [Value]) {
        for operation in operations {
            let path = operation.get("path").and_then(Value::as_str).unwrap_or_default().to_owned();
            let fields: Vec<String> =
                path.split('/').skip(1).map(|field| field.replace("~1", "/").replace("~0", "~")).collect();
            let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
            if let Some(value) = operation.get_mut("value") {
                self.field(&fields, value, IN_OBJECTS);
            }
        }
    }

    /// Masks the old and new value at `path` of a Secret, such as `data.password` or `data["a.b"]`.
    ///
    /// The output still shows that both values exist and differ.
    ///
    /// Source: kubectl pkg/cmd/diff/diff.go, `Masker`.
    pub fn difference(&mut self, path: &str, before: &mut Option<Value>, after: &mut Option<Value>) {
        let masks = if before.is_some() && after.is_some() {
            ["*** (before)", "*** (after)"]
        } else {
            [ASTERISKS; 2]
        };
        let fields = fields(path);
        for (value, asterisks) in [before, after].into_iter().zip(masks) {
            if let Some(value) = value {
                self.field(&fields, value, Mask::shown(asterisks));
            }
        }
    }

    /// Masks the remembered values in `text`.
    pub fn text(&self, text: &mut String) {
        // Longer values come first, because a value may be part of another one.
        let mut values: Vec<&String> =
            self.values.iter().filter(|value| text.contains(value.as_str())).collect();
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        for value in values {
            *text = text.replace(value.as_str(), ASTERISKS);
        }
    }

    /// Masks the remembered values in every string of a document.
    pub fn texts(&self, document: &mut Value) {
        match document {
            Value::String(text) => self.text(text),
            Value::Object(members) => members.values_mut().for_each(|member| self.texts(member)),
            Value::Array(items) => items.iter_mut().for_each(|item| self.texts(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn secret(&mut self, members: &mut Map<String, Value>, mask: Mask) {
        for (field, value) in members {
            self.field(&[field], value, mask);
        }
    }

    /// Masks `value`; `fields` is its path in a Secret.
    fn field(&mut self, fields: &[&str], value: &mut Value, mask: Mask) {
        match (fields, &mut *value) {
            (["data", ..], value) => self.values(value, mask.data, true),
            (["stringData", ..], value) => self.values(value, mask.string_data, false),
            ([], Value::Object(members)) => self.secret(members, mask),
            (["metadata"], Value::Object(metadata)) => {
                if let Some(annotations) = metadata.get_mut("annotations") {
                    self.field(&["metadata", "annotations"], annotations, mask);
                }
            }
            (["metadata", "annotations"], Value::Object(annotations)) => {
                if let Some(applied) = annotations.get_mut(LAST_APPLIED) {
                    self.field(&["metadata", "annotations", LAST_APPLIED], applied, mask);
                }
            }
            (["metadata", "annotations", LAST_APPLIED], Value::String(text)) => self.last_applied(text),
            _ => self.document(value),
        }
    }

    fn last_applied(&mut self, text: &mut String) {
        *text = match serde_json::from_str::<Value>(text) {
            Ok(mut object) => {
                if let Some(members) = object.as_object_mut() {
                    self.secret(members, IN_OBJECTS);
                }
                object.to_string()
            }
            Err(_) => ASTERISKS.to_owned(),
        };
    }

    /// Masks all scalars in `value`, but not the names of members.
    fn values(&mut self, value: &mut Value, asterisks: &str, is_encoded: bool) {
        match value {
            Value::Null => return,
            Value::Object(members) => {
                members.values_mut().for_each(|member| self.values(member, asterisks, is_encoded));
                return;
            }
            Value::String(text) => self.remember(text, is_encoded),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) => {}
        }
        self.has_masked = true;
        *value = asterisks.into();
    }

    fn remember(&mut self, text: &str, is_encoded: bool) {
        let decoded = is_encoded.then(|| STANDARD.decode(text).ok()).flatten();
        let decoded = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
        // kube-apiserver merges `stringData` into `data`, so the encoded value is also masked.
        let encoded = (!is_encoded).then(|| STANDARD.encode(text));
        let forms = [Some(text.to_owned()), decoded, encoded].into_iter().flatten();
        let is_masked = |form: &str| form.starts_with(ASTERISKS) || form == ENCODED_ASTERISKS;
        let is_told = |form: &String| form.len() >= MIN_SEARCHED_LENGTH && !is_masked(form);
        self.values.extend(forms.filter(is_told));
    }
}

/// Splits a path into the fields that [`Masker::field`] distinguishes.
fn fields(path: &str) -> Vec<&str> {
    let (first, rest) = path.split_at(path.find(['.', '[']).unwrap_or(path.len()));
    let Some(rest) = rest.get(1..) else {
        return Some(first).filter(|first| !first.is_empty()).into_iter().collect();
    };
    match (first, rest.strip_prefix("annotations")) {
        ("metadata", Some("")) => vec!["metadata", "annotations"],
        ("metadata", Some(key)) if key.contains(LAST_APPLIED) => {
            vec!["metadata", "annotations", LAST_APPLIED]
        }
        _ => vec![first, rest],
    }
}

/// Returns whether invalid JSON may contain a Secret or a part of one.
fn mentions_a_secret(text: &str) -> bool {
    ["\"Secret\"", "kind: Secret", "\"data\"", "\"stringData\""].iter().any(|words| text.contains(words))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn secret() -> Value {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "type": "Opaque",
            "data": {"password": "aHVudGVyMg=="}, "stringData": {"token": "open sesame"}})
    }

    fn masked() -> Value {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "type": "Opaque",
            "data": {"password": "Kioq"}, "stringData": {"token": "***"}})
    }

    #[track_caller]
    fn check(mut document: Value, expected: &Value) {
        let mut masker = Masker::default();
        let before = document.clone();
        masker.document(&mut document);
        assert_eq!(document, *expected);
        assert_eq!(masker.has_masked(), before != *expected);
    }

    #[test]
    fn secrets_are_masked_anywhere_in_a_document() {
        check(secret(), &masked());
        check(json!({"kind": "List", "items": [secret()]}), &json!({"kind": "List", "items": [masked()]}));
        let review = |object: Value| json!({"request": {"object": object, "oldObject": null}});
        check(review(secret()), &review(masked()));
        let config_map = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"password": "x"}});
        check(config_map.clone(), &config_map);
        let other = json!({"apiVersion": "example.com/v1", "kind": "Secret", "data": {"password": "x"}});
        check(other.clone(), &other);
        let nonsense = json!({"kind": "Secret", "data": 7, "stringData": {"a": {"b": [1]}, "c": null}});
        check(
            nonsense,
            &json!({"kind": "Secret", "data": "Kioq", "stringData": {"a": {"b": "***"}, "c": null}}),
        );
    }

    #[test]
    fn the_last_applied_annotation_is_masked() {
        let annotated = |secret: &Value, text: &str| {
            let mut object = secret.clone();
            object["metadata"]["annotations"] = json!({LAST_APPLIED: text, "other": "stays"});
            object
        };
        check(annotated(&secret(), &secret().to_string()), &annotated(&masked(), &masked().to_string()));
        check(annotated(&secret(), "{password"), &annotated(&masked(), "***"));
    }

    #[test]
    fn a_masked_patch_remains_a_patch() {
        let mut operations = [
            json!({"op": "add", "path": "/data/a~1b", "value": "aHVudGVyMg=="}),
            json!({"op": "test", "path": "/stringData", "value": {"token": "open sesame"}}),
            json!({"op": "replace", "path": "", "value": secret()}),
            json!({"op": "add", "path": "/metadata/annotations", "value": {LAST_APPLIED: "{}", "a": "b"}}),
            json!({"op": "remove", "path": "/data/old"}),
            json!({"op": "add", "path": "/database", "value": "stays"}),
        ];
        Masker::default().patch(&mut operations);
        let values: Vec<&Value> = operations.iter().map(|operation| &operation["value"]).collect();
        let annotations = json!({LAST_APPLIED: "{}", "a": "b"});
        let expected = [
            &json!("Kioq"),
            &json!({"token": "***"}),
            &masked(),
            &annotations,
            &Value::Null,
            &json!("stays"),
        ];
        assert_eq!(values, expected);
    }

    #[test]
    fn patches_and_messages_in_a_reply_are_masked() {
        let mut review = json!({"request": {"kind": {"group": "", "kind": "Secret"}, "object": secret()}});
        let patch = |value: &str| {
            STANDARD.encode(json!([{"op": "add", "path": "/data/b", "value": value}]).to_string())
        };
        let reply = |value: &str, message: &str| json!({"response": {"patch": patch(value), "status": {"message": message}}});
        let mut answered = reply("Yg==", "hunter2 and aHVudGVyMg== are weak");
        Masker::default().exchange(&mut review, &mut answered);
        assert_eq!(review["request"]["object"], masked());
        assert_eq!(answered, reply("Kioq", "*** and *** are weak"));

        for unread in [json!("no Base64"), json!([{"op": "add", "path": "/data/b", "value": "Yg=="}])] {
            let mut broken = json!({"response": {"patch": unread}});
            Masker::default().exchange(&mut review, &mut broken);
            assert_eq!(broken["response"]["patch"], "Kioq");
        }

        // Decode the numbers as kube-apiserver does.
        let numbers = |value: &str| STANDARD.decode(patch(value)).unwrap();
        let mut answered = json!({"response": {"patch": numbers("Yg==")}});
        Masker::default().exchange(&mut review, &mut answered);
        assert_eq!(answered, json!({"response": {"patch": numbers("Kioq")}}));

        let mut pod = json!({"request": {"kind": {"group": "", "kind": "Pod"}, "object": {"kind": "Pod"}}});
        let (mut of_pod, before) = (reply("Yg==", ""), reply("Yg==", ""));
        Masker::default().exchange(&mut pod, &mut of_pod);
        assert_eq!(of_pod, before);
    }

    #[test]
    fn a_text_that_may_contain_a_secret_is_masked_entirely() {
        let cut_off: String = secret().to_string().chars().take(80).collect();
        let (mut review, mut reply) = (Value::from(cut_off), json!("bad gateway"));
        Masker::default().exchange(&mut review, &mut reply);
        assert_eq!(
            (review, reply),
            (json!("*** (80 bytes that may contain a Secret)"), json!("bad gateway"))
        );
    }

    #[test]
    fn masked_differences_remain_visible() {
        let (a, b) = (|| Some(json!("YQ==")), || Some(json!("Yg==")));
        let (before, after) = (Some(json!("*** (before)")), Some(json!("*** (after)")));
        let applied = format!("metadata.annotations[\"{LAST_APPLIED}\"]");
        for (path, values, expected) in [
            ("data.password", [a(), b()], [before.clone(), after.clone()]),
            ("data[\"a.b\"]", [a(), b()], [before.clone(), after.clone()]),
            ("stringData.password", [a(), b()], [before, after]),
            ("data.new", [None, b()], [None, Some(json!("***"))]),
            ("data", [None, Some(json!({"a": "YQ=="}))], [None, Some(json!({"a": "***"}))]),
            ("", [None, Some(json!({"data": {"a": "YQ=="}}))], [None, Some(json!({"data": {"a": "***"}}))]),
            ("metadata", [None, Some(json!({"name": "s"}))], [None, Some(json!({"name": "s"}))]),
            (&applied, [None, Some(secret().to_string().into())], [None, Some(masked().to_string().into())]),
            ("type", [a(), b()], [a(), b()]),
            ("database.x", [a(), b()], [a(), b()]),
        ] {
            let [mut from, mut to] = values;
            Masker::default().difference(path, &mut from, &mut to);
            assert_eq!([from, to], expected, "{path}");
        }
    }

    #[test]
    fn texts_are_searched_for_plain_and_encoded_values() {
        let mut masker = Masker::default();
        masker.document(&mut secret());
        masker.document(&mut json!({"kind": "Secret", "data": {"a": "YQ==", "b": "aHVudGVyMjM="}}));
        let mut text = "hunter23 hunter2 open sesame b3BlbiBzZXNhbWU= a Kioq".to_owned();
        masker.text(&mut text);
        assert_eq!(text, "*** *** *** *** a Kioq");
    }
}
