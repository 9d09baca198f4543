//! Converts objects to files that change only if what admission reads of the object changes.

use std::fmt::Write as _;

use harness::json::text;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{Failure, documents, machine_readable};

/// The fields of the metadata that the server sets and that differ between clusters with the same configuration.
const SERVER_FIELDS: [&str; 6] =
    ["managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink"];
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The maximum length of a name in a file name. File systems allow 255 bytes.
const MAX_NAME: usize = 200;

/// Removes everything that does not decide about admission.
///
/// The status is removed, except for the limits and usage of a quota and the phase of a namespace that is being deleted,
/// which admission reads. Of a service account, only the name and the namespace remain.
pub(super) fn reduced(mut object: Value) -> Value {
    let kind = (text(&object, &["apiVersion"]).to_owned(), text(&object, &["kind"]).to_owned());
    if (kind.0.as_str(), kind.1.as_str()) == ("v1", "ServiceAccount") {
        let metadata = ["name", "namespace"].map(|field| text(&object, &["metadata", field]));
        let metadata = json!({"name": metadata[0], "namespace": metadata[1]});
        return json!({"apiVersion": kind.0, "kind": kind.1, "metadata": metadata});
    }
    let Some(fields) = object.as_object_mut() else { return object };
    let status = fields.remove("status").unwrap_or_default();
    match (kind.0.as_str(), kind.1.as_str()) {
        ("v1", "ResourceQuota") if !status.is_null() => {
            fields.insert("status".to_owned(), status);
        }
        ("v1", "Namespace") if text(&status, &["phase"]) == "Terminating" => {
            fields.insert("status".to_owned(), json!({"phase": "Terminating"}));
        }
        _ => {}
    }
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in SERVER_FIELDS {
            metadata.remove(field);
        }
        let annotations = metadata.get_mut("annotations").and_then(Value::as_object_mut);
        if annotations.is_some_and(|annotations| {
            annotations.remove(LAST_APPLIED);
            annotations.is_empty()
        }) {
            metadata.remove("annotations");
        }
    }
    object
}

/// Returns the path of the object's file, relative to the directory of the pull.
pub(super) fn path(object: &Value, resource: &str) -> String {
    let (namespace, name) = (text(object, &["metadata", "namespace"]), text(object, &["metadata", "name"]));
    let (resource, name) = (file_name(resource), file_name(name));
    if namespace.is_empty() {
        format!("cluster/{resource}/{name}.yaml")
    } else {
        format!("namespaces/{}/{resource}/{name}.yaml", file_name(namespace))
    }
}

/// Encodes a name so that different names have different files on every file system, and no name leaves its directory.
fn file_name(name: &str) -> String {
    let mut encoded = String::new();
    for (index, byte) in name.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => encoded.push(char::from(byte)),
            b'.' if index > 0 => encoded.push('.'),
            _ => encoded.extend(format!("%{byte:02X}").chars()),
        }
    }
    if encoded.len() > MAX_NAME {
        let digest = Sha256::digest(name.as_bytes());
        encoded.truncate(MAX_NAME - 17);
        encoded.push('-');
        for byte in digest.iter().take(8) {
            let _ = write!(encoded, "{byte:02x}");
        }
    }
    encoded
}

/// Formats an object as YAML, or as JSON if YAML would not be read back as the same object.
///
/// # Errors
/// Returns an error if the object cannot be serialized.
pub(super) fn yaml(object: &Value) -> Result<String, Failure> {
    let yaml = machine_readable::yaml(object)?;
    let same = documents::of_text(yaml.clone(), "object").is_ok_and(|read| {
        let [document] = read.as_slice() else { return false };
        document.object == *object
    });
    if same { Ok(yaml) } else { machine_readable::json(object) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_encoded_so_that_they_stay_in_their_directory() {
        let names = [
            ("shop-1", "shop-1"),
            ("a.example.com", "a.example.com"),
            ("system:node", "system%3Anode"),
            ("..", "%2E."),
            ("../Etc", "%2E.%2F%45tc"),
            (".hidden", "%2Ehidden"),
        ];
        for (name, expected) in names {
            assert_eq!(file_name(name), expected);
        }
        let (long, other) = (format!("{}a", "x".repeat(252)), format!("{}b", "x".repeat(252)));
        assert_eq!(file_name(&long).len(), MAX_NAME);
        assert_ne!(file_name(&long), file_name(&other));
    }

    #[test]
    fn strings_that_look_like_other_values_are_read_back_as_strings() {
        let texts =
            ["0644", "yes", "null", "~", "1e3", "0x1F", "1:30", "a\n b\n", "- x", "# x", " x ", "\u{1b}[0m"];
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": texts});
        let read = documents::of_text(yaml(&object).unwrap(), "object").unwrap();
        assert_eq!(read[0].object, object);
    }

    #[test]
    fn fields_that_the_server_sets_are_removed() {
        let metadata = json!({
            "name": "a", "uid": "1", "resourceVersion": "2", "generation": 3, "creationTimestamp": "2026-01-01T00:00:00Z",
            "managedFields": [], "labels": {"team": "x"}, "annotations": {LAST_APPLIED: "{}"},
        });
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata, "status": {"phase": "Active"}});
        let expected = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "labels": {"team": "x"}}});
        assert_eq!(reduced(object), expected);
    }

    #[test]
    fn status_that_admission_reads_is_kept() {
        let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "status": {"used": {"pods": "1"}}});
        assert_eq!(reduced(quota.clone()), quota);
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "status": {"phase": "Terminating"}});
        assert_eq!(reduced(namespace.clone()), namespace);
    }

    #[test]
    fn only_the_name_of_a_service_account_is_kept() {
        let account = json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a", "namespace": "b", "labels": {"x": "y"}},
            "secrets": [{"name": "token"}],
        });
        let expected = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a", "namespace": "b"}});
        assert_eq!(reduced(account), expected);
    }
}
