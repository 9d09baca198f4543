//! Compares objects of built-in kinds, and variants with one invalid field, on a kube-apiserver and in process.
//!
//! Each object is created in a dry run. Acceptance, defaults, errors, and warnings must be the same on both servers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};

use crate::case::Plugins;
use crate::difference::{differences, side_by_side};
use crate::published::{self, PublishedError};
use crate::server::Server;
use crate::transport::{Answer, Message};

/// The modules whose manifests are compared by default, each with its directories.
const UPSTREAM: [(&str, &[&str]); 3] = [
    (
        "k8s.io/kubernetes@v1.37.1",
        &["test/fixtures", "test/e2e/testing-manifests", "cluster/addons", "hack/testdata"],
    ),
    ("k8s.io/kubectl@v0.37.1", &["testdata"]),
    ("k8s.io/api@v0.37.1", &["testdata/HEAD"]),
];
/// The maximum number of fields of one object to make invalid.
const MAX_FIELDS: usize = 200;

/// The objects to compare.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ObjectSelection {
    /// Directories of YAML files; by default those of upstream's modules
    pub folders: Vec<PathBuf>,
    /// Number of accepted objects of each kind to make variants of
    #[arg(long, default_value_t = 0)]
    pub varied: usize,
    /// Compare only this kind, such as `Ingress`
    #[arg(long)]
    pub kind: Option<String>,
}

/// The results of the comparison.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// The number of objects that were sent, by kind.
    pub objects: BTreeMap<String, usize>,
    /// The number of variants that were sent.
    pub variants: usize,
    /// The features that admit does not support, with the number of requests that need each.
    pub unsupported: BTreeMap<String, usize>,
    /// The differences by kind and nature, each with an example and the number of occurrences.
    pub differences: BTreeMap<(String, String), (String, usize)>,
}

impl Comparison {
    /// Returns the number of answers that differ.
    pub fn differing(&self) -> usize {
        self.differences.values().map(|(_, count)| count).sum()
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sorted: Vec<_> = self.differences.iter().collect();
        sorted.sort_by_key(|(_, (_, count))| std::cmp::Reverse(*count));
        for ((kind, what), (example, count)) in sorted {
            writeln!(f, "{count} x {kind}, {what}:\n{example}")?;
        }
        for (what, count) in &self.unsupported {
            writeln!(f, "{count} x {what}")?;
        }
        let (objects, unsupported): (usize, usize) =
            (self.objects.values().sum(), self.unsupported.values().sum());
        write!(
            f,
            "{objects} objects of {} kinds and {} variants, {} differ, {unsupported} are not imitated",
            self.objects.len(),
            self.variants,
            self.differing()
        )
    }
}

/// Compares the answers of both servers to the selected objects and their variants.
///
/// # Errors
/// Returns an error if a module cannot be fetched, or a server does not answer.
pub async fn compare(wanted: &ObjectSelection) -> Result<Comparison, PublishedError> {
    let mut folders = wanted.folders.clone();
    if folders.is_empty() {
        for (module, parts) in UPSTREAM {
            let module = published::fetched(module)?;
            folders.extend(parts.iter().map(|part| module.join(part)));
        }
    }
    let real = Server::apiserver().await?;
    let own = Server::in_process(Arc::clone(&real.authority), &Plugins::default()).await?;
    let mut run = Run { real, own, served: BTreeMap::new(), comparison: Comparison::default() };
    let mut varied: BTreeMap<String, usize> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for object in folders.iter().flat_map(|folder| objects(folder)) {
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        if wanted.kind.as_ref().is_some_and(|only| *only != kind) || !seen.insert(object.to_string()) {
            continue;
        }
        let Some((uri, object)) = run.destination(object).await? else { continue };
        *run.comparison.objects.entry(kind.clone()).or_default() += 1;
        let is_accepted = run.one(&uri, &object, "as it is").await?;
        let count = varied.entry(format!("{} {kind}", object["apiVersion"])).or_default();
        if is_accepted && *count < wanted.varied {
            *count += 1;
            for (what, variant) in variants(&object) {
                run.comparison.variants += 1;
                run.one(&uri, &variant, &what).await?;
            }
        }
    }
    Ok(run.comparison)
}

/// Returns the objects in a directory, including those in lists.
fn objects(folder: &Path) -> Vec<Value> {
    let mut objects = Vec::new();
    for document in published::documents(folder) {
        match document.get("items").and_then(Value::as_array) {
            Some(items) if document["kind"] == "List" => objects.extend(items.iter().cloned()),
            _ => objects.push(document),
        }
    }
    objects
}

/// The two servers and the results so far.
struct Run {
    real: Server,
    own: Server,
    /// The kinds of each API version.
    served: BTreeMap<String, Value>,
    comparison: Comparison,
}

impl Run {
    /// Returns the URI for creating an object in a dry run, and the object, moved to an existing namespace.
    ///
    /// Returns `None` if objects of this kind cannot be created.
    async fn destination(&mut self, mut object: Value) -> Result<Option<(String, Value)>, PublishedError> {
        let (Some(version), Some(kind)) = (object["apiVersion"].as_str(), object["kind"].as_str()) else {
            return Ok(None);
        };
        let prefix = if version.contains('/') { "apis" } else { "api" };
        let path = format!("/{prefix}/{version}");
        if !self.served.contains_key(&path) {
            let answer = self.real.ask(Message::new(Method::GET, path.as_str(), None)).await?;
            self.served.insert(path.clone(), answer.body);
        }
        let resources = self.served.get(&path).and_then(|found| found["resources"].as_array());
        let is_it = |resource: &&Value| {
            resource["kind"] == kind
                && resource["name"].as_str().is_some_and(|name| !name.contains('/'))
                && resource["verbs"].as_array().is_some_and(|verbs| verbs.contains(&json!("create")))
        };
        let Some(resource) = resources.into_iter().flatten().find(is_it) else { return Ok(None) };
        let name = resource["name"].as_str().unwrap_or_default();
        let place = if resource["namespaced"] == true { "/namespaces/default" } else { "" };
        let uri = format!("{path}{place}/{name}?dryRun=All");
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("namespace");
        }
        Ok(Some((uri, object)))
    }

    /// Sends one request to both servers and compares the answers. Returns whether the real server accepts it.
    async fn one(&mut self, uri: &str, object: &Value, what: &str) -> Result<bool, PublishedError> {
        let post = || Message::new(Method::POST, uri, Some(object.clone()));
        let (real, own) = (self.real.ask(post()).await?, self.own.ask(post()).await?);
        let is_accepted = real.is_success();
        if own.status == 501 {
            let what = own.body["message"].as_str().unwrap_or_default().to_owned();
            *self.comparison.unsupported.entry(what).or_default() += 1;
            return Ok(is_accepted);
        }
        let has_name = object["metadata"]["name"].is_string();
        let compared =
            [&real, &own].map(|answer| without_uid(&published::comparable(answer, has_name), answer));
        let [expected, found] = &compared;
        let differing = differences(expected, found);
        if !differing.is_empty() {
            let kind = format!("{} {}", object["apiVersion"], object["kind"]).replace('"', "");
            let key = (kind, nature(&real, &own));
            let example = || format!("  {what} {}\n{}", object["metadata"]["name"], side_by_side(&differing));
            self.comparison.differences.entry(key).or_insert_with(|| (example(), 0)).1 += 1;
        }
        Ok(is_accepted)
    }
}

/// Removes the UID of a Job from `compared`, because a Job also contains its UID in labels.
fn without_uid(compared: &Value, answer: &Answer) -> Value {
    match answer.body.pointer("/metadata/uid").and_then(Value::as_str) {
        Some(uid) if uid.len() == 36 => serde_json::from_str(&compared.to_string().replace(uid, "UID"))
            .unwrap_or_else(|_| compared.clone()),
        _ => compared.clone(),
    }
}

/// Summarizes a difference, so that similar differences are counted together.
fn nature(real: &Answer, own: &Answer) -> String {
    let fields = |answer: &Answer| -> BTreeSet<String> {
        let causes = answer.body.pointer("/details/causes").and_then(Value::as_array);
        let field = |cause: &Value| generic(cause["field"].as_str().unwrap_or_default());
        causes.into_iter().flatten().map(field).collect()
    };
    if real.status != own.status || fields(real) != fields(own) {
        let missing: Vec<String> = fields(real).difference(&fields(own)).cloned().collect();
        let more: Vec<String> = fields(own).difference(&fields(real)).cloned().collect();
        let (missing, more) = (missing.join(" "), more.join(" "));
        return format!("{} and {}, missing [{missing}], more [{more}]", real.status, own.status);
    }
    if real.warnings == own.warnings { "another body".to_owned() } else { "other warnings".to_owned() }
}

/// Removes the indexes and map keys from a path.
fn generic(field: &str) -> String {
    let mut depth = 0_usize;
    let mut kept = String::new();
    for letter in field.chars() {
        match letter {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ if depth == 0 => kept.push(letter),
            _ => {}
        }
    }
    kept
}

/// Returns variants of an object with one field removed or made invalid, each with a description of the change.
pub(crate) fn variants(object: &Value) -> Vec<(String, Value)> {
    let mut paths = Vec::new();
    for (name, member) in object.as_object().into_iter().flatten() {
        if !["apiVersion", "kind", "metadata", "status"].contains(&name.as_str()) {
            collect(member, &format!("/{}", escaped(name)), &mut paths);
        }
    }
    let mut variants = Vec::new();
    for path in paths.into_iter().take(MAX_FIELDS) {
        let Some(found) = object.pointer(&path) else { continue };
        for wrong in wrong_values(found) {
            let mut variant = object.clone();
            if let Some(member) = variant.pointer_mut(&path) {
                let what = format!("{path} is {wrong}").chars().take(120).collect();
                *member = wrong;
                variants.push((what, variant));
            }
        }
    }
    variants
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Collects JSON pointers to a value and to all nested values. For a list, only the first two items are included.
fn collect(value: &Value, path: &str, paths: &mut Vec<String>) {
    paths.push(path.to_owned());
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                collect(member, &format!("{path}/{}", escaped(name)), paths);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate().take(2) {
                collect(item, &format!("{path}/{index}"), paths);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns invalid replacements for a value. Null means that the value is removed.
fn wrong_values(value: &Value) -> Vec<Value> {
    match value {
        Value::Null => Vec::new(),
        Value::Bool(value) => vec![Value::Null, json!(!value)],
        Value::Number(_) => vec![Value::Null, json!(-1), json!(0), json!(70_000)],
        Value::String(_) => vec![Value::Null, json!(""), json!("A b_"), json!("a".repeat(300))],
        Value::Array(items) => {
            let twice: Vec<Value> = items.iter().chain(items.first()).cloned().collect();
            vec![Value::Null, json!([]), json!(twice)]
        }
        Value::Object(_) => vec![Value::Null, json!({})],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_is_removed_and_made_wrong() {
        let object = json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}, "spec": {"a/b": 1}});
        let variants = variants(&object);
        let specs: Vec<&Value> = variants.iter().map(|(_, variant)| &variant["spec"]).collect();
        assert_eq!(specs.len(), 6);
        assert!(specs.contains(&&json!({"a/b": -1})) && specs.contains(&&Value::Null));
        assert!(variants.iter().all(|(_, variant)| variant["metadata"] == object["metadata"]));
    }

    #[test]
    fn a_path_loses_its_numbers_and_keys() {
        assert_eq!(generic("spec.rules[3].http.paths[0]"), "spec.rules.http.paths");
    }
}
