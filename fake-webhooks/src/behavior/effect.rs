//! Defines the parameters of behaviors that extend other behaviors.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Behavior, Time};

/// The parameters of `side-effect`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SideEffect {
    /// A request to send, in addition to the count in the journal.
    ///
    /// The field is boxed because nested behaviors are parsed recursively.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<Box<Write>>,
    /// The behavior after the side effect.
    pub then: Box<Behavior>,
}

/// An HTTP request that a side effect sends. Strings can contain the placeholders of `mutate`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Write {
    /// The URL, such as `http://127.0.0.1:8001/api/v1/namespaces/demo/configmaps`; with a kubeconfig, only its path.
    pub url: Target,
    /// The kubeconfig with the server, its CA certificates, and the token. The fake reads the file for each request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig: Option<PathBuf>,
    /// The bearer token. If it is empty, the `Authorization` header is omitted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub token: String,
    /// The trusted CA certificates in PEM format, for `https`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ca_bundle: String,
    /// The body of the POST request. The default is a ConfigMap with a name that is derived from the call.
    #[serde(default = "config_map")]
    pub body: Value,
    /// The delay between the call and the request. By default, the request is sent before the response.
    ///
    /// The request is sent even if the caller has disconnected.
    #[serde(default, skip_serializing_if = "Time::is_zero")]
    pub after: Time,
}

/// An `http` or `https` URL, or a path that begins with `/`. It can contain placeholders.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Target(String);

impl Target {
    /// Returns the URL as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn map(&self, change: impl Fn(&str) -> String) -> Self {
        Self(change(&self.0))
    }
}

impl TryFrom<String> for Target {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.starts_with('/') {
            return Ok(Self(text));
        }
        match text.parse::<url::Url>() {
            Ok(url) if ["http", "https"].contains(&url.scheme()) && url.has_host() => Ok(Self(text)),
            Ok(_) => Err(format!("invalid URL `{text}`: must have http:// or https:// and a host")),
            Err(error) => Err(format!("invalid URL `{text}`: {error}")),
        }
    }
}

impl From<Target> for String {
    fn from(target: Target) -> Self {
        target.0
    }
}

fn config_map() -> Value {
    serde_json::json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "side-effect-{uid}"},
        "data": {"operation": "{operation}", "namespace": "{namespace}", "name": "{name}"},
    })
}

/// The parameters of `leak`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Leak {
    /// The number of bytes to leak for each call.
    pub bytes: u32,
    /// The maximum number of bytes to leak.
    pub most: u32,
    /// The behavior that responds.
    pub then: Box<Behavior>,
}

impl Default for Leak {
    fn default() -> Self {
        Self { bytes: 64 << 10, most: 16 << 20, then: Box::default() }
    }
}

/// The parameters of `queue`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Queue {
    /// The duration of each call. A call starts after all earlier calls end, even if their callers have disconnected.
    pub hold: Time,
    /// The behavior that responds.
    pub then: Box<Behavior>,
}

impl Default for Queue {
    fn default() -> Self {
        Self { hold: Duration::from_millis(100).into(), then: Box::default() }
    }
}

/// The parameters of `mix-up`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct MixUp {
    /// The delay of each response, so that calls overlap.
    pub hold: Time,
    /// The behavior that responds. If another review is in progress, the response contains its UID.
    pub then: Box<Behavior>,
}

impl Default for MixUp {
    fn default() -> Self {
        Self { hold: Duration::from_millis(100).into(), then: Box::default() }
    }
}
