//! Field validation: the treatment of unknown and duplicate fields in a body.

use kubernetes_admission::yaml;
use kubernetes_types::schema::strictness;

use super::request::ObjectRequest;

/// The `fieldValidation` of a request: the treatment of unknown and duplicate fields.
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

    /// Returns the errors of a strict decoder as [`Self::tell`] does; `repeated` contains the duplicate keys in YAML.
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
        self.tell(std::iter::once(yaml::strict_error(&repeated)).chain(unknown).collect())
    }
}

/// Decodes the first document of a YAML body.
///
/// # Errors
/// Returns the message of Go's library.
pub(crate) fn yaml(body: &[u8]) -> Result<yaml::Document, String> {
    let text = std::str::from_utf8(body).map_err(|error| invalid_utf8(body, &error))?;
    yaml::first_document(text)
}

/// Returns the error message for bytes that are not UTF-8.
///
/// Source: sigs.k8s.io/yaml goyaml.v2/readerc.go, `yaml_parser_update_buffer`.
fn invalid_utf8(body: &[u8], error: &std::str::Utf8Error) -> String {
    let leading = body.get(error.valid_up_to()).copied().unwrap_or_default();
    let what = match (error.error_len(), leading) {
        (None, _) => "incomplete UTF-8 octet sequence",
        (Some(_), 0xC0..=0xF7) => "invalid trailing UTF-8 octet",
        (Some(_), _) => "invalid leading UTF-8 octet",
    };
    format!("yaml: {what}")
}
