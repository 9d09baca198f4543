//! Compares published custom resource definitions and their example objects on a kube-apiserver and in process.
//!
//! Each definition is created in a dry run and then installed, and each object of its kinds is created in a dry run.
//! Acceptance, defaults, pruning, and errors must be the same on both servers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::case::Plugins;
use crate::difference::{differences, side_by_side};
use crate::server::Server;
use crate::server_error::ServerError;
use crate::transport::{Answer, Message, SendError};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum number of example objects to compare per module. Some modules have thousands of similar objects.
const MAX_OBJECTS: usize = 400;
const MAX_FILE_BYTES: u64 = 4 << 20;

/// An error that prevents the comparison.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishedError {
    /// The server does not start, or rejects a required request.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// A server does not answer a request.
    #[error(transparent)]
    NotSent(#[from] SendError),
    /// Go cannot fetch a module.
    #[error("go mod download {module}: {why}")]
    NoModule {
        /// The module with its version.
        module: String,
        /// The output of Go.
        why: String,
    },
}

/// The results for one module.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// The number of compared definitions.
    pub definitions: usize,
    /// The number of compared objects.
    pub objects: usize,
    /// The features that admit does not support, with the number of requests that need each.
    pub unsupported: BTreeMap<String, usize>,
    /// The differences between the servers.
    pub differences: Vec<String>,
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unsupported: usize = self.unsupported.values().sum();
        write!(
            f,
            "{} definitions, {} objects, {} differ, {unsupported} are not imitated",
            self.definitions,
            self.objects,
            self.differences.len()
        )
    }
}

/// Returns the modules that are compared by default.
pub fn modules() -> Vec<&'static str> {
    let lines = include_str!("../published.txt").lines();
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

/// Compares the definitions and objects of modules, such as `sigs.k8s.io/gateway-api@v1.3.0`, or of directories.
///
/// # Errors
/// Returns an error if a module cannot be fetched, or a server does not answer.
pub async fn compare(
    modules: &[String],
    tell: &(dyn Fn(&str, &Comparison) + Sync),
) -> Result<bool, PublishedError> {
    let mut agrees = true;
    for module in modules {
        let folder = if Path::new(module).is_dir() { PathBuf::from(module) } else { fetched(module)? };
        // Uses new servers for each module, because kube-apiserver takes long to delete many definitions.
        let real = Server::apiserver().await?;
        let own = Server::in_process(Arc::clone(&real.authority), &Plugins::default()).await?;
        let both = Both { real: &real, own: &own };
        let comparison = both.compare(&documents(&folder)).await?;
        agrees &= comparison.differences.is_empty();
        tell(module, &comparison);
    }
    Ok(agrees)
}

/// Returns the directory of a module in Go's module cache, after downloading the module if necessary.
pub(crate) fn fetched(module: &str) -> Result<PathBuf, PublishedError> {
    let failed = |why: String| PublishedError::NoModule { module: module.to_owned(), why };
    let output = Command::new("go").args(["mod", "download", "-json", module]).current_dir("/").output();
    let output = output.map_err(|error| failed(error.to_string()))?;
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    match answer["Dir"].as_str() {
        Some(folder) => Ok(PathBuf::from(folder)),
        None => Err(failed(answer["Error"].as_str().unwrap_or("no answer").to_owned())),
    }
}

/// Returns all objects in the YAML files of a directory, in path order. Templates are skipped.
pub(crate) fn documents(folder: &Path) -> Vec<Value> {
    let mut seen = BTreeSet::new();
    let mut documents = Vec::new();
    for file in yaml_files(folder) {
        let text = fs::read_to_string(file).unwrap_or_default();
        for document in text.split("\n---") {
            let document = document.split_once('\n').map_or(document, |(first, rest)| {
                // Text after the separator on its line is not part of the document.
                if first.trim_start_matches('-').trim().is_empty() { rest } else { document }
            });
            if !document.contains("apiVersion:") || !document.contains("kind:") || document.contains("{{") {
                continue;
            }
            let Ok(object) = serde_saphyr::from_str::<Value>(document) else { continue };
            if object["kind"].is_string()
                && object["apiVersion"].is_string()
                && seen.insert(object.to_string())
            {
                documents.push(object);
            }
        }
    }
    documents
}

fn yaml_files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut files = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
            let (path, Ok(metadata)) = (entry.path(), entry.metadata()) else { continue };
            if metadata.is_dir() {
                folders.push(path);
            } else if metadata.len() < MAX_FILE_BYTES && path.extension().is_some_and(|it| it == "yaml") {
                files.insert(path);
            }
        }
    }
    files
}

/// The two servers to compare.
struct Both<'a> {
    real: &'a Server,
    own: &'a Server,
}

impl Both<'_> {
    async fn compare(&self, documents: &[Value]) -> Result<Comparison, PublishedError> {
        let mut comparison = Comparison::default();
        let is_definition = |object: &&Value| {
            object["kind"] == "CustomResourceDefinition" && object["apiVersion"] == "apiextensions.k8s.io/v1"
        };
        let definitions: Vec<&Value> = documents.iter().filter(is_definition).collect();
        let mut installed = BTreeMap::new();
        for definition in &definitions {
            comparison.definitions += 1;
            self.one(&mut comparison, &format!("{DEFINITIONS}?dryRun=All"), definition).await?;
        }
        for definition in &definitions {
            let name = definition["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            if installed.contains_key(&name) {
                continue;
            }
            let post = || Message::new(Method::POST, DEFINITIONS, Some((*definition).clone()));
            let (real, own) = (self.real.ask(post()).await?, self.own.ask(post()).await?);
            if real.is_success() && own.is_success() {
                self.wait(&name).await?;
                installed.insert(name, *definition);
            }
        }
        for object in documents.iter().filter(|object| !is_definition(object)) {
            if comparison.objects == MAX_OBJECTS {
                break;
            }
            let Some(collection) = installed.values().find_map(|definition| collection(definition, object))
            else {
                continue;
            };
            let mut object = object.clone();
            if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("namespace");
            }
            comparison.objects += 1;
            self.one(&mut comparison, &format!("{collection}?dryRun=All"), &object).await?;
        }
        Ok(comparison)
    }

    /// Sends one request to both servers and compares the answers.
    async fn one(
        &self,
        comparison: &mut Comparison,
        uri: &str,
        object: &Value,
    ) -> Result<(), PublishedError> {
        let post = || Message::new(Method::POST, uri, Some(object.clone()));
        let (real, own) = (self.real.ask(post()).await?, self.own.ask(post()).await?);
        if own.status == 501 {
            let what = own.body["message"].as_str().unwrap_or_default().to_owned();
            *comparison.unsupported.entry(what).or_default() += 1;
            return Ok(());
        }
        let has_name = object["metadata"]["name"].is_string();
        let found = differences(&comparable(&real, has_name), &comparable(&own, has_name));
        if !found.is_empty() {
            let (kind, name) = (&object["kind"], &object["metadata"]["name"]);
            comparison.differences.push(format!("{uri} {kind} {name}\n{}", side_by_side(&found)));
        }
        Ok(())
    }

    /// Waits until the real server serves a definition or has rejected it permanently.
    async fn wait(&self, name: &str) -> Result<(), PublishedError> {
        let path = format!("{DEFINITIONS}/{name}");
        let is_done = |answer: &Answer| {
            let conditions = answer.body["status"]["conditions"].as_array().into_iter().flatten();
            let mut conditions = conditions.map(|it| (it["type"].clone(), it["status"].clone()));
            conditions.any(|condition| {
                condition == (json!("Established"), json!("True"))
                    || condition == (json!("NamesAccepted"), json!("False"))
            })
        };
        let started = tokio::time::Instant::now();
        loop {
            let answer = self.real.ask(Message::new(Method::GET, path.as_str(), None)).await?;
            if is_done(&answer) {
                return Ok(());
            }
            if started.elapsed() > TIMEOUT {
                let what = format!("waiting for {path}");
                return Err(ServerError::Refused { what, answer: answer.recorded().to_string() }.into());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Returns the path for creating the object; `None` if the definition does not serve its kind and version.
fn collection(definition: &Value, object: &Value) -> Option<String> {
    let spec = &definition["spec"];
    let (group, version) = object["apiVersion"].as_str()?.split_once('/')?;
    let is_served = |it: &Value| it["name"] == version && it["served"] == true;
    let is_it = spec["group"] == group
        && spec["names"]["kind"] == object["kind"]
        && spec["versions"].as_array()?.iter().any(is_served);
    let plural = spec["names"]["plural"].as_str()?;
    let place = if spec["scope"] == "Namespaced" { "/namespaces/default" } else { "" };
    is_it.then(|| format!("/apis/{group}/{version}{place}/{plural}"))
}

/// Returns an answer without fields that vary, and with sorted errors.
///
/// The server reports the errors in any order.
pub(crate) fn comparable(answer: &Answer, has_name: bool) -> Value {
    let mut body = answer.body.clone();
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in ["uid", "creationTimestamp", "managedFields", "resourceVersion"] {
            metadata.remove(field);
        }
        if !has_name {
            // The server has generated the name.
            metadata.remove("name");
        }
    }
    if let Some(causes) = body.pointer_mut("/details/causes").and_then(Value::as_array_mut) {
        causes.sort_by_key(ToString::to_string);
        if causes.len() > 1 {
            body["message"] = Value::Null;
        }
    }
    let mut warnings = answer.warnings.clone();
    warnings.sort();
    json!({"status": answer.status, "body": body, "warnings": warnings})
}
