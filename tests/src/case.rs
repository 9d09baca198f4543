//! Defines the file format of a case: `case.yaml`.

use std::collections::BTreeMap;

use fake_webhooks::{Behavior, Certificate, Connection, HttpVersions};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_saphyr::Spanned;

/// A case: existing objects, webhooks, and requests to the server.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Case {
    /// The version of this format: 1.
    pub version: u32,
    /// The statements of `tests/behaviors.md` that this case proves.
    #[serde(default)]
    pub proves: Vec<String>,
    /// Whether the case must run alone, because its webhooks may be called for requests of other cases.
    #[serde(default)]
    pub serial: bool,
    /// The webhooks whose order of responses affects the server's answer.
    ///
    /// The recording has one alternative for each webhook that may respond first.
    #[serde(default)]
    pub race: Vec<String>,
    /// The settings of the server's in-tree admission plugins. Cases with the same settings share a server.
    #[serde(default)]
    pub plugins: Plugins,
    /// The conversion webhooks of the custom resource definitions.
    #[serde(default)]
    pub converters: Vec<Converter>,
    /// The objects that exist before the webhooks are registered.
    ///
    /// In a custom resource definition, a conversion's `clientConfig` with `converter: NAME` is replaced with the
    /// `clientConfig` of that converter.
    #[serde(default)]
    pub cluster: Vec<Value>,
    /// The webhooks, in the order of their configurations.
    #[serde(default)]
    pub webhooks: Vec<Webhook>,
    /// The names of the configurations that are written directly to storage.
    ///
    /// They bypass validation and admission, as configurations from an earlier server version do. Fields that are null
    /// are removed.
    #[serde(default)]
    pub stored: Vec<String>,
    /// The version of `admissionregistration.k8s.io` in which the `stored` configurations are written.
    #[serde(default = "v1")]
    pub stored_version: String,
    /// Whether `metadata.managedFields` is also compared.
    #[serde(default)]
    pub managed_fields: bool,
    /// The requests, in order.
    pub requests: Vec<Spanned<Request>>,
}

/// The settings of a server's in-tree admission plugins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Plugins {
    /// The value of `--enable-admission-plugins`.
    #[serde(default)]
    pub enable: Vec<String>,
    /// The value of `--disable-admission-plugins`.
    #[serde(default)]
    pub disable: Vec<String>,
    /// The content of the file in `--admission-control-config-file`; empty omits the flag.
    ///
    /// The content must be the same for every run, so it cannot use `<id>`.
    #[serde(default)]
    pub configuration: String,
    /// The content of a kubeconfig with credentials for webhooks.
    ///
    /// `<credentials>` in `configuration` is replaced with the path of this file.
    #[serde(default)]
    pub credentials: String,
    /// The contents of additional files in a directory, by file name. A name that ends with `/` is a directory.
    ///
    /// `<folder>` in these files and in `configuration` is replaced with the path of the directory.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// The names of webhooks that run as long as the server.
    ///
    /// A webhook whose name begins with `certificate` requires a client certificate. In all files, `<port of NAME>` is
    /// replaced with the port of a webhook, `<caBundle>` with the CA of the webhooks' certificates, and `<client
    /// certificate>` and `<client key>` with the certificate and key of a client `jane`. Cases with such webhooks are
    /// serial.
    #[serde(default)]
    pub webhooks: Vec<String>,
    /// The content of the file in `--audit-policy-file`; empty omits the flag.
    ///
    /// If it is set, all audit events of each request are recorded.
    #[serde(default)]
    pub audit_policy: String,
}

/// A webhook that a case configures, and how it responds.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// The name of the webhook. The domain of the case is appended to a name without a dot.
    pub name: String,
    /// The kind of configuration that contains the webhook.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// The name of the configuration that contains the webhook.
    #[serde(default = "only_configuration")]
    pub configuration: String,
    /// The behavior of the webhook.
    #[serde(default)]
    pub behavior: Behavior,
    /// The certificate that the webhook presents.
    #[serde(default)]
    pub certificate: Certificate,
    /// The certificate that the webhook presents after the first handshake, if it changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotate: Option<Certificate>,
    /// The DNS names in the certificate, in addition to the loopback addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// The behavior of connections to the webhook.
    #[serde(default)]
    pub connection: Connection,
    /// The HTTP versions that the webhook offers.
    #[serde(default)]
    pub http: HttpVersions,
    /// The part of the webhook's URL after `https://host:port`.
    #[serde(default = "root")]
    pub path: String,
    /// The requests that the webhook sends to the server before it responds, one for each call.
    ///
    /// Null sends nothing. `<name of the review>` is the name of the object under review.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub meanwhile: Vec<Option<Request>>,
    /// Whether the webhook is called only for the namespaces of the case.
    #[serde(default)]
    pub reach: Reach,
    /// Whether the configuration of the webhook is in a file of the server instead of the API.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_file: bool,
    /// All other fields of the webhook's entry in its configuration.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// A conversion webhook.
///
/// The server also calls the webhook between requests, because it caches objects in each served version. Therefore,
/// only the first call can be recorded.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Converter {
    /// The name that definitions use to refer to the converter.
    pub name: String,
    /// The behavior of the converter.
    #[serde(default)]
    pub behavior: Behavior,
    /// The behavior after the objects of `cluster` exist; by default, the behavior does not change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub later: Option<Behavior>,
    /// The certificate that the converter presents.
    #[serde(default)]
    pub certificate: Certificate,
    /// The behavior of connections to the converter.
    #[serde(default)]
    pub connection: Connection,
    /// Whether the first call of the converter is recorded. The first request of the case must cause this call.
    #[serde(default)]
    pub recorded: bool,
}

/// The kind of configuration that contains a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A `MutatingWebhookConfiguration`.
    Mutating,
    /// A `ValidatingWebhookConfiguration`.
    Validating,
}

/// The requests on a shared server for which a webhook is called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// Requests in the case's namespaces: the label of these namespaces is added to the `namespaceSelector`.
    #[default]
    Case,
    /// Requests that the webhook's fields select. The case must be serial unless only this case sends such requests.
    AsWritten,
}

/// One request to the server.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Request {
    /// The verb of the request.
    pub verb: Verb,
    /// A non-resource path, such as `/version`, instead of the fields that name a resource.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// The resource, such as `configmaps`, or `apps/v1/deployments` with its group and version.
    #[serde(default = "config_maps")]
    pub resource: String,
    /// The subresource; empty for the object itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub subresource: String,
    /// The namespace. The default is the first namespace of the case; an empty string means no namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name of the object. For a creation, it becomes `metadata.name` if the body does not have a name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The body: an object, a patch, or options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// A body that is not JSON, such as the YAML of an apply patch, instead of `body`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Additional headers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The format of a patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<PatchFormat>,
    /// Whether the request is a dry run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// For a watch, the number of the request (from 1) after whose answer the watch begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<usize>,
    /// For a watch, the behavior of the WebSocket client to use instead of plain HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub websocket: Option<WebSocket>,
    /// Additional query parameters.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub query: BTreeMap<String, String>,
    /// The user who sends the request, instead of the administrator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<User>,
    /// The client that impersonates `user`, instead of the administrator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Requestor>,
    /// The part of the response that is recorded instead of its parsed body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub show: Option<Show>,
    /// Whether the server handles several objects concurrently, so that the calls of the request have no order.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unordered: bool,
}

/// The behavior of a WebSocket client.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WebSocket {
    /// The headers that are added to the usual handshake or replace its headers. An empty value removes a header.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The frames that the client sends after the server has accepted the handshake.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sends: Vec<Frame>,
}

/// A WebSocket frame that a client sends.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Frame {
    /// A text frame with the given text.
    Text(String),
    /// A ping frame with the given payload.
    Ping(String),
    /// A close frame with the given code.
    Close(u16),
}

/// The part of a response that is recorded instead of its parsed body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Show {
    /// The body as text, and the headers about its encoding and caching.
    Text,
    /// Only these headers.
    Headers,
}

/// The verb of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// Sends a POST to a collection or a subresource.
    #[default]
    Create,
    /// Sends a GET.
    Get,
    /// Sends a PUT.
    Update,
    /// Sends a PATCH.
    Patch,
    /// Sends a DELETE for an object.
    Delete,
    /// Sends a DELETE for a collection.
    DeleteCollection,
    /// Sends a POST to a subresource that opens a connection.
    Connect,
    /// Sends a GET that watches a collection for one second.
    Watch,
}

/// The format of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PatchFormat {
    /// JSON Patch (RFC 6902).
    Json,
    /// JSON Merge Patch (RFC 7396).
    Merge,
    /// A strategic merge patch.
    Strategic,
    /// Server-side apply of a configuration.
    Apply,
}

/// A service account of the case's namespace that impersonates a user.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Requestor {
    /// The name of the service account.
    pub service_account: String,
    /// The Pod that the token is bound to; empty for an unbound token.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pod: String,
}

/// A user to impersonate.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct User {
    /// The user's name.
    pub name: String,
    /// The user's groups. If the administrator impersonates the user, the default is `system:masters`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// The user's UID.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Additional attributes of the user.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, String>,
}

impl Case {
    /// Parses a case. Its placeholders must already be expanded.
    ///
    /// # Errors
    /// Returns the syntax error with its line.
    pub fn parse(text: &str) -> Result<Self, serde_saphyr::Error> {
        serde_saphyr::from_str(text)
    }
}

fn only_configuration() -> String {
    "webhooks".to_owned()
}

fn root() -> String {
    "/".to_owned()
}

fn v1() -> String {
    "v1".to_owned()
}

fn config_maps() -> String {
    "configmaps".to_owned()
}
