//! Reads manifests and creates their objects.

use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::api::{Api, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::{self, Scope};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::error::Error;

/// An object in a manifest file.
#[derive(Clone, Debug)]
pub(crate) struct Manifest {
    pub(crate) file: PathBuf,
    pub(crate) object: Value,
}

impl Manifest {
    pub(crate) fn text(&self, pointer: &str) -> &str {
        self.object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn is(&self, group: &str, kind: &str) -> bool {
        let (of, _) = self.text("/apiVersion").split_once('/').unwrap_or_default();
        of == group && self.text("/kind") == kind
    }

    fn error(&self, message: &str) -> Error {
        let (kind, name) = (self.text("/kind"), self.text("/metadata/name"));
        Error::Manifest { file: self.file.clone(), message: format!("{kind} {name}: {message}") }
    }
}

/// Reads the objects in a file or a folder, and adds them to `found`.
///
/// In a folder and its subfolders, all YAML and JSON files are read, sorted by name.
///
/// # Errors
/// Returns an error if a file cannot be read or is not valid YAML or JSON.
pub(crate) fn read(path: &Path, found: &mut Vec<Manifest>) -> Result<(), Error> {
    let failed = |message: String| Error::Manifest { file: path.to_owned(), message };
    if path.is_dir() {
        let entries = std::fs::read_dir(path).and_then(|entries| {
            entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()
        });
        let mut entries = entries.map_err(|error| failed(error.to_string()))?;
        entries.sort();
        for entry in entries {
            let extension = entry.extension().and_then(|extension| extension.to_str());
            if entry.is_dir() || matches!(extension, Some("yaml" | "yml" | "json")) {
                read(&entry, found)?;
            }
        }
        return Ok(());
    }
    let bytes = output::read(path).map_err(|error| failed(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|error| failed(error.to_string()))?;
    // As in kubectl, `0644` is an octal number.
    let options = serde_saphyr::options! { legacy_octal_numbers: true };
    let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(&text, options)
        .map_err(|error| failed(error.without_snippet().to_string()))?;
    for document in documents.into_iter().filter(|document| !document.is_null()) {
        let items = match document.get("items") {
            Some(Value::Array(items)) if document.get("kind").is_some_and(|kind| kind == "List") => {
                items.clone()
            }
            Some(_) | None => vec![document],
        };
        for object in items {
            let manifest = Manifest { file: path.to_owned(), object };
            if manifest.text("/apiVersion").is_empty() || manifest.text("/kind").is_empty() {
                return Err(failed("an object needs `apiVersion` and `kind`".to_owned()));
            }
            found.push(manifest);
        }
    }
    Ok(())
}

/// Creates an object and, if necessary, its namespace; an existing Namespace is not changed.
///
/// # Errors
/// Returns an error if the server does not serve the kind or rejects the object.
pub(crate) async fn create(client: &kube::Client, manifest: &Manifest) -> Result<(), Error> {
    let (group, version) = match manifest.text("/apiVersion").split_once('/') {
        Some(parts) => parts,
        None => ("", manifest.text("/apiVersion")),
    };
    let kind = GroupVersionKind::gvk(group, version, manifest.text("/kind"));
    let (resource, capabilities) =
        discovery::pinned_kind(client, &kind).await.map_err(|error| manifest.error(&error.to_string()))?;
    let api: Api<DynamicObject> = match capabilities.scope {
        Scope::Cluster => Api::all_with(client.clone(), &resource),
        Scope::Namespaced => {
            let namespace = match manifest.text("/metadata/namespace") {
                "" => "default",
                namespace => namespace,
            };
            create_namespace(client, namespace).await?;
            Api::namespaced_with(client.clone(), namespace, &resource)
        }
    };
    let object: DynamicObject = serde_json::from_value(manifest.object.clone())
        .map_err(|error| manifest.error(&error.to_string()))?;
    match api.create(&PostParams::default(), &object).await {
        Err(kube::Error::Api(status)) if status.code == 409 && manifest.is("", "Namespace") => Ok(()),
        Err(error) => Err(manifest.error(&error.to_string())),
        Ok(_) if manifest.is("apiextensions.k8s.io", "CustomResourceDefinition") => {
            wait_until_served(client, &api, manifest).await
        }
        Ok(_) => Ok(()),
    }
}

/// Creates a namespace if it does not exist.
pub(crate) async fn create_namespace(client: &kube::Client, name: &str) -> Result<(), Error> {
    let object = serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let object: DynamicObject =
        serde_json::from_value(object).map_err(|error| Error::Setup(error.to_string()))?;
    let kind = GroupVersionKind::gvk("", "v1", "Namespace");
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &kube::core::ApiResource::from_gvk(&kind));
    match api.create(&PostParams::default(), &object).await {
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(Error::Setup(format!("namespace {name}: {error}"))),
        Ok(_) => Ok(()),
    }
}

const TIMEOUT: Duration = Duration::from_secs(30);
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Waits until a custom resource definition is established and its versions are in discovery.
async fn wait_until_served(
    client: &kube::Client,
    definitions: &Api<DynamicObject>,
    manifest: &Manifest,
) -> Result<(), Error> {
    let name = manifest.text("/metadata/name");
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let definition = definitions.get(name).await.map_err(|error| manifest.error(&error.to_string()))?;
        if is_established(&definition.data) && is_discovered(client, manifest).await {
            return Ok(());
        }
        if Instant::now() > deadline {
            let status = definition.data.get("status").unwrap_or(&Value::Null);
            return Err(manifest.error(&format!("is not served; its status is {status}")));
        }
        sleep(POLL_INTERVAL).await;
    }
}

fn is_established(definition: &Value) -> bool {
    let conditions = definition.pointer("/status/conditions").and_then(Value::as_array);
    let has =
        |condition: &Value, field: &str, value: &str| condition.get(field).is_some_and(|it| it == value);
    conditions.into_iter().flatten().any(|it| has(it, "type", "Established") && has(it, "status", "True"))
}

async fn is_discovered(client: &kube::Client, manifest: &Manifest) -> bool {
    let versions = manifest.object.pointer("/spec/versions").and_then(Value::as_array);
    let served = versions.into_iter().flatten().filter(|it| it.get("served").is_some_and(|it| *it == true));
    for version in served {
        let version = version.get("name").and_then(Value::as_str).unwrap_or_default();
        let kind =
            GroupVersionKind::gvk(manifest.text("/spec/group"), version, manifest.text("/spec/names/kind"));
        if discovery::pinned_kind(client, &kind).await.is_err() {
            return false;
        }
    }
    true
}
