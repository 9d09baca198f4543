//! Field validation: the treatment of unknown and duplicate fields in a body.

use kubernetes_admission::yaml;
use kubernetes_types::schema::strictness;
use serde_json::Value;

use super::request::ObjectRequest;

/// `fieldValidation` of a request: the treatment of unknown and duplicate fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

impl FieldValidation {
    /// Source: apiserver pkg/endpoints/handlers/rest.go, `fieldValidation`.
    pub(crate) fn from_request(request: &ObjectRequest<'_>) -> Self {
        match request.query.first("fieldValidation") {
            Some("Ignore") => Self::Ignore,
            Some("Strict") => Self::Strict,
            _ => Self::Warn,
        }
    }

    /// Returns the errors of a strict decoder as warnings, or fails with them under strict validation.
    ///
    /// # Errors
    /// Returns the message of Go's strict decoder.
    ///
    /// Source: apimachinery pkg/runtime/error.go, `strictDecodingError`; sigs.k8s.io/json, `UnmarshalStrict`.
    pub(crate) fn tell(self, errors: Vec<String>) -> Result<Vec<String>, String> {
        match self {
            Self::Ignore => Ok(Vec::new()),
            Self::Warn => Ok(errors),
            Self::Strict => strictness::refuse(errors.into_iter()).map(|()| Vec::new()),
        }
    }

    /// Returns the errors of a strict YAML decoder like [`Self::tell`]; `repeated` contains the duplicate keys.
    ///
    /// Under strict validation, the duplicate keys form one error with several lines.
    ///
    /// # Errors
    /// Returns the message of Go's strict decoder.
    pub(crate) fn tell_of_yaml(
        self,
        repeated: Vec<String>,
        unknown: Vec<String>,
    ) -> Result<Vec<String>, String> {
        if self != Self::Strict || repeated.is_empty() {
            return self.tell(repeated.into_iter().chain(unknown).collect());
        }
        let repeated = format!("yaml: unmarshal errors:\n  {}", repeated.join("\n  "));
        self.tell(std::iter::once(repeated).chain(unknown).collect())
    }
}

/// Decodes the first document of a YAML body.
///
/// # Errors
/// Returns a message that begins with `yaml: `.
pub(crate) fn yaml(body: &[u8]) -> Result<Value, String> {
    let text = String::from_utf8_lossy(body);
    yaml::first_document(&text).map_err(|error| format!("yaml: {}", yaml::message(&text, &error)))
}
