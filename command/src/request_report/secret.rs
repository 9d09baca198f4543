//! Masks the values of Secrets in a report.

use harness::secrets::{self, Masker};
use serde_json::{Map, Value};

use super::Report;
use super::difference::Change;
use super::webhooks::CallReport;

/// The prefix of audit annotations that contain a patch.
const PATCH_ANNOTATION: &str = "patch.webhook.admission.k8s.io/";

impl Report {
    /// Masks the values of Secrets in objects, changes, and patches, and in messages that quote a whole value.
    pub(crate) fn mask_secrets(&mut self) {
        let mut masker = Masker::default();
        let is_of_secret = secrets::is_secret_kind(&self.request.kind)
            || self.request.object.as_ref().is_some_and(secrets::is_secret);
        if let Some(patch) = self.request.patch.as_mut().filter(|_| is_of_secret) {
            match patch {
                Value::Array(operations) => masker.patch(operations),
                object @ (Value::Object(_)
                | Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)) => {
                    // Wraps the patch of the whole object as a JSON patch.
                    let mut whole = [Value::Object(Map::from_iter([
                        ("path".to_owned(), Value::from("")),
                        ("value".to_owned(), object.take()),
                    ]))];
                    masker.patch(&mut whole);
                    let [whole] = &mut whole;
                    *object = whole.get_mut("value").map(Value::take).unwrap_or_default();
                }
            }
        }
        for document in
            [&mut self.request.object, &mut self.request.patch, &mut self.object, &mut self.decision.status]
                .into_iter()
                .flatten()
        {
            masker.document(document);
        }
        for step in &mut self.steps {
            changes(&mut masker, is_of_secret, &mut step.changes);
        }
        for call in &mut self.calls {
            changes(&mut masker, is_of_secret, &mut call.changes);
            if let Some(request) = &mut call.request {
                masker.document(request);
            }
            if let Some(patch) = call.patch.as_mut().filter(|_| is_of_secret) {
                masker.patch(patch);
            }
            // The patch in the response is encoded, and an invalid response may quote values.
            if is_of_secret {
                call.without_response();
            }
        }
        if is_of_secret {
            for (key, text) in &mut self.audit_annotations {
                if key.starts_with(PATCH_ANNOTATION) {
                    patch_annotation(&mut masker, text);
                }
            }
        }
        self.tokens();
        self.texts(&masker);
    }

    /// Masks the tokens of `TokenRequest` and `TokenReview`.
    fn tokens(&mut self) {
        for document in [&mut self.request.object, &mut self.object].into_iter().flatten() {
            if is_about_a_token(document) {
                mask_tokens(document);
            }
        }
        let has_token = |object: &Option<Value>| object.as_ref().is_some_and(is_about_a_token);
        if !has_token(&self.request.object) && !has_token(&self.object) {
            return;
        }
        self.calls.iter_mut().for_each(CallReport::without_response);
        self.calls.iter_mut().filter_map(|call| call.request.as_mut()).for_each(mask_tokens);
        let calls = self.calls.iter_mut().flat_map(|call| &mut call.changes);
        for Change { path, from, to } in self.steps.iter_mut().flat_map(|step| &mut step.changes).chain(calls)
        {
            for value in [from, to].into_iter().flatten() {
                if path.rsplit('.').next() == Some("token") {
                    *value = "***".into();
                }
                mask_tokens(value);
            }
        }
        for operation in self.calls.iter_mut().filter_map(|call| call.patch.as_mut()).flatten() {
            let is_token =
                operation.get("path").and_then(Value::as_str).is_some_and(|path| path.ends_with("/token"));
            if let Some(value) = operation.get_mut("value") {
                if is_token {
                    *value = "***".into();
                }
                mask_tokens(value);
            }
        }
    }

    /// Masks values in messages, because messages may quote values that are masked in objects.
    fn texts(&mut self, masker: &Masker) {
        masker.text(&mut self.decision.message);
        if let Some(condition) = &mut self.decision.condition {
            masker.text(&mut condition.message);
        }
        if let Some(status) = &mut self.decision.status {
            masker.texts(status);
        }
        self.warnings.iter_mut().for_each(|text| masker.text(text));
        self.audit_annotations.values_mut().for_each(|text| masker.text(text));
        for CallReport { message, notes, error_body, warnings, audit_annotations, .. } in &mut self.calls {
            masker.text(message);
            masker.text(error_body);
            let texts = notes.iter_mut().chain(warnings).chain(audit_annotations.values_mut());
            texts.for_each(|text| masker.text(text));
        }
        self.policies.iter_mut().for_each(|policy| masker.text(&mut policy.message));
        for webhook in &mut self.webhooks {
            for skipped in &mut webhook.skipped {
                masker.text(&mut skipped.reason);
                skipped.compared.iter_mut().for_each(|text| masker.text(text));
            }
            webhook.conditions.iter_mut().for_each(|condition| masker.text(&mut condition.error));
        }
    }
}

fn is_about_a_token(object: &Value) -> bool {
    object.get("kind").is_some_and(|kind| kind == "TokenRequest" || kind == "TokenReview")
}

/// Masks every member `token` that is a string, at any depth.
fn mask_tokens(value: &mut Value) {
    let Value::Object(members) = value else { return };
    for (name, member) in members {
        if name == "token" && member.is_string() {
            *member = "***".into();
        }
        mask_tokens(member);
    }
}

fn changes(masker: &mut Masker, is_of_secret: bool, changes: &mut [Change]) {
    for Change { path, from, to } in changes {
        if is_of_secret {
            masker.difference(path, from, to);
        }
        for value in [from, to].into_iter().flatten() {
            masker.document(value);
        }
    }
}

/// Masks the patch in an annotation of the form `{"configuration":…,"webhook":…,"patch":[…],"patchType":"JSONPatch"}`.
fn patch_annotation(masker: &mut Masker, text: &mut String) {
    let Ok(mut annotation) = serde_json::from_str::<Value>(text) else { return };
    if let Some(operations) = annotation.get_mut("patch").and_then(Value::as_array_mut) {
        masker.patch(operations);
        *text = annotation.to_string();
    }
}
