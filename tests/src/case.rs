//! A case, as a person writes it: `case.yaml`.

use std::collections::BTreeMap;

use fake_webhooks::{Behavior, Certificate, Connection, HttpVersions};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_saphyr::Spanned;

/// A situation: what is there, which webhooks, what is asked of the server.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Case {
    /// The version of this format: 1.
    pub version: u32,
    /// The statements of `tests/behaviors.md` that this case proves.
    #[serde(default)]
    pub proves: Vec<String>,
    /// Webhooks may be called for what others do: the case runs when no other does.
    #[serde(default)]
    pub serial: bool,
    /// Webhooks of which any may answer first, where the server's answer depends on that. The recording has one
    /// alternative for each.
    #[serde(default)]
    pub race: Vec<String>,
    /// The in-tree admission plugins of the server, if not the default ones. Cases with the same ones share a server.
    #[serde(default)]
    pub plugins: Plugins,
    /// The conversion webhooks of the definitions.
    #[serde(default)]
    pub converters: Vec<Converter>,
    /// Objects that are there before the webhooks are. In the definitions of custom resources the `clientConfig` of a
    /// conversion that says `converter: NAME` is that of this one.
    #[serde(default)]
    pub cluster: Vec<Value>,
    /// The webhooks, in the order of their configurations.
    #[serde(default)]
    pub webhooks: Vec<Webhook>,
    /// The configurations, as `configuration` of their webhooks names them, that stand in the server's storage as a server
    /// before it may have left them: they are neither validated nor admitted.
    /// A field that is null is not there.
    #[serde(default)]
    pub stored: Vec<String>,
    /// The version of `admissionregistration.k8s.io` in which they stand there.
    #[serde(default = "v1")]
    pub stored_version: String,
    /// Whether `metadata.managedFields` are compared, too.
    #[serde(default)]
    pub managed_fields: bool,
    /// What is asked, one after another.
    pub requests: Vec<Spanned<Request>>,
}

/// What a server is told of its in-tree admission plugins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Plugins {
    /// `--enable-admission-plugins`.
    #[serde(default)]
    pub enable: Vec<String>,
    /// `--disable-admission-plugins`.
    #[serde(default)]
    pub disable: Vec<String>,
    /// The text of the file of `--admission-control-config-file`; empty without that flag. It is the same for every run, so
    /// that it cannot name what `<id>` stands for.
    #[serde(default)]
    pub configuration: String,
    /// The text of a kubeconfig with credentials for webhooks, whose path `<credentials>` stands for in `configuration`.
    #[serde(default)]
    pub credentials: String,
    /// Texts of further files by their names in a folder whose path `<folder>` stands for in them and in `configuration`. A
    /// name that ends with `/` is that of a folder.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Webhooks that run as long as the server; one whose name begins with `certificate` requires that of a client. `<port of NAME>` stands in all these texts for the port of one, and
    /// `<caBundle>` for what signed their certificates; `<client certificate>` and `<client key>` are those of a client `jane`.
    /// Cases with such webhooks are serial.
    #[serde(default)]
    pub webhooks: Vec<String>,
    /// The text of the file of `--audit-policy-file`; empty without that flag. With it all audit events of each request are
    /// recorded.
    #[serde(default)]
    pub audit_policy: String,
}

/// One webhook of a case.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// Its name; one without a dot gets the case's own domain.
    pub name: String,
    /// Which kind of configuration it stands in.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// In which of the case's configurations of this kind.
    #[serde(default = "only_configuration")]
    pub configuration: String,
    /// What it does.
    #[serde(default)]
    pub behavior: Behavior,
    /// Which certificate it shows.
    #[serde(default)]
    pub certificate: Certificate,
    /// Which certificate it shows instead after the first handshake, if another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotate: Option<Certificate>,
    /// DNS names of which its certificate speaks beside the loopback addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// What a connection meets.
    #[serde(default)]
    pub connection: Connection,
    /// Which versions of HTTP it offers.
    #[serde(default)]
    pub http: HttpVersions,
    /// What follows `https://host:port` in its URL.
    #[serde(default = "root")]
    pub path: String,
    /// What it asks of the server before it answers: the first of these before its first answer, and so on; null where
    /// it asks for nothing. The name `<name of the review>` is that of the object that it is asked about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub meanwhile: Vec<Option<Request>>,
    /// Whether it is called for the namespaces of the case only.
    #[serde(default)]
    pub reach: Reach,
    /// Whether its configuration stands in a file of the server's, so that none is made.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_file: bool,
    /// Every other field of its entry in the configuration.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// A conversion webhook, which is called also between requests: a server of several versions keeps the objects in memory in
/// each of them. Its calls are not recorded, but for the first.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Converter {
    /// How definitions refer to it.
    pub name: String,
    /// What it does.
    #[serde(default)]
    pub behavior: Behavior,
    /// What it does instead once the objects of `cluster` are there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub later: Option<Behavior>,
    /// Which certificate it shows.
    #[serde(default)]
    pub certificate: Certificate,
    /// What a connection meets.
    #[serde(default)]
    pub connection: Connection,
    /// Whether its first call stands in the recording: the first request of the case must be what makes it.
    #[serde(default)]
    pub recorded: bool,
}

/// Which kind of configuration a webhook stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// `mutating`
    Mutating,
    /// `validating`
    Validating,
}

/// Which requests of a shared server a webhook may see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// Its `namespaceSelector` also asks for the label of the case's namespaces.
    #[default]
    Case,
    /// As its fields say. Unless they say something that is the case's own, the case has to be serial.
    AsWritten,
}

/// One request to the server.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Request {
    /// What is asked.
    pub verb: Verb,
    /// A path that is no resource, such as `/version`, in place of all that names one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// `configmaps`, or with group and version: `apps/v1/deployments`.
    #[serde(default = "config_maps")]
    pub resource: String,
    /// A subresource; empty for the object itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub subresource: String,
    /// The namespace: the case's own if there is none, and none at all if it is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The object; in a creation the `metadata.name` that the body lacks.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The object, the patch or the options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// A body that is no JSON, such as the YAML of an apply patch, in place of `body`.
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
    /// Of a watch: the number of the request, from 1, after whose answer it begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<usize>,
    /// Of a watch: that it goes over a WebSocket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub websocket: Option<WebSocket>,
    /// Further parameters of the query.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub query: BTreeMap<String, String>,
    /// Whose request it is, instead of the administrator's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<User>,
    /// Who impersonates that user, instead of the administrator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Requestor>,
    /// The server works on several objects at the same time: its calls have no order.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unordered: bool,
}

/// What a client of a WebSocket does.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WebSocket {
    /// Headers beside those of a usual handshake, or in their place; an empty one is left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// What it sends once the server has taken the handshake.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sends: Vec<Frame>,
}

/// A frame of a WebSocket, as a client sends it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Frame {
    /// A text.
    Text(String),
    /// A ping with this payload.
    Ping(String),
    /// The end, with this code.
    Close(u16),
}

/// What is asked of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// POST to a collection, or to a subresource.
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
    /// POST to a subresource that is a connection.
    Connect,
    /// GET of the changes of a collection, for a second.
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
    /// Kubernetes' own.
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
    /// The pod that its token is for; any if it is empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pod: String,
}

/// Whom the administrator impersonates.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct User {
    /// The name.
    pub name: String,
    /// The groups; `system:masters` if there are none and the administrator impersonates, so that the request is
    /// authorized.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// The uid.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Further facts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, String>,
}

impl Case {
    /// Reads a case whose names have been expanded.
    ///
    /// # Errors
    /// What is wrong, with its line.
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
