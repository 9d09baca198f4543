//! Reads and validates the selectable fields of custom resources.

use std::collections::HashSet;

use kubernetes_types::json::{at, text};
use kubernetes_types::quoting::quote;
use kubernetes_types::status::FieldError;
use kubernetes_types::structural::{Notation, resolve};
use serde_json::Value;

/// The maximum number of selectable fields in a version.
const MAX_SELECTABLE_FIELDS: usize = 8;

/// Returns the names of a version's selectable fields, such as `spec.size`.
///
/// Source: apiextensions-apiserver pkg/apiserver/conversion/converter.go, `NewConverter`.
pub(crate) fn names(version: &Value) -> Vec<String> {
    let fields = at(version, &["selectableFields"]).as_array().into_iter().flatten();
    let paths = fields.map(|field| text(field, &["jsonPath"]));
    paths.map(|path| path.strip_prefix('.').unwrap_or(path).to_owned()).collect()
}

/// The location of selectable fields and schemas in the internal type.
///
/// It is the definition if all versions share them, otherwise each version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldLocation {
    Definition,
    Version,
}

/// Validates `selectableFields` at `path`; `schema` is the schema at the same location, if any.
///
/// Source: apiextensions-apiserver pkg/apis/apiextensions/validation/validation.go,
/// `validateCustomResourceDefinitionSpec`, `validateCustomResourceDefinitionVersion` and
/// `ValidateCustomResourceSelectableFields`.
/// Rule: SCH-16.
pub(crate) fn errors(
    fields: &Value,
    schema: Option<&Value>,
    place: FieldLocation,
    path: &str,
) -> Vec<FieldError> {
    let fields = fields.as_array().map(Vec::as_slice).unwrap_or_default();
    if fields.is_empty() {
        return Vec::new();
    }
    let Some(schema) = schema else {
        let why = match place {
            FieldLocation::Definition => "may only be set when validations.schema is included",
            FieldLocation::Version => "may only be set when `version.schema.openAPIV3Schema` is not included",
        };
        return vec![FieldError::invalid(path, "\"\"", why)];
    };
    let mut errors = Vec::new();
    let mut seen = HashSet::new();
    for (index, field) in fields.iter().enumerate() {
        let json_path = text(field, &["jsonPath"]);
        let path = format!("{path}[{index}].jsonPath");
        if json_path.is_empty() {
            errors.push(FieldError::required(path, ""));
            continue;
        }
        let mut invalid = |why: &str| errors.push(FieldError::invalid(path.as_str(), quote(json_path), why));
        let found = match resolve(json_path, schema, Notation::DotsAlone) {
            Ok(found) => found,
            Err(why) => {
                invalid(&format!("is an invalid path: {why}"));
                continue;
            }
        };
        if found.root == "metadata" {
            invalid("must not point to fields in metadata");
        }
        if !["string", "boolean", "integer"].contains(&text(found.schema, &["type"])) {
            invalid(
                "must point to a field of type string, boolean or integer. Enum string fields and strings with formats \
                 are allowed.",
            );
        }
        if !seen.insert(found.path) {
            errors.push(FieldError::duplicate(path, quote(json_path)));
        }
    }
    if seen.len() > MAX_SELECTABLE_FIELDS {
        errors.push(FieldError::too_many(path, seen.len(), MAX_SELECTABLE_FIELDS));
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectable_fields_are_scalars_outside_metadata() {
        let schema = json!({"properties": {
            "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
            "spec": {"type": "object", "properties": {
                "text": {"type": "string"}, "number": {"type": "number"}, "list": {"type": "array"},
            }},
        }});
        for (path, expected) in [
            (".spec.text", None),
            ("", Some("Required value")),
            (".spec.none", Some("is an invalid path: does not refer to a valid field")),
            (".spec['text']", Some("is an invalid path: array notation is not allowed")),
            (".spec.number", Some("must point to a field of type string")),
            (".metadata.name", Some("must not point to fields in metadata")),
        ] {
            let found = errors(&json!([{"jsonPath": path}]), Some(&schema), FieldLocation::Definition, "f");
            let found = found.first().map(|error| error.detail.clone());
            match expected {
                None => assert_eq!(found, None, "{path}"),
                Some(expected) => assert!(found.is_some_and(|found| found.contains(expected)), "{path}"),
            }
        }
        let many = json!((0..9).map(|_| json!({"jsonPath": ".spec.text"})).collect::<Vec<_>>());
        assert_eq!(
            errors(&many, Some(&schema), FieldLocation::Definition, "f").len(),
            8,
            "each but the first"
        );
        assert_eq!(errors(&many, None, FieldLocation::Version, "f").len(), 1);
    }
}
