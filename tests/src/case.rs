//! The file format of a case: `case.yaml`.

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
    /// Webhooks whose order of response affects the answer of the server. The recording has one alternative for each
    /// webhook that may be first.
    #[serde(default)]
    pub race: Vec<String>,
    /// The in-tree admission plugins of the server, if not the defaults. Cases with the same plugins share a server.
    #[serde(default)]
    pub plugins: Plugins,
    /// The conversion webhooks of the custom resource definitions.
    #[serde(default)]
    pub converters: Vec<Converter>,
    /// Objects that exist before the webhooks are registered. In a custom resource definition, a conversion's
    /// `clientConfig` with `converter: NAME` is replaced by that of the converter.
    #[serde(default)]
    pub cluster: Vec<Value>,
    /// The webhooks, in the order of their configurations.
    #[serde(default)]
    pub webhooks: Vec<Webhook>,
    /// The configurations, by the `configuration` of their webhooks, that are written directly to storage, as an
    /// earlier server version may have left them: they are neither validated nor admitted. A field that is null is
    /// removed.
    #[serde(default)]
    pub stored: Vec<String>,
    /// The version of `admissionregistration.k8s.io` in which these are stored.
    #[serde(default = "v1")]
    pub stored_version: String,
    /// Whether `metadata.managedFields` is compared, too.
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
    /// The content of the `--admission-control-config-file`; empty omits the flag. It is the same for every run, so
    /// it cannot use `<id>`.
    #[serde(default)]
    pub configuration: String,
    /// The content of a kubeconfig with credentials for webhooks. `<credentials>` in `configuration` is replaced by
    /// its path.
    #[serde(default)]
    pub credentials: String,
    /// The contents of further files, by name, in a directory. `<folder>` in them and in `configuration` is replaced
    /// by the path of the directory. A name that ends with `/` is a directory.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Webhooks that run as long as the server. One whose name begins with `certificate` requires a client
    /// certificate. In all these texts, `<port of NAME>` is replaced by the port of a webhook, `<caBundle>` by the CA
    /// of their certificates, and `<client certificate>` and `<client key>` by those of a client `jane`. Cases with
    /// such webhooks are serial.
    #[serde(default)]
    pub webhooks: Vec<String>,
    /// The content of the `--audit-policy-file`; empty omits the flag. With it, all audit events of each request are
    /// recorded.
    #[serde(default)]
    pub audit_policy: String,
}

/// One webhook of a case.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// Its name. A name without a dot gets the domain of the case.
    pub name: String,
    /// The kind of configuration that contains the webhook.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// The case's configuration of this kind that contains the webhook.
    #[serde(default = "only_configuration")]
    pub configuration: String,
    /// The behavior of the webhook.
    #[serde(default)]
    pub behavior: Behavior,
    /// The certificate that the webhook presents.
    #[serde(default)]
    pub certificate: Certificate,
    /// The certificate that it presents after the first handshake, if another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotate: Option<Certificate>,
    /// DNS names in its certificate, in addition to the loopback addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// What happens to a connection.
    #[serde(default)]
    pub connection: Connection,
    /// The versions of HTTP that it offers.
    #[serde(default)]
    pub http: HttpVersions,
    /// The part of its URL after `https://host:port`.
    #[serde(default = "root")]
    pub path: String,
    /// The requests that the webhook sends to the server before it responds: the first before its first response, and
    /// so on; null sends nothing. `<name of the review>` is the name of the object under review.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub meanwhile: Vec<Option<Request>>,
    /// Whether it is called only for the namespaces of the case.
    #[serde(default)]
    pub reach: Reach,
    /// Whether its configuration is in a file of the server, so that none is created.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_file: bool,
    /// All other fields of its entry in the configuration.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// A conversion webhook. It is also called between requests, because the server caches objects in each served
/// version. Only its first call can be recorded.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Converter {
    /// The name by which definitions refer to it.
    pub name: String,
    /// The behavior of the converter.
    #[serde(default)]
    pub behavior: Behavior,
    /// The behavior once the objects of `cluster` exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub later: Option<Behavior>,
    /// The certificate that the converter presents.
    #[serde(default)]
    pub certificate: Certificate,
    /// What happens to a connection.
    #[serde(default)]
    pub connection: Connection,
    /// Whether its first call is recorded: the first request of the case must cause it.
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

/// The requests of a shared server that a webhook may receive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// Its `namespaceSelector` also requires the label of the case's namespaces.
    #[default]
    Case,
    /// As its fields say. Unless they select something that only this case has, the case must be serial.
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
    /// `configmaps`, or with group and version: `apps/v1/deployments`.
    #[serde(default = "config_maps")]
    pub resource: String,
    /// A subresource; empty for the object itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub subresource: String,
    /// The namespace. By default that of the case; empty for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name of the object. In a creation it becomes `metadata.name` if the body has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The object, the patch, or the options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// A body that is not JSON, such as the YAML of an apply patch, instead of `body`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Further headers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The format of a patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<PatchFormat>,
    /// Whether it is a dry run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// For a watch: the number of the request, from 1, after whose answer it begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<usize>,
    /// For a watch: use a WebSocket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub websocket: Option<WebSocket>,
    /// Further query parameters.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub query: BTreeMap<String, String>,
    /// The user of the request, instead of the administrator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<User>,
    /// The client that impersonates that user, instead of the administrator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Requestor>,
    /// Whether the server handles several objects at the same time, so that its calls have no order.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unordered: bool,
}

/// The behavior of a WebSocket client.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WebSocket {
    /// Headers that are added to those of the usual handshake or replace them; an empty value removes a header.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The frames that it sends once the server has accepted the handshake.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sends: Vec<Frame>,
}

/// A WebSocket frame that a client sends.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Frame {
    /// A text frame.
    Text(String),
    /// A ping frame with this payload.
    Ping(String),
    /// A close frame with this code.
    Close(u16),
}

/// The verb of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// POST to a collection or a subresource.
    #[default]
    Create,
    /// GET.
    Get,
    /// PUT.
    Update,
    /// PATCH.
    Patch,
    /// DELETE.
    Delete,
    /// DELETE of a collection.
    DeleteCollection,
    /// POST to a subresource that opens a connection.
    Connect,
    /// GET that watches a collection for one second.
    Watch,
}

/// The format of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PatchFormat {
    /// RFC 6902.
    Json,
    /// RFC 7396.
    Merge,
    /// A strategic merge patch.
    Strategic,
    /// Server-side apply.
    Apply,
}

/// A service account of the case's namespace that impersonates a user.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Requestor {
    /// Its name.
    pub service_account: String,
    /// The pod that its token is bound to; empty for any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pod: String,
}

/// The user that the administrator impersonates.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct User {
    /// The name.
    pub name: String,
    /// The groups. Defaults to `system:masters` if the administrator impersonates, so that the request is authorized.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// The uid.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Further attributes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, String>,
}

impl Case {
    /// Parses a case whose names have been expanded.
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
