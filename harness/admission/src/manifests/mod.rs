//! Reads webhook configurations from files: the `staticManifestsDir` of the plugins' configuration.
//!
//! This module parses the files; the caller finds and reads them.

mod decoding;
mod documents;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use kubernetes_types::json::{at, text};
use kubernetes_types::quoting::quote;
use kubernetes_types::status::{Unsupported, aggregate};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use self::decoding::{DecodeError, Decoded};
use crate::config::{self, ConfigError, MUTATING, Phase, STATIC_SUFFIX, VALIDATING, Webhook};

/// A manifest file that has been read but not parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a file has a path and bytes")]
pub struct ManifestFile {
    /// The path of the file, as shown in messages.
    pub path: String,
    /// The content of the file.
    pub bytes: Vec<u8>,
}

/// The configurations of one kind in a directory.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Manifests {
    /// The configurations as written, without API defaults, sorted by name in byte order.
    pub configurations: Vec<Arc<Value>>,
    /// The webhooks of the configurations, in dispatch order.
    pub webhooks: Vec<Arc<Webhook>>,
    /// The hash of the files' contents: `sha256:` and 64 hexadecimal digits; empty if there are no files.
    pub hash: String,
}

/// The manifests of both admission plugins; `None` for a plugin without a directory.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "admission has these two halves")]
pub struct StaticManifests {
    /// The configurations for `MutatingAdmissionWebhook`.
    pub mutating: Option<Manifests>,
    /// The configurations for `ValidatingAdmissionWebhook`.
    pub validating: Option<Manifests>,
}

/// The reason why the files of a directory cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(clippy::exhaustive_enums, reason = "the server says so, or admit cannot tell")]
pub enum ManifestError {
    /// kube-apiserver rejects the files; contains its error message.
    #[error("{0}")]
    Invalid(String),
    /// admit does not support the file, although kube-apiserver might.
    #[error("{0}")]
    Unsupported(Unsupported),
}

/// Returns whether a file is read: its extension is `yaml`, `yml`, or `json`, ignoring case.
///
/// A file named `.yaml` is also read.
///
/// Source: apiserver pkg/admission/plugin/manifest/loader.go, `LoadFiles`; Go path/filepath, `Ext`.
/// Rule: LOAD-11.
pub fn is_manifest(file_name: &str) -> bool {
    let extension = file_name.rsplit_once('.').map(|(_, extension)| extension);
    extension
        .is_some_and(|found| ["yaml", "yml", "json"].iter().any(|known| found.eq_ignore_ascii_case(known)))
}

/// Reads the configurations for `phase` from `files`. The files must be sorted by name. Empty files are ignored.
///
/// # Errors
/// Returns [`ManifestError`] for the first error. The message is kube-apiserver's and names the file.
///
/// Source: apiserver pkg/admission/plugin/webhook/manifest/loader/loader.go, `LoadManifests`; kubernetes
/// pkg/admission/plugin/webhook/manifest/loader/loader.go.
/// Rule: LOAD-13.
pub fn load(phase: Phase, files: &[ManifestFile]) -> Result<Manifests, ManifestError> {
    let mut loader = Loader { kind: kind_of(phase), seen: BTreeMap::new(), found: Vec::new() };
    let mut documents = Vec::new();
    for file in files.iter().filter(|file| !file.bytes.is_empty()) {
        let split = documents::split(&file.bytes).map_err(|error| {
            let file = quote(&file.path);
            ManifestError::Invalid(format!("failed to split YAML documents in file {file}: {error}"))
        })?;
        documents.extend(split.into_iter().map(|document| (file.path.as_str(), document)));
    }
    for (path, document) in documents {
        loader.document(&document, path, "").map_err(|error| match error {
            ManifestError::Invalid(text) => ManifestError::Invalid(format!("error loading {path}: {text}")),
            ManifestError::Unsupported(Unsupported { what }) => {
                ManifestError::Unsupported(Unsupported { what: format!("{path}: {what}") })
            }
        })?;
    }
    let mut found = loader.found;
    found.sort_by(|(one, _), (other, _)| {
        text(one, &["metadata", "name"]).cmp(text(other, &["metadata", "name"]))
    });
    let webhooks = found.iter().flat_map(|(_, webhooks)| webhooks).cloned().collect();
    let configurations = found.into_iter().map(|(configuration, _)| configuration).collect();
    Ok(Manifests { configurations, webhooks, hash: hash(files) })
}

fn kind_of(phase: Phase) -> &'static str {
    match phase {
        Phase::Mutating => MUTATING,
        Phase::Validating => VALIDATING,
    }
}

/// Returns the hash of the contents of all non-empty files; empty if there are none.
///
/// Source: apiserver pkg/admission/plugin/manifest/loader.go, `LoadFiles`.
fn hash(files: &[ManifestFile]) -> String {
    let mut hash = Sha256::new();
    let mut is_empty = true;
    for file in files.iter().filter(|file| !file.bytes.is_empty()) {
        hash.update(&file.bytes);
        hash.update([0]);
        is_empty = false;
    }
    if is_empty { String::new() } else { format_hash(&hash.finalize()) }
}

/// Formats a hash for metric labels: `sha256:` and hexadecimal digits.
fn format_hash(hash: &[u8]) -> String {
    let mut text = "sha256:".to_owned();
    for byte in hash {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Returns the hash that metric labels contain instead of `text`; empty if `text` is empty.
///
/// Source: apiserver pkg/admission/plugin/manifest/metrics/metrics.go, `getHash`.
pub(crate) fn hash_of(text: &str) -> String {
    if text.is_empty() { String::new() } else { format_hash(&Sha256::digest(text.as_bytes())) }
}

struct Loader<'a> {
    kind: &'static str,
    /// The configuration names seen so far, each with the path of its file.
    seen: BTreeMap<String, &'a str>,
    found: Vec<(Arc<Value>, Vec<Arc<Webhook>>)>,
}

impl<'a> Loader<'a> {
    /// Decodes and validates one document. `decoding` is the prefix of decoder errors.
    fn document(&mut self, document: &[u8], path: &'a str, decoding: &str) -> Result<(), ManifestError> {
        let decoded = decoding::decode(document, self.kind).map_err(|error| match error {
            DecodeError::Invalid(text) => ManifestError::Invalid(format!("{decoding}{text}")),
            DecodeError::OtherKind(text) => ManifestError::Invalid(text),
            DecodeError::Unsupported(unsupported) => ManifestError::Unsupported(unsupported),
        })?;
        match decoded {
            Decoded::Configurations(configurations) => {
                for configuration in &configurations {
                    self.validate(configuration)?;
                }
                for configuration in configurations {
                    self.accept(configuration, path)?;
                }
            }
            Decoded::List(items) => {
                for item in items {
                    self.document(item.as_bytes(), path, "failed to decode list item: ")?;
                }
            }
        }
        Ok(())
    }

    /// Validates a configuration with its defaults set.
    ///
    /// Source: kubernetes pkg/admission/plugin/webhook/manifest/loader/loader.go, `defaultAndValidateMWC`.
    /// Rule: LOAD-12.
    fn validate(&self, configuration: &Value) -> Result<(), ManifestError> {
        for field in ["ownerReferences", "managedFields"] {
            let list = at(configuration, &["metadata", field]).as_array();
            if list.is_some_and(|list| !list.is_empty()) {
                let what = format!("metadata.{field} in a manifest");
                return Err(ManifestError::Unsupported(Unsupported { what }));
            }
        }
        let mut with_defaults = configuration.clone();
        config::set_defaults(&mut with_defaults);
        let errors = config::validate_manifest(&with_defaults);
        if errors.is_empty() {
            return Ok(());
        }
        let name = quote(text(configuration, &["metadata", "name"]));
        let errors = aggregate(errors.iter().map(ToString::to_string));
        Err(ManifestError::Invalid(format!("{} {name}: {errors}", self.kind)))
    }

    /// Adds a configuration, after checking its name and the addresses of its webhooks.
    ///
    /// Source: apiserver pkg/admission/plugin/manifest/validation.go, `ValidateManifestName`;
    /// pkg/admission/plugin/webhook/manifest/loader/loader.go, `ValidateWebhookClientConfig`.
    /// Rule: LOAD-12.
    fn accept(&mut self, configuration: Value, path: &'a str) -> Result<(), ManifestError> {
        let invalid = |text: String| Err(ManifestError::Invalid(text));
        let name = text(&configuration, &["metadata", "name"]).to_owned();
        let (shown, file) = (quote(&name), quote(path));
        if !name.ends_with(STATIC_SUFFIX) {
            return invalid(format!(
                "{shown} in file {file} must have a name ending with {}",
                quote(STATIC_SUFFIX)
            ));
        }
        if let Some(earlier) = self.seen.get(&name) {
            let earlier = quote(earlier);
            return invalid(format!(
                "duplicate name {shown} found in file {file} (previously seen in {earlier})"
            ));
        }
        self.seen.insert(name, path);
        for webhook in at(&configuration, &["webhooks"]).as_array().into_iter().flatten() {
            if at(webhook, &["clientConfig", "service"]).is_object() {
                let webhook = quote(text(webhook, &["name"]));
                return invalid(format!(
                    "webhook {webhook} in {shown} (file {file}): clientConfig.service is not supported for static \
                     manifests; use clientConfig.url instead"
                ));
            }
        }
        let webhooks = config::manifest_webhooks(&configuration).map_err(|error| match error {
            ConfigError::Unsupported(unsupported) => ManifestError::Unsupported(unsupported),
            error @ ConfigError::Field { .. } => ManifestError::Invalid(error.to_string()),
        })?;
        self.found.push((Arc::new(configuration), webhooks.into_iter().map(Arc::new).collect()));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
