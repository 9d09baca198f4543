//! Reads the file of `--tracing-config-file`.

use std::path::Path;

use serde_json::{Number, Value};
use url::Url;

use crate::Failure;
use crate::component_config::{self, check_kind, mistyped, strict, text, unknown_fields};

const VERSIONS: [&str; 3] =
    ["apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1beta1", "apiserver.config.k8s.io/v1alpha1"];

const MILLION: i32 = 1_000_000;

/// The fields of a `TracingConfiguration` that admit supports.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TracingConfiguration {
    /// The field `endpoint`: the address of the collector in gRPC's syntax.
    pub(super) endpoint: Option<String>,
    /// The field `samplingRatePerMillion`: the number of sampled traces per million traces that start at this server.
    pub(super) sampling_rate_per_million: i32,
}

impl TracingConfiguration {
    /// Reads and validates the configuration file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is invalid. Errors have kube-apiserver's messages, except for
    /// YAML errors.
    ///
    /// Source: apiserver pkg/server/options/tracing.go, `ReadTracingConfiguration` and `ApplyTo`.
    pub(super) fn read(file: &Path) -> Result<Self, Failure> {
        let wrong =
            |what: String| Failure::usage(format!("--tracing-config-file {}: {what}", file.display()));
        let document = component_config::document(file).map_err(wrong)?;
        let configuration = Self::decode(&document).map_err(|why| {
            wrong(format!(
                "failed to read tracing config: unable to decode tracing configuration data: {why}"
            ))
        })?;
        match configuration.errors().as_slice() {
            [] => Ok(configuration),
            [error] => Err(wrong(format!("failed to validate tracing configuration: {error}"))),
            errors => {
                Err(wrong(format!("failed to validate tracing configuration: [{}]", errors.join(", "))))
            }
        }
    }

    /// Decodes the configuration. As in kube-apiserver, `apiVersion` and `kind` may be missing.
    fn decode(document: &Value) -> Result<Self, String> {
        let object = match document {
            Value::Null => return Ok(Self::default()),
            Value::Object(object) => object,
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Err("expected an object with apiVersion and kind".to_owned());
            }
        };
        if object.contains_key("apiVersion") || object.contains_key("kind") {
            check_kind(object, "TracingConfiguration", &VERSIONS)?;
        }
        let path = |field: &str| format!("TracingConfiguration.TracingConfiguration.{field}");
        let endpoint = text(object, "endpoint", &path("endpoint"))?;
        let mistyped_rate = |found: &Value| {
            let of = path("samplingRatePerMillion");
            if let Value::Number(number) = found {
                format!("json: cannot unmarshal number {number} into Go struct field {of} of type int32")
            } else {
                mistyped(found, &of, "int32")
            }
        };
        let sampling_rate_per_million = match object.get("samplingRatePerMillion") {
            None | Some(Value::Null) => 0,
            Some(rate) => rate
                .as_number()
                .and_then(Number::as_i64)
                .and_then(|rate| i32::try_from(rate).ok())
                .ok_or_else(|| mistyped_rate(rate))?,
        };
        let known = ["apiVersion", "kind", "endpoint", "samplingRatePerMillion"];
        let unknown = unknown_fields(object, "", &known);
        if !unknown.is_empty() {
            return Err(strict(&unknown));
        }
        let endpoint = object.get("endpoint").filter(|written| !written.is_null()).map(|_| endpoint);
        Ok(Self { endpoint, sampling_rate_per_million })
    }

    /// Returns kube-apiserver's validation errors.
    ///
    /// Source: component-base tracing/api/v1/config.go, `ValidateTracingConfiguration`.
    fn errors(&self) -> Vec<String> {
        let rate = self.sampling_rate_per_million;
        let mut errors = Vec::new();
        let mut wrong_rate =
            |why: &str| errors.push(format!("samplingRatePerMillion: Invalid value: {rate}: {why}"));
        if rate < 0 {
            wrong_rate("sampling rate must be positive");
        }
        if rate > MILLION {
            wrong_rate("sampling rate per million must be less than or equal to one million");
        }
        errors.extend(self.endpoint.as_deref().and_then(endpoint_error));
        errors
    }
}

fn endpoint_error(endpoint: &str) -> Option<String> {
    let (scheme, _) = endpoint.split_once("//")?;
    let scheme = scheme.strip_suffix(':').unwrap_or_default().to_ascii_lowercase();
    if Url::parse(endpoint).is_err() || ["dns", "unix", "unix-abstract"].contains(&scheme.as_str()) {
        return None;
    }
    Some(format!(
        "endpoint: Invalid value: {endpoint:?}: unsupported scheme: {scheme}.  Options are none, dns, unix, or unix-abstract.  \
         See https://github.com/grpc/grpc/blob/master/doc/naming.md"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_errors_are_in_the_words_of_kube_apiserver() {
        // Recorded from kube-apiserver 1.37.1.
        let of = |fields: Value| {
            let mut object = json!({"apiVersion": VERSIONS[0], "kind": "TracingConfiguration"});
            object.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            TracingConfiguration::decode(&object)
        };
        let into = |found: &str, field: &str, of: &str| {
            format!(
                "json: cannot unmarshal {found} into Go struct field TracingConfiguration.TracingConfiguration.{field} \
                 of type {of}"
            )
        };
        let rate = "samplingRatePerMillion";
        for (fields, expected) in [
            (json!({"foo": 1}), "strict decoding error: unknown field \"foo\"".to_owned()),
            (json!({"Endpoint": "a:1"}), "strict decoding error: unknown field \"Endpoint\"".to_owned()),
            (json!({"endpoint": 5}), into("number", "endpoint", "string")),
            (json!({rate: "5"}), into("string", rate, "int32")),
            (json!({rate: 1.5}), into("number 1.5", rate, "int32")),
            (json!({rate: 3_000_000_000_u32}), into("number 3000000000", rate, "int32")),
        ] {
            assert_eq!(of(fields), Err(expected));
        }
        let errors = |fields: Value| of(fields).unwrap().errors();
        assert_eq!(
            errors(json!({rate: -1, "endpoint": "http://x:1"})),
            [
                "samplingRatePerMillion: Invalid value: -1: sampling rate must be positive",
                "endpoint: Invalid value: \"http://x:1\": unsupported scheme: http.  Options are none, dns, unix, or \
                 unix-abstract.  See https://github.com/grpc/grpc/blob/master/doc/naming.md",
            ]
        );
        assert_eq!(
            errors(json!({rate: 1_000_001})),
            [
                "samplingRatePerMillion: Invalid value: 1000001: sampling rate per million must be less than or equal to one \
                 million"
            ]
        );
    }

    #[test]
    fn a_file_may_omit_its_api_version_and_kind() {
        assert_eq!(TracingConfiguration::decode(&Value::Null), Ok(TracingConfiguration::default()));
        let read = TracingConfiguration::decode(&json!({"endpoint": "localhost:1"})).unwrap();
        assert_eq!(read.endpoint.as_deref(), Some("localhost:1"));
        assert_eq!(read.errors(), [""; 0]);
        let other = TracingConfiguration::decode(&json!({"apiVersion": VERSIONS[2], "kind": "Foo"}));
        assert!(other.unwrap_err().starts_with("no kind \"Foo\" is registered"));
    }
}
