//! Validates immutable fields and stored versions of custom resource definitions, and returns warnings.
//!
//! Source: apiextensions-apiserver pkg/apis/apiextensions/validation/validation.go and
//! pkg/registry/customresourcedefinition/strategy.go.

use std::collections::{BTreeSet, HashMap};

use kubernetes_cel::schema::is_known_format;
use kubernetes_types::json::{at, set, text};
use kubernetes_types::quoting::{encode, quote};
use kubernetes_types::status::FieldError;
use serde_json::{Map, Value};

use crate::kinds::apiextensions::definition_status::is_true;

/// Rejects changes to immutable fields: the group and the plural and, after establishment, the scope and the kind.
///
/// Source: `validateCustomResourceDefinitionSpecUpdate`.
/// Rule: SCH-11.
pub(crate) fn immutable(definition: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let Some(old) = old else { return Vec::new() };
    let mut fields: Vec<&[&str]> = vec![&["group"], &["names", "plural"]];
    if is_true(old, "Established") {
        fields = vec![&["scope"], &["names", "kind"], &["group"], &["names", "plural"]];
    }
    let spec = |definition: &Value, field: &[&str]| text(at(definition, &["spec"]), field).to_owned();
    let changed = fields.into_iter().filter(|field| spec(definition, field) != spec(old, field));
    changed
        .map(|field| {
            let path = format!("spec.{}", field.join("."));
            FieldError::invalid(path, quote(&spec(definition, field)), "field is immutable")
        })
        .collect()
}

/// Rejects a definition whose `storedVersions` lacks the storage version or contains a version that is not in `spec`.
///
/// Source: `ValidateCustomResourceDefinitionStoredVersions`.
/// Rule: SCH-12.
pub(crate) fn wrong_stored_versions(definition: &Value) -> Vec<FieldError> {
    let stored = at(definition, &["status", "storedVersions"]);
    let names: Vec<&str> = stored.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let field = "status.storedVersions";
    if names.is_empty() {
        let why = "must have at least one stored version";
        return vec![FieldError::invalid(field, encode(stored), why)];
    }
    // Upstream removes each version that it finds, so a version listed twice is missing the second time.
    let mut left: HashMap<&str, usize> =
        names.iter().enumerate().map(|(index, name)| (*name, index)).collect();
    let mut errors = Vec::new();
    for version in at(definition, &["spec", "versions"]).as_array().into_iter().flatten() {
        let name = text(version, &["name"]);
        if left.remove(name).is_none() && version["storage"] == true {
            let why = format!("must have the storage version {name}");
            errors.push(FieldError::invalid(field, encode(stored), why));
        }
    }
    for (index, name) in names.iter().enumerate().filter(|(index, name)| left.get(**name) == Some(index)) {
        let why = format!(
            "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until \
             a storage migration ensures no data remains persisted in {name} and removes {name} from \
             status.storedVersions"
        );
        errors.push(FieldError::invalid(format!("{field}[{index}]"), quote(name), why));
    }
    errors
}

/// Adds the storage version to `status.storedVersions`.
///
/// Source: apiextensions-apiserver pkg/registry/customresourcedefinition/strategy.go, `PrepareForUpdate`.
/// Rule: SCH-12.
pub(crate) fn note_storage_version(definition: &mut Value) {
    let mut versions = at(definition, &["spec", "versions"]).as_array().into_iter().flatten();
    let Some(name) = versions.find(|version| version["storage"] == true).map(|it| at(it, &["name"]).clone())
    else {
        return;
    };
    let mut stored = at(definition, &["status", "storedVersions"]).as_array().cloned().unwrap_or_default();
    if !stored.contains(&name) {
        stored.push(name);
        set(definition, &["status", "storedVersions"], stored);
    }
}

/// Returns the warnings about a definition: about unknown formats, and about sets with non-scalar items.
///
/// Does not report problems that the old definition already has.
///
/// Source: apiextensions-apiserver pkg/registry/customresourcedefinition/strategy.go, `WarningsOnCreate` and
/// `WarningsOnUpdate`.
/// Rule: SCH-14.
pub(crate) fn warnings(definition: &Value, old: Option<&Value>) -> Vec<String> {
    let (formats, sets) = found(definition);
    let (old_formats, old_sets) = old.map(found).unwrap_or_default();
    let formats =
        formats.difference(&old_formats).map(|format| format!("unrecognized format {}", quote(format)));
    let sets = sets.difference(&old_sets).map(|kind| {
        format!(
            "x-kubernetes-list-type: set for items of type \"{kind}\" is not supported by server-side apply or CEL \
             validation rules"
        )
    });
    formats.chain(sets).collect()
}

/// The unknown formats and the non-scalar item types of sets.
pub(crate) type Found<'d> = (BTreeSet<&'d str>, BTreeSet<&'d str>);

fn found(definition: &Value) -> Found<'_> {
    let mut found = Found::default();
    for version in at(definition, &["spec", "versions"]).as_array().into_iter().flatten() {
        look(at(version, &["schema", "openAPIV3Schema"]), &mut found);
    }
    found
}

/// Source: apiextensions-apiserver pkg/apis/apiextensions/validation/validation.go, `SchemaHas`;
/// pkg/apiserver/validation/formats.go, `GetUnrecognizedFormats`.
fn look<'d>(schema: &'d Value, found: &mut Found<'d>) {
    let Some(members) = schema.as_object() else { return };
    let format = text(schema, &["format"]);
    let is_known = match text(schema, &["type"]) {
        "" | "string" => is_known_format(format),
        "integer" => ["int32", "int64"].contains(&format),
        "number" => ["float", "double"].contains(&format),
        _ => false,
    };
    if !format.is_empty() && !is_known {
        found.0.insert(format);
    }
    let items = text(schema, &["items", "type"]);
    if text(schema, &["x-kubernetes-list-type"]) == "set" && ["object", "array"].contains(&items) {
        found.1.insert(items);
    }
    for (name, member) in members {
        match name.as_str() {
            "items" | "additionalProperties" | "not" => look(member, found),
            "allOf" | "anyOf" | "oneOf" => {
                member.as_array().into_iter().flatten().for_each(|schema| look(schema, found));
            }
            "properties" | "patternProperties" | "definitions" => {
                member.as_object().into_iter().flat_map(Map::values).for_each(|schema| look(schema, found));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(schema: &Value) -> Value {
        json!({
            "spec": {"versions": [{"name": "v2", "storage": true, "schema": {"openAPIV3Schema": schema}}]},
            "status": {"storedVersions": ["v1"]},
        })
    }

    #[test]
    fn stored_versions_must_remain_and_include_the_storage_version() {
        let mut definition = definition(&json!({}));
        let fields = |definition: &Value| -> Vec<String> {
            wrong_stored_versions(definition).into_iter().map(|error| error.field).collect()
        };
        assert_eq!(fields(&definition), ["status.storedVersions", "status.storedVersions[0]"]);
        note_storage_version(&mut definition);
        assert_eq!(definition["status"]["storedVersions"], json!(["v1", "v2"]));
        assert_eq!(fields(&definition), ["status.storedVersions[0]"]);
        definition["status"]["storedVersions"] = json!(["v2"]);
        note_storage_version(&mut definition);
        assert_eq!(fields(&definition), Vec::<String>::new());
        definition["status"]["storedVersions"] = json!([]);
        assert_eq!(fields(&definition), ["status.storedVersions"]);
    }

    #[test]
    fn only_new_problems_cause_warnings() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "string", "format": "fancy"},
            "b": {"type": "integer", "format": "int32"},
            "c": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}},
            "d": {"type": "string", "format": "date-time"},
        }});
        let (new, old) = (definition(&schema), definition(&json!({"format": "fancy"})));
        assert_eq!(warnings(&new, None).len(), 2, "{:?}", warnings(&new, None));
        assert_eq!(warnings(&new, Some(&old)).len(), 1);
        assert_eq!(warnings(&new, Some(&new)).len(), 0);
    }
}
