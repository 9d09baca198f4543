//! Resources from `CustomResourceDefinition`s.

use std::sync::Arc;

use serde_json::{Value, json};

use super::conversion::Converter;
use super::discovery::{Resource, Subresource};
use super::metadata;
use crate::attributes::{GroupVersionKind, GroupVersionResource};
use crate::json::text as text_at;
use crate::status::{Status, Unsupported};
use crate::structural::Compiled;

pub(super) const GROUP: &str = "apiextensions.k8s.io";
pub(super) const RESOURCE: &str = "customresourcedefinitions";

/// What only a custom resource has.
#[derive(Clone, Debug)]
pub(super) struct Custom {
    /// The version in which the objects are stored.
    pub(super) storage_version: String,
    /// Whether requests for this version are answered.
    pub(super) served: bool,
    /// `spec.conversion.strategy`.
    pub(super) converter: Converter,
    /// `subresources.scale`.
    pub(super) scale: Option<ScalePaths>,
    /// `schema.openAPIV3Schema`, or what of it admit does not apply.
    pub(super) schema: Result<Arc<Compiled>, Unsupported>,
    /// The resource version of the definition with which the schema came: an object that was stored before is read by
    /// another one than it was written by.
    pub(super) schema_since: u64,
}

impl Custom {
    /// The schema.
    ///
    /// # Errors
    /// What of it admit does not apply.
    pub(super) fn schema(&self) -> Result<&Compiled, Unsupported> {
        self.schema.as_deref().map_err(Clone::clone)
    }
}

/// Where a custom resource keeps what a `Scale` shows: JSON pointers.
#[derive(Clone, Debug)]
pub(super) struct ScalePaths {
    pub(super) spec_replicas: String,
    pub(super) status_replicas: String,
    pub(super) label_selector: Option<String>,
}

/// The group and the plural of a definition.
pub(super) fn group_resource(definition: &Value) -> (&str, &str) {
    (text_at(definition, &["spec", "group"]), text_at(definition, &["spec", "names", "plural"]))
}

/// The resources of a definition, one for each version, in the order of `spec.versions`. A schema that did not change since
/// `before` is not compiled again.
///
/// Rule: SEL-14.
pub(super) fn resources(definition: &Value, before: Option<(&Value, &[Arc<Resource>])>) -> Vec<Resource> {
    let text =
        |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let texts = |pointer: &str| -> Vec<String> {
        let items = definition.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let versions = || definition.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
    let (group, plural, kind) = (text("/spec/group"), text("/spec/names/plural"), text("/spec/names/kind"));
    let is_true = |version: &&Value, field: &str| version.get(field).and_then(Value::as_bool) == Some(true);
    let storage_version = versions()
        .find(|version| is_true(version, "storage"))
        .and_then(|version| version.get("name")?.as_str())
        .unwrap_or_default();
    let converter = match text("/spec/conversion/strategy").as_str() {
        "Webhook" => Converter::Webhook,
        _ => Converter::None,
    };
    let since = metadata::text(definition, "resourceVersion").parse().unwrap_or_default();
    versions()
        .map(|version| {
            let name = version.get("name").and_then(Value::as_str).unwrap_or_default();
            let gvk = GroupVersionKind::new(group.clone(), name, kind.clone());
            let scale = version.pointer("/subresources/scale").map(scale_paths);
            let (schema, schema_since) = known_schema(name, version, before)
                .unwrap_or_else(|| (Compiled::new(schema_of(version)), since));
            let mut subresources = Vec::new();
            let get_and_change = || ["get", "patch", "update"].map(str::to_owned).to_vec();
            if version.pointer("/subresources/status").is_some_and(|status| !status.is_null()) {
                let status =
                    Subresource { name: "status".to_owned(), kind: gvk.clone(), verbs: get_and_change() };
                subresources.push(status);
            }
            if scale.is_some() {
                subresources.push(Subresource {
                    name: "scale".to_owned(),
                    kind: GroupVersionKind::new("autoscaling", "v1", "Scale"),
                    verbs: get_and_change(),
                });
            }
            let singular = text("/spec/names/singular");
            let list_kind = text("/spec/names/listKind");
            Resource {
                gvr: GroupVersionResource::new(group.clone(), name, plural.clone()),
                kind: gvk,
                list_kind: if list_kind.is_empty() { format!("{kind}List") } else { list_kind },
                namespaced: text("/spec/scope") == "Namespaced",
                singular: if singular.is_empty() { kind.to_lowercase() } else { singular },
                short_names: texts("/spec/names/shortNames"),
                categories: texts("/spec/names/categories"),
                verbs: ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
                    .map(str::to_owned)
                    .to_vec(),
                subresources,
                custom: Some(Custom {
                    storage_version: storage_version.to_owned(),
                    converter,
                    scale,
                    served: is_true(&version, "served"),
                    schema,
                    schema_since,
                }),
            }
        })
        .collect()
}

/// The schema of a version; null if there is none.
pub(super) fn schema_of(version: &Value) -> &Value {
    version.pointer("/schema/openAPIV3Schema").unwrap_or(&Value::Null)
}

/// The schema of a version, and since when it is that, if it was the same before.
fn known_schema(
    name: &str,
    version: &Value,
    before: Option<(&Value, &[Arc<Resource>])>,
) -> Option<(Result<Arc<Compiled>, Unsupported>, u64)> {
    let (definition, resources) = before?;
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array)?;
    let same = versions.iter().find(|known| known["name"] == *name)?;
    if schema_of(same) != schema_of(version) {
        return None;
    }
    let resource = resources.iter().find(|resource| resource.gvr.version == name)?;
    let custom = resource.custom.as_ref()?;
    Some((custom.schema.clone(), custom.schema_since))
}

/// What of the schemas of a new definition admit does not apply.
///
/// # Errors
/// 501.
pub(super) fn check_schemas(definition: &Value) -> Result<(), Box<Status>> {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
    for version in versions {
        Compiled::new(schema_of(version)).map_err(|unsupported| Status::unsupported(&unsupported))?;
    }
    Ok(())
}

fn scale_paths(scale: &Value) -> ScalePaths {
    let pointer = |field: &str| scale.get(field).and_then(Value::as_str).map(|path| path.replace('.', "/"));
    ScalePaths {
        spec_replicas: pointer("specReplicasPath").unwrap_or_default(),
        status_replicas: pointer("statusReplicasPath").unwrap_or_default(),
        label_selector: pointer("labelSelectorPath"),
    }
}

/// Fills in the names that a definition may leave out, and how its objects are converted.
///
/// Source: apiextensions-apiserver pkg/apis/apiextensions/v1/defaults.go.
pub(super) fn set_defaults(definition: &mut Value) {
    let Some(spec) = definition.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let conversion = spec.entry("conversion").or_insert_with(|| json!({"strategy": "None"}));
    let service = conversion.pointer_mut("/webhook/clientConfig/service").and_then(Value::as_object_mut);
    if let Some(service) = service {
        service.entry("port").or_insert_with(|| 443.into());
    }
    let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) else { return };
    let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    names.entry("singular").or_insert_with(|| kind.to_lowercase().into());
    names.entry("listKind").or_insert_with(|| format!("{kind}List").into());
}

/// `status` as a new definition has it.
///
/// Source: apiextensions-apiserver pkg/registry/customresourcedefinition/strategy.go, `PrepareForCreate`.
pub(super) fn begin(definition: &mut Value) {
    let stored = stored_versions(definition);
    let status = json!({
        "acceptedNames": {"kind": "", "plural": ""},
        "conditions": null,
        "storedVersions": stored,
    });
    if let Some(members) = definition.as_object_mut() {
        members.insert("status".to_owned(), status);
    }
}

fn stored_versions(definition: &Value) -> Vec<Value> {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
    versions
        .filter(|version| version.get("storage").and_then(Value::as_bool) == Some(true))
        .filter_map(|version| version.get("name").cloned())
        .take(1)
        .collect()
}

/// `status` as the server's own controllers write it: the names are accepted and the resource is served.
///
/// Source: apiextensions-apiserver `pkg/controller/status/naming_controller.go` and
/// `pkg/controller/establish/establishing_controller.go`.
pub(super) fn establish(definition: &mut Value) {
    let names = definition.pointer("/spec/names").cloned().unwrap_or_default();
    let stored = stored_versions(definition);
    let time = metadata::text(definition, "creationTimestamp").to_owned();
    let condition = |kind: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": time,
        })
    };
    let status = json!({
        "acceptedNames": names,
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
        "storedVersions": stored,
    });
    if let Some(members) = definition.as_object_mut() {
        members.insert("status".to_owned(), status);
    }
}
