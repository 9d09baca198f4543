//! Builds the OpenAPI documents of custom resources.
//!
//! Source: apiextensions-apiserver `pkg/controller/openapi`, `pkg/controller/openapiv3`.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubernetes_types::json::text as text_at;
use kubernetes_types::quoting::escape_html;
use serde_json::{Value, json};

use super::Format;
use super::pattern::{Names, Pattern};
use super::schema::{self, Members};
use crate::kinds::apiextensions::custom_resources::schema_of;

/// The paths and schemas of resources, as JSON.
#[derive(Debug, Default)]
pub(super) struct ResourceDocuments {
    pub(super) paths: BTreeMap<String, String>,
    pub(super) schemas: BTreeMap<String, String>,
}

/// Returns the group versions that a definition serves, as in the v3 index.
pub(super) fn group_versions(definition: &Value) -> impl Iterator<Item = String> {
    let group = text_at(definition, &["spec", "group"]);
    served(definition).map(move |version| format!("apis/{group}/{}", text_at(version, &["name"])))
}

fn served(definition: &Value) -> impl Iterator<Item = &Value> {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
    versions.filter(|version| version.get("served").and_then(Value::as_bool) == Some(true))
}

/// Returns the v3 document of one group version from the definitions that serve it.
///
/// Rule: OAPI-05.
pub(super) fn document<'a>(group_version: &str, definitions: impl Iterator<Item = &'a Arc<Value>>) -> String {
    let mut described = ResourceDocuments::default();
    for definition in definitions {
        described.add(definition, Format::V3, |name| name == group_version);
    }
    let mut text = String::new();
    let mut members = Members::new(&mut text);
    members.add("openapi", "\"3.0.0\"");
    members.add("info", "{\"title\":\"Kubernetes CRD Swagger\",\"version\":\"v0.1.0\"}");
    write(&described.paths, members.begin("paths"));
    let mut components = Members::new(members.begin("components"));
    write(&described.schemas, components.begin("schemas"));
    components.end();
    members.end();
    escape_html(&text)
}

/// Appends a JSON object to `text`; `texts` maps each member to its encoded value.
pub(super) fn write<T: AsRef<str>>(texts: &BTreeMap<String, T>, text: &mut String) {
    let mut members = Members::new(text);
    for (name, value) in texts {
        members.add(name, value.as_ref());
    }
    members.end();
}

impl ResourceDocuments {
    /// Adds the paths and schemas of a definition for the group versions that `wanted` accepts.
    ///
    /// Rule: OAPI-05, OAPI-06.
    pub(super) fn add(&mut self, definition: &Value, format: Format, wanted: impl Fn(&str) -> bool) {
        let pattern = Pattern::for_format(format);
        let names = |member: &str| text_at(definition, &["spec", "names", member]);
        let group = text_at(definition, &["spec", "group"]);
        let is_namespaced = text_at(definition, &["spec", "scope"]) == "Namespaced";
        for version in served(definition) {
            let version_name = text_at(version, &["name"]);
            if !wanted(&format!("apis/{group}/{version_name}")) {
                continue;
            }
            let names = Names {
                group,
                version: version_name,
                kind: names("kind"),
                list_kind: names("listKind"),
                plural: names("plural"),
            };
            let subresources = version.get("subresources");
            let has = |name: &str| {
                subresources.and_then(|all| all.get(name)).is_some_and(|subresource| !subresource.is_null())
            };
            pattern.paths(names, is_namespaced, has, &mut self.paths);
            self.schemas(pattern, format, names, version);
            for (name, shared) in &pattern.shared {
                if has("scale") || !name.starts_with("io.k8s.api.autoscaling.") {
                    self.schemas.entry(name.clone()).or_insert_with(|| shared.to_string());
                }
            }
        }
    }

    fn schemas(&mut self, pattern: &Pattern, format: Format, names: Names<'_>, version: &Value) {
        const SELECTABLE: &str = "x-kubernetes-selectable-fields";
        let selectable = selectable_fields(version);
        let kind = json!([{"group": names.group, "kind": names.kind, "version": names.version}]).to_string();
        let mut extensions = BTreeMap::from([("x-kubernetes-group-version-kind".to_owned(), kind)]);
        if let Some(fields) = &selectable {
            extensions.insert(SELECTABLE.to_owned(), fields.clone());
        }
        let model = names.model();
        let object = schema::of_object(schema_of(version), format, &extensions);
        self.schemas.insert(format!("{model}{}", names.kind), object);
        let mut list = String::new();
        pattern.list.fill(names, &mut list);
        if let Some(fields) = &selectable
            && list.pop() == Some('}')
        {
            list.extend([",\"", SELECTABLE, "\":", fields, "}"]);
        }
        self.schemas.insert(format!("{model}{}", names.list_kind), list);
    }
}

/// Returns the selectable fields as JSON; `None` if the version does not have selectable fields.
fn selectable_fields(version: &Value) -> Option<String> {
    let fields = version.get("selectableFields").and_then(Value::as_array).filter(|all| !all.is_empty())?;
    let paths: Vec<Value> = fields
        .iter()
        .map(|field| text_at(field, &["jsonPath"]))
        .map(|path| json!({"fieldPath": path.strip_prefix('.').unwrap_or(path)}))
        .collect();
    Some(Value::from(paths).to_string())
}
