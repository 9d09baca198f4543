//! Decodes the output of a credential plugin: an `ExecCredential` of `client.authentication.k8s.io`.

use jiff::Timestamp;
use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_admission::review::decode::{self, Document};
use kubernetes_admission::review::fields::Fields;
use kubernetes_cel::value::Timestamp as GoTime;
use kubernetes_types::quoting::quote;
use kubernetes_types::status::Unsupported;

use super::UserError;
use crate::tls::{self, Identity};

const GROUP: &str = "client.authentication.k8s.io";

/// The supported versions of the API `client.authentication.k8s.io`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ExecVersion {
    V1,
    V1beta1,
}

impl ExecVersion {
    /// Parses `api_version`; returns `None` if client-go does not support it.
    pub(super) fn parse(api_version: &str) -> Option<Self> {
        [Self::V1, Self::V1beta1].into_iter().find(|version| version.api_version() == api_version)
    }

    pub(super) fn api_version(self) -> String {
        format!("{GROUP}/{}", self.as_str())
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V1beta1 => "v1beta1",
        }
    }
}

/// The credentials that a plugin printed.
pub(super) struct Printed {
    /// The bearer token; empty if the plugin did not print a token.
    pub(super) token: String,
    pub(super) identity: Option<Identity>,
    /// The time at which the credentials expire and the plugin must run again. `None` if they do not expire.
    pub(super) expires: Option<Timestamp>,
}

/// Decodes the output of a plugin that was called with this `version`.
///
/// # Errors
/// Returns kube-apiserver's error for invalid output.
///
/// Source: client-go plugin/pkg/client/auth/exec/exec.go, `refreshCredsLocked`.
pub(super) fn read(stdout: &[u8], version: ExecVersion) -> Result<Printed, UserError> {
    let decoding = |text: String| UserError::Request(format!("decoding stdout: {text}"));
    let document = decode::document(stdout).map_err(|error| decoding(error.into_text()))?;
    let claimed = claimed(&document)?;
    if claimed.version == "__internal" {
        return Err(other_version(version, &claimed));
    }
    let fields = Fields::root(&document.fields, "ExecCredential");
    let go_type = format!("{}.ExecCredentialStatus", claimed.version);
    let status = fields
        .object("status", &go_type, "ExecCredentialStatus")
        .map_err(|error| decoding(error.into_text()))?;
    let text = |field: &str| match &status {
        None => Ok(None),
        Some(status) => status.string(field, "string").map_err(|error| decoding(error.into_text())),
    };
    let expires = text("expirationTimestamp")?.map(|time| expiration(&time)).transpose()?.flatten();
    let [token, certificate, key] = ["token", "clientCertificateData", "clientKeyData"]
        .map(|field| text(field).map(Option::unwrap_or_default));
    let (token, certificate, key) = (token?, certificate?, key?);
    if claimed.version != version.as_str() {
        return Err(other_version(version, &claimed));
    }
    let refused = |text: &str| Err(UserError::Request(text.to_owned()));
    if status.is_none() {
        return refused("exec plugin didn't return a status field");
    }
    let identity = match (certificate.is_empty(), key.is_empty()) {
        (true, true) if token.is_empty() => {
            return refused("exec plugin didn't return a token or cert/key pair");
        }
        (true, true) => None,
        (false, false) => {
            let identity = Identity { certificate: certificate.into_bytes(), key: key.into_bytes() };
            tls::certified_key(&identity).map_err(|text| {
                UserError::Request(format!("failed parsing client key/certificate: {text}"))
            })?;
            Some(identity)
        }
        (true, false) | (false, true) => {
            return refused("exec plugin returned only certificate or key, not both");
        }
    };
    Ok(Printed { token, identity, expires })
}

/// Returns the group, version, and kind of the document, with defaults for missing parts.
///
/// # Errors
/// Returns kube-apiserver's error if the document is not an `ExecCredential` of a known version.
///
/// Source: apimachinery pkg/runtime/serializer/json/json.go, `gvkWithDefaults`; pkg/runtime/error.go.
fn claimed(document: &Document) -> Result<GroupVersionKind, UserError> {
    let internal = GroupVersionKind::new(GROUP, "__internal", "ExecCredential");
    let claimed = decode::with_defaults(&document.claimed, &internal);
    let known = ["v1", "v1beta1", "__internal"].contains(&claimed.version.as_str());
    if claimed.group == GROUP && known && claimed.kind == "ExecCredential" {
        return Ok(claimed);
    }
    let text = match decode::go_package(&claimed, GROUP, &[]) {
        Some(package) => format!(
            "converting ({package}.{}) to (clientauthentication.ExecCredential): unknown conversion",
            claimed.kind
        ),
        None => decode::not_registered(&claimed),
    };
    Err(UserError::Request(format!("decoding stdout: {text}")))
}

fn other_version(version: ExecVersion, claimed: &GroupVersionKind) -> UserError {
    UserError::Request(format!(
        "exec plugin is configured to use API version {}, plugin returned version {}",
        version.api_version(),
        claimed.api_version(),
    ))
}

/// Parses an expiration time. Returns `None` for Go's zero time, the start of the year 1.
///
/// Source: apimachinery pkg/apis/meta/v1/time.go, `UnmarshalJSON`.
fn expiration(text: &str) -> Result<Option<Timestamp>, UserError> {
    if let Some(Ok(time)) = GoTime::parse(text) {
        let (seconds, nanoseconds) = time.instant();
        let nanoseconds = i32::try_from(nanoseconds).unwrap_or_default();
        if let Ok(time) = Timestamp::new(seconds, nanoseconds) {
            let zero =
                GoTime::parse("0001-01-01T00:00:00Z").and_then(Result::ok).map(|zero| zero.instant().0);
            return Ok(Some(time).filter(|time| Some(time.as_second()) != zero));
        }
    }
    if text.bytes().take(4).filter(u8::is_ascii_digit).count() < 4 {
        let time = quote(text);
        return Err(UserError::Request(format!(
            "decoding stdout: parsing time {time} as \"2006-01-02T15:04:05Z07:00\": cannot parse {time} as \"2006\""
        )));
    }
    let what =
        format!("a credential plugin whose expirationTimestamp {} is not an RFC 3339 time", quote(text));
    Err(UserError::Unsupported(Unsupported { what }))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn printed(status: &Value) -> Result<Printed, UserError> {
        let object = json!({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status});
        read(object.to_string().as_bytes(), ExecVersion::V1)
    }

    #[test]
    fn a_token_is_used_until_it_expires() {
        let printed = |time: &str| {
            printed(&json!({"token": "t", "expirationTimestamp": time})).map(|found| found.expires)
        };
        assert_eq!(
            printed("2030-01-01T01:00:00+01:00").unwrap().map(|time| time.to_string()).as_deref(),
            Some("2030-01-01T00:00:00Z")
        );
        assert_eq!(printed("0001-01-01T00:00:00Z").unwrap(), None);
        assert!(matches!(printed("2030-01-01"), Err(UserError::Unsupported(_))));
    }

    #[test]
    fn the_output_must_have_the_requested_kind_and_version() {
        let error = |text: &str| match read(text.as_bytes(), ExecVersion::V1beta1) {
            Err(UserError::Request(text)) => text,
            _ => panic!("{text} is taken"),
        };
        assert_eq!(
            error("apiVersion: client.authentication.k8s.io/v1"),
            "exec plugin is configured to use API version client.authentication.k8s.io/v1beta1, plugin returned version \
             client.authentication.k8s.io/v1"
        );
        assert_eq!(
            error("apiVersion: client.authentication.k8s.io/v1beta1\nstatus: {token: [t]}"),
            "decoding stdout: json: cannot unmarshal array into Go struct field ExecCredentialStatus.status.token of \
             type string"
        );
    }
}
