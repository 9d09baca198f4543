//! Validates custom resource definitions.
//!
//! Source: apiextensions-apiserver pkg/apis/apiextensions/validation/validation.go.

use std::collections::HashSet;

use kubernetes_types::json::{at, text};
use kubernetes_types::names;
use kubernetes_types::quoting::{encode, is_printable, quote};
use kubernetes_types::status::{FieldError, Status, Unsupported};
use kubernetes_types::structural::definition;
use serde_json::Value;

use crate::apimachinery::metadata;
use crate::kinds::apiextensions::custom_resources::{check_schemas, schema_of};
use crate::kinds::apiextensions::selectable_fields::FieldLocation;
use crate::kinds::apiextensions::{
    approval_policy, definition_conversion, definition_update, selectable_fields,
};
use crate::kinds::common::fields::{Errors, Path};
use crate::kinds::common::internal::Form;
use crate::kinds::discovery::custom::GROUP;

/// Validates a definition and returns the warnings. On `/status`, validates only the accepted names.
///
/// `errors` must contain the errors in the metadata. They come first in the 422.
///
/// # Errors
/// Returns 422 for an invalid definition, or 501 for constructs that admit does not support.
///
/// Source: apiextensions-apiserver pkg/apis/apiextensions/validation/validation.go, `ValidateCustomResourceDefinition`,
/// `ValidateCustomResourceDefinitionUpdate` and `ValidateUpdateCustomResourceDefinitionStatus`.
/// Rule: SCH-09, SCH-12.
pub(crate) fn validate(
    object: &Value,
    old: Option<&Value>,
    subresource: &str,
    mut errors: Vec<FieldError>,
) -> Result<Vec<String>, Box<Status>> {
    let name = metadata::text(object, "name");
    let wrong_status = name_errors(at(object, &["status", "acceptedNames"]), "status.acceptedNames");
    if subresource == "status" {
        errors.extend(wrong_status);
        return refuse(name, &errors).map(|()| Vec::new());
    }
    let expected =
        format!("{}.{}", text(object, &["spec", "names", "plural"]), text(object, &["spec", "group"]));
    for field in ["generateName", "name"] {
        let found = metadata::text(object, field);
        if old.is_none() && !found.is_empty() && found != expected {
            let why = "must be spec.names.plural+\".\"+spec.group";
            let path = format!("metadata.{field}");
            // These errors follow the other errors in the same fields.
            let before = |error: &FieldError| error.field == "metadata.generateName" || error.field == path;
            let place = errors.iter().take_while(|error| before(error)).count();
            errors.insert(place, FieldError::invalid(path.as_str(), quote(found), why));
        }
    }
    let spec = at(object, &["spec"]);
    let found = spec_errors(spec).map_err(|unsupported| Status::unsupported(&unsupported))?;
    errors.extend(found);
    errors.extend(definition_update::immutable(object, old));
    errors.extend(wrong_status);
    errors.extend(definition_update::wrong_stored_versions(object));
    errors.extend(definition_conversion::errors(object, old));
    errors.extend(approval_policy::error(object, old));
    if spec.get("preserveUnknownFields") == Some(&Value::Bool(true)) {
        let why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.push(FieldError::invalid("spec.preserveUnknownFields", true, why));
    }
    refuse(name, &errors)?;
    check_schemas(object, old)?;
    Ok(definition_update::warnings(object, old))
}

/// Removes unknown metadata from the defaults of a valid definition, as its validation does.
///
/// # Errors
/// Returns 501 for constructs that admit does not support.
pub(crate) fn coerce_defaults(object: &mut Value) -> Result<(), Box<Status>> {
    let versions = object.pointer_mut("/spec/versions").and_then(Value::as_array_mut);
    for version in versions.into_iter().flatten() {
        if let Some(schema) = version.pointer_mut("/schema/openAPIV3Schema") {
            definition::coerce_defaults(schema).map_err(|unsupported| Status::unsupported(&unsupported))?;
        }
    }
    Ok(())
}

fn refuse(name: &str, errors: &[FieldError]) -> Result<(), Box<Status>> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(Box::new(Status::invalid(GROUP, "CustomResourceDefinition", name, errors)))
}

fn versions_of(spec: &Value) -> &[Value] {
    at(spec, &["versions"]).as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Returns the value that all versions share; `None` if the versions differ or the value is absent.
///
/// The server reports an error in the shared value once: in the field of `spec` that applies to all versions.
///
/// Source: apiextensions-apiserver pkg/apis/apiextensions/v1/conversion.go,
/// `Convert_v1_CustomResourceDefinitionSpec_To_apiextensions_CustomResourceDefinitionSpec`.
fn common<'v>(versions: &'v [Value], of: impl Fn(&'v Value) -> &'v Value) -> Option<&'v Value> {
    let (first, others) = versions.split_first()?;
    let first = of(first);
    (!first.is_null() && others.iter().all(|version| of(version) == first)).then_some(first)
}

fn has_status(version: &Value) -> bool {
    version.pointer("/subresources/status").is_some_and(|status| !status.is_null())
}

/// Source: apiextensions-apiserver pkg/apis/apiextensions/validation/validation.go,
/// `validateCustomResourceDefinitionSpec`.
fn spec_errors(spec: &Value) -> Result<Vec<FieldError>, Unsupported> {
    let mut errors = Vec::new();
    let group = text(spec, &["group"]);
    if group.is_empty() {
        errors.push(FieldError::required("spec.group", ""));
    } else {
        let wrong = names::dns1123_subdomain(group);
        if !wrong.is_empty() {
            errors.push(FieldError::invalid("spec.group", quote(group), wrong.join(",")));
        } else if !group.contains('.') {
            errors.push(FieldError::invalid(
                "spec.group",
                quote(group),
                "should be a domain with at least one dot",
            ));
        }
    }
    match text(spec, &["scope"]) {
        "" => errors.push(FieldError::required("spec.scope", "")),
        "Cluster" | "Namespaced" => {}
        scope => {
            let supported = "\"Cluster\", \"Namespaced\"";
            errors.push(FieldError::not_supported("spec.scope", quote(scope), supported));
        }
    }
    let versions = versions_of(spec);
    let schema = common(versions, schema_of);
    let subresources = common(versions, |version| at(version, &["subresources"]));
    let columns = common(versions, |version| at(version, &["additionalPrinterColumns"]));
    let selectable = common(versions, |version| at(version, &["selectableFields"]));
    for (index, version) in versions.iter().enumerate() {
        if !schema_of(version).is_object() {
            errors.push(FieldError::required(format!("spec.versions[{index}].schema.openAPIV3Schema"), ""));
        }
    }
    for (index, version) in versions.iter().enumerate() {
        let path = format!("spec.versions[{index}]");
        let name = text(version, &["name"]);
        let wrong = names::dns1035_label(name);
        if !wrong.is_empty() {
            errors.push(FieldError::invalid(format!("{path}.name"), quote(name), wrong.join(",")));
        }
        errors.extend(deprecation_errors(version, &path));
        if schema.is_none() && schema_of(version).is_object() {
            let path = format!("{path}.schema.openAPIV3Schema");
            errors.extend(definition::errors(schema_of(version), &path, has_status(version))?);
        }
        if subresources.is_none() {
            errors
                .extend(subresource_errors(at(version, &["subresources"]), &format!("{path}.subresources")));
        }
        if columns.is_none() {
            let columns = at(version, &["additionalPrinterColumns"]);
            errors.extend(column_errors(columns, &format!("{path}.additionalPrinterColumns")));
        }
        if selectable.is_none() {
            let own = Some(schema_of(version)).filter(|own| schema.is_none() && own.is_object());
            let (fields, path) = (at(version, &["selectableFields"]), format!("{path}.selectableFields"));
            errors.extend(selectable_fields::errors(fields, own, FieldLocation::Version, &path));
        }
    }
    let mut seen = HashSet::new();
    let mut wrong = Vec::new();
    if !versions.iter().all(|version| seen.insert(text(version, &["name"]))) {
        wrong.push("must contain unique version names");
    }
    let stored = versions.iter().filter(|version| version["storage"] == true).count();
    if stored != 1 {
        wrong.push("must have exactly one version marked as storage version");
    }
    if !wrong.is_empty() {
        errors.extend(of_versions(&own_parts(spec), &wrong)?);
    }
    // The first version is also the version of the whole definition.
    if let Some(name) = versions.first().map(|version| text(version, &["name"])) {
        let wrong = names::dns1035_label(name);
        if !name.is_empty() && !wrong.is_empty() {
            errors.push(FieldError::invalid("spec.version", quote(name), wrong.join(",")));
        }
    }
    for field in ["plural", "singular", "kind", "listKind"] {
        if text(spec, &["names", field]).is_empty() {
            errors.push(FieldError::required(format!("spec.names.{field}"), ""));
        }
    }
    errors.extend(name_errors(at(spec, &["names"]), "spec.names"));
    if let Some(schema) = schema {
        let path = "spec.validation.openAPIV3Schema";
        errors.extend(definition::errors(schema, path, versions.iter().any(has_status))?);
    }
    if let Some(subresources) = subresources {
        errors.extend(subresource_errors(subresources, "spec.subresources"));
    }
    if let Some(columns) = columns {
        errors.extend(column_errors(columns, "spec.additionalPrinterColumns"));
    }
    if let Some(fields) = selectable {
        let path = "spec.selectableFields";
        errors.extend(selectable_fields::errors(fields, schema, FieldLocation::Definition, path));
    }
    Ok(errors)
}

/// Returns the versions as the internal type represents them, without the fields that apply to all versions.
fn own_parts(spec: &Value) -> Value {
    const COMMON_FIELDS: [&str; 4] =
        ["schema", "subresources", "additionalPrinterColumns", "selectableFields"];
    let is_common = |field: &str| common(versions_of(spec), |version| at(version, &[field])).is_some();
    let moved: Vec<&str> = COMMON_FIELDS.into_iter().filter(|field| is_common(field)).collect();
    let mut versions = at(spec, &["versions"]).clone();
    for version in versions.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        version.retain(|field, _| !moved.contains(&field.as_str()));
    }
    versions
}

/// Source: apiextensions-apiserver pkg/apis/apiextensions/validation/validation.go, `validateDeprecationWarning`.
fn deprecation_errors(version: &Value, path: &str) -> Vec<FieldError> {
    let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) else { return Vec::new() };
    let mut wrong = Vec::new();
    if version["deprecated"] == true {
        if warning.len() > 256 {
            wrong.push("must be <= 256 characters long".to_owned());
        }
        if warning.is_empty() {
            wrong.push("must not be an empty string".to_owned());
        }
        if let Some((index, _)) = warning.char_indices().find(|(_, character)| !is_printable(*character)) {
            wrong.push(format!(
                "must only contain printable UTF-8 characters; non-printable character found at index {index}"
            ));
        }
    } else {
        wrong.push("can only be set for deprecated versions".to_owned());
    }
    let field = format!("{path}.deprecationWarning");
    let warning = encode(&Value::from(warning));
    wrong.into_iter().map(|why| FieldError::invalid(field.as_str(), &warning, why)).collect()
}

/// Source: apiextensions-apiserver pkg/apis/apiextensions/validation/validation.go,
/// `ValidateCustomResourceDefinitionNames`.
fn name_errors(names: &Value, path: &str) -> Vec<FieldError> {
    let text = |field: &str| text(names, &[field]);
    let label = |field: String, name: &str, checked: &str, prefix: &str| {
        let wrong = names::dns1035_label(checked);
        (!wrong.is_empty())
            .then(|| FieldError::invalid(field, quote(name), format!("{prefix}{}", wrong.join(","))))
    };
    let labels = |field: &'static str| {
        let items = names.get(field).and_then(Value::as_array).into_iter().flatten().enumerate();
        items.filter_map(move |(index, item)| {
            let name = item.as_str().unwrap_or_default();
            label(format!("{path}.{field}[{index}]"), name, name, "")
        })
    };
    let mut errors = Vec::new();
    for field in ["plural", "singular"].into_iter().filter(|field| !text(field).is_empty()) {
        errors.extend(label(format!("{path}.{field}"), text(field), text(field), ""));
    }
    for field in ["kind", "listKind"].into_iter().filter(|field| !text(field).is_empty()) {
        let prefix = "may have mixed case, but should otherwise match: ";
        errors.extend(label(format!("{path}.{field}"), text(field), &text(field).to_lowercase(), prefix));
    }
    errors.extend(labels("shortNames"));
    if !text("kind").is_empty() && text("kind") == text("listKind") {
        let why = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(format!("{path}.listKind"), quote(text("listKind")), why));
    }
    errors.extend(labels("categories"));
    errors
}

/// Source: apiextensions-apiserver pkg/apis/apiextensions/validation/validation.go,
/// `ValidateCustomResourceDefinitionSubresources`.
fn subresource_errors(subresources: &Value, path: &str) -> Vec<FieldError> {
    let Some(scale) = subresources.get("scale").filter(|scale| !scale.is_null()) else { return Vec::new() };
    let mut errors = Vec::new();
    let below = |pointer: &str, roots: &[&str]| roots.iter().any(|root| pointer.starts_with(root));
    for (name, roots, why) in [
        ("specReplicasPath", &[".spec."][..], "should be a json path under .spec"),
        ("statusReplicasPath", &[".status."], "should be a json path under .status"),
        ("labelSelectorPath", &[".spec.", ".status."], "should be a json path under either .spec or .status"),
    ] {
        let field = format!("{path}.scale.{name}");
        match text(scale, &[name]) {
            "" if name == "labelSelectorPath" => {}
            "" => errors.push(FieldError::required(field, "")),
            pointer if !pointer.starts_with('.') => {
                let why = "must be a simple json path starting with .";
                errors.push(FieldError::invalid(field, quote(pointer), why));
            }
            pointer if !below(pointer, roots) => {
                errors.push(FieldError::invalid(field, quote(pointer), why));
            }
            _ => {}
        }
    }
    errors
}

/// Source: apiextensions-apiserver pkg/apis/apiextensions/validation/validation.go,
/// `ValidateCustomResourceColumnDefinition`.
fn column_errors(columns: &Value, path: &str) -> Vec<FieldError> {
    const TYPES: &str = "must be one of boolean,date,integer,number,string";
    const FORMATS: &str = "must be one of byte,date,date-time,double,float,int32,int64,password";
    let is_one = |list: &str, text: &str| {
        list.strip_prefix("must be one of ").is_some_and(|list| list.split(',').any(|one| one == text))
    };
    let mut errors = Vec::new();
    for (index, column) in columns.as_array().into_iter().flatten().enumerate() {
        let field = |name: &str| format!("{path}[{index}].{name}");
        let text = |name: &str| text(column, &[name]);
        if text("name").is_empty() {
            errors.push(FieldError::required(field("name"), ""));
        }
        match text("type") {
            "" => errors.push(FieldError::required(field("type"), TYPES)),
            kind if !is_one(TYPES, kind) => {
                errors.push(FieldError::invalid(field("type"), quote(kind), TYPES));
            }
            _ => {}
        }
        let format = text("format");
        if !format.is_empty() && !is_one(FORMATS, format) {
            errors.push(FieldError::invalid(field("format"), quote(format), FORMATS));
        }
        match text("jsonPath") {
            "" => errors.push(FieldError::required(field("JSONPath"), "")),
            pointer if !pointer.starts_with('.') => {
                let why = "must be a simple json path starting with .";
                errors.push(FieldError::invalid(field("JSONPath"), quote(pointer), why));
            }
            _ => {}
        }
    }
    errors
}

/// Returns an error for each reason why the versions of a definition are invalid.
///
/// # Errors
/// Returns an error if the error messages would be too large.
pub(crate) fn of_versions(versions: &Value, whys: &[&str]) -> Result<Vec<FieldError>, Unsupported> {
    let (mut errors, spec) = (Errors::default(), Path::new("spec"));
    for why in whys {
        let shown = errors.shown(Form::List, "apiextensions.CustomResourceDefinitionVersion", versions);
        errors.invalid(&spec.child("versions"), shown, why);
    }
    errors.into_list()
}
