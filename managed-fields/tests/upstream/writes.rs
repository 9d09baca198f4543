//! Applies a sequence of writes to one object.

use std::collections::BTreeMap;

use kubernetes_managed_fields::{
    ConversionError, Error, FieldManager, Filter, PathElement, Pattern, Set, Type, Versions, Writer, Written,
};
use serde_json::{Map, Value, json};

use crate::schemas::{Ref, Schemas};

/// The kind in a question. Its versions differ in the name of a `spec` field.
struct Kind<'a> {
    question: &'a Value,
    schemas: &'a Schemas,
}

impl<'a> Versions for Kind<'a> {
    type Schema = Ref<'a>;

    fn root(&self, api_version: &str) -> Option<Type<Self::Schema>> {
        let name = self.question["types"].get(api_version)?.as_str()?;
        Some(self.schemas.named(self.question["schema"].as_str()?, name))
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConversionError> {
        if self.question["types"].get(api_version).is_none() {
            return Err(ConversionError::UnknownVersion(api_version.to_owned()));
        }
        let mut object = object.clone();
        let of = |version: &str| self.question["rename"].get(version).and_then(Value::as_str).unwrap_or("");
        let (from, to) = (of(object["apiVersion"].as_str().unwrap_or_default()), of(api_version));
        if from != to
            && let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
            && let Some(value) = spec.remove(from)
        {
            spec.insert(to.to_owned(), value);
        }
        object["apiVersion"] = api_version.into();
        Ok(object)
    }

    fn empty(&self, api_version: &str) -> Value {
        let mut empty = self.question.get("empty").cloned().unwrap_or_else(|| json!({}));
        empty["apiVersion"] = api_version.into();
        empty["kind"] = self.question["kind"].clone();
        empty
    }
}

/// Returns the object after each write, or the reason why the write was rejected.
pub(crate) fn written(question: &Value, schemas: &Schemas) -> Value {
    let kind = Kind { question, schemas };
    let mut live: Option<Value> = None;
    let mut answers = Vec::new();
    for (index, write) in question["writes"].as_array().unwrap().iter().enumerate() {
        let now = format!("2020-01-01T00:00:{index:02}Z");
        answers.push(match one(&kind, live.as_ref(), write, &now) {
            Ok(Written { mut object, is_timed, .. }) => {
                if live.is_none() {
                    object["metadata"]["uid"] = "uid".into();
                }
                live = Some(object.clone());
                json!({"object": object, "isTimed": is_timed})
            }
            Err(Error::Internal(error)) => json!({"error": error}),
            Err(Error::BadRequest(error)) => json!({"error": error, "status": 400}),
            Err(Error::Conflicts(conflicts)) => {
                let cause =
                    |cause: kubernetes_managed_fields::Cause| format!("{} | {}", cause.message, cause.field);
                let mut causes: Vec<_> = conflicts.causes().into_iter().map(cause).collect();
                causes.sort_unstable();
                json!({"error": conflicts.message(), "status": 409, "causes": causes.join("\n")})
            }
        });
    }
    answers.into()
}

fn one(kind: &Kind<'_>, live: Option<&Value>, write: &Value, now: &str) -> Result<Written, Error> {
    let text = |name: &str| write.get(name).and_then(Value::as_str).unwrap_or_default();
    let version = if text("version").is_empty() { "example.com/v1" } else { text("version") };
    let mut reset_fields = BTreeMap::new();
    for (version, paths) in write.get("reset").and_then(Value::as_object).into_iter().flatten() {
        let names = |path: &Value| path.as_array().unwrap().iter().map(name).collect::<Vec<_>>();
        let paths: Set = paths.as_array().unwrap().iter().map(names).collect();
        reset_fields.insert(version.clone(), Filter::Exclude(paths));
    }
    for (version, prefixes) in write.get("include").and_then(Value::as_object).into_iter().flatten() {
        let pattern = |step: &Value| match step.as_str() {
            Some("*") => Pattern::Any,
            _ => Pattern::Element(name(step)),
        };
        let prefix = |prefix: &Value| prefix.as_array().unwrap().iter().map(pattern).collect();
        let prefixes = prefixes.as_array().unwrap().iter().map(prefix).collect();
        reset_fields.insert(version.clone(), Filter::Include(prefixes));
    }
    let manager = FieldManager {
        versions: kind,
        api_version: version,
        kind: kind.question["kind"].as_str().unwrap(),
        subresource: text("subresource"),
        reset_fields: &reset_fields,
    };
    let converted = match live {
        Some(live) if live["apiVersion"] != version => {
            let error = |error: ConversionError| Error::Internal(error.to_string());
            Some(kind.convert(live, version).map_err(error)?)
        }
        live => live.cloned(),
    };
    let by = Writer { manager: text("by"), now };
    match text("do") {
        "apply" => manager.apply(converted.as_ref(), &write["object"], &by, write["force"] == true),
        "patch" => {
            let mut new = converted.clone().unwrap_or_else(|| kind.empty(version));
            patch(&mut new, &write["object"]);
            manager.update(converted.as_ref(), new, &by)
        }
        _ => manager.update(converted.as_ref(), write["object"].clone(), &by),
    }
}

fn name(name: &Value) -> PathElement {
    PathElement::field(name.as_str().unwrap())
}

/// Applies a JSON merge patch as the oracle does.
fn patch(object: &mut Value, patches: &Value) {
    let Some(members) = object.as_object_mut() else { return };
    for (name, value) in patches.as_object().into_iter().flatten() {
        if value.is_null() {
            members.remove(name);
        } else if value.is_object() {
            let member = members.entry(name.clone()).or_insert(Value::Null);
            if !member.is_object() {
                *member = Map::new().into();
            }
            patch(member, value);
        } else {
            members.insert(name.clone(), value.clone());
        }
    }
}
