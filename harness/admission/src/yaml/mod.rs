//! Decodes YAML as sigs.k8s.io/yaml does: with the words and numbers of YAML 1.1, tags, anchors, and merge keys.

mod compose;
mod decode;
mod message;
mod scalar;

use serde_json::Value;

/// The first document of a YAML text.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Document {
    /// The document as JSON. If a key is duplicated, its last value is used.
    pub value: Value,
    /// An error for each duplicate key, with the line of the later value.
    ///
    /// Source: sigs.k8s.io/yaml goyaml.v2/decode.go, `setMapIndex`.
    pub repeated: Vec<String>,
}

/// Decodes the first document in a text.
///
/// Anything after the first document is ignored, even if it is not YAML.
///
/// # Errors
/// Returns kube-apiserver's message if the first document is not valid YAML, or cannot be converted to JSON. The
/// wording of syntax errors may differ.
///
/// Source: sigs.k8s.io/yaml yaml.go, `YAMLToJSON`; goyaml.v2/yaml.go, `Unmarshal`.
pub fn first_document(text: &str) -> Result<Document, String> {
    let nodes = compose::first_document(text)?;
    decode::document(&nodes)
}

/// Returns the error of a strict decoder about [`Document::repeated`], which must not be empty.
///
/// Source: sigs.k8s.io/yaml goyaml.v2/yaml.go, `TypeError.Error`.
pub fn strict_error(repeated: &[String]) -> String {
    format!("yaml: unmarshal errors:\n  {}", repeated.join("\n  "))
}

#[cfg(test)]
mod tests;
