//! Reports what `admit pull` read and wrote, and what it could not read.
//!
//! The types are the schema of `-o json`; see docs/guide/pull.md.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::diagnostic::several;
use crate::machine_readable::API_VERSION;

/// The kind of the report.
const KIND: &str = "PullReport";

/// The report on a pull.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    api_version: &'static str,
    kind: &'static str,
    /// The directory, as specified by the user.
    pub(super) directory: String,
    #[serde(flatten)]
    pub(super) origin: Origin,
    /// Whether everything could be read.
    complete: bool,
    /// The number of objects of each resource.
    pub(super) objects: BTreeMap<String, usize>,
    /// The changes to the files in the directory.
    pub(super) files: Changes,
    /// What could not be read.
    pub(super) unread: Vec<Unread>,
}

/// The cluster that was read, and how much of it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Origin {
    /// The context of the kubeconfig; omitted if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) context: String,
    /// The `gitVersion` of the server.
    pub(super) server_version: String,
    /// The namespaces of `--namespace`; omitted if all were read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) namespaces: Vec<String>,
}

/// The number of files by what happened to them.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Changes {
    pub(super) added: usize,
    pub(super) changed: usize,
    pub(super) removed: usize,
    pub(super) unchanged: usize,
}

/// A resource or an object that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Unread {
    /// The resource with its group, such as `roles.rbac.authorization.k8s.io`.
    pub(super) resource: String,
    /// The namespace; omitted if all namespaces were requested, or the resource is cluster-scoped.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) namespace: String,
    /// The name of the object; omitted if a list was requested.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) name: String,
    /// The HTTP status code; 0 without a response.
    pub(super) code: u16,
    /// The reason, such as `Forbidden`.
    pub(super) reason: String,
    /// The message of the server, or why admit did not read the object.
    pub(super) message: String,
    /// The RBAC rule that permits the request; omitted if RBAC did not reject it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) missing_rule: Option<Rule>,
    /// What is unknown about admission.
    pub(super) uncertain: String,
}

/// A rule of a `Role` or `ClusterRole`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Rule {
    pub(super) api_groups: Vec<String>,
    pub(super) resources: Vec<String>,
    pub(super) verbs: Vec<String>,
}

impl Report {
    pub(super) fn new(
        directory: String,
        origin: Origin,
        objects: BTreeMap<String, usize>,
        files: Changes,
        unread: Vec<Unread>,
    ) -> Self {
        let complete = unread.is_empty();
        Self { api_version: API_VERSION, kind: KIND, directory, origin, complete, objects, files, unread }
    }

    /// Formats the report as text.
    pub(super) fn text(&self) -> String {
        let Changes { added, changed, removed, unchanged } = self.files;
        let Origin { context, server_version, namespaces } = &self.origin;
        let cluster = if context.is_empty() { "the cluster" } else { context };
        let objects = several(self.objects.values().sum::<usize>(), "object");
        let mut text = format!(
            "pulled {objects} from {cluster} ({server_version}) into {}: {added} added, {changed} changed, {removed} \
             removed, {unchanged} unchanged\n",
            self.directory
        );
        if !namespaces.is_empty() {
            let list = namespaces.join(", ");
            let _ = writeln!(
                text,
                "namespaced objects are limited to {list}, except for Services and params that webhooks and bindings name"
            );
        }
        if self.unread.is_empty() {
            return text;
        }
        let _ = writeln!(
            text,
            "\nthe directory is incomplete: {} could not be read",
            several(self.unread.len(), "item")
        );
        text.push_str(&unread_items(&self.unread));
        text
    }
}

/// Formats what could not be read, what is uncertain therefore, and the missing rules.
pub(super) fn unread_items(items: &[Unread]) -> String {
    let mut text = String::new();
    for unread in items {
        let _ = write!(text, "\n  {}\n    uncertain: {}\n", unread.title(), unread.uncertain);
        if let Some(rule) = &unread.missing_rule {
            let _ = writeln!(text, "    missing rule: {}", rule.text());
        }
    }
    text
}

impl Unread {
    /// Returns the name of the item, with the reason why it could not be read.
    fn title(&self) -> String {
        let Self { resource, namespace, name, code, reason, message, .. } = self;
        let name = if name.is_empty() { String::new() } else { format!(" {name}") };
        let namespace =
            if namespace.is_empty() { String::new() } else { format!(" in namespace {namespace}") };
        match (code, &self.missing_rule) {
            (_, Some(_)) => format!("{resource}{name}{namespace}: {code} {reason}"),
            (0, None) => format!("{resource}{name}{namespace}: {message}"),
            (_, None) => format!("{resource}{name}{namespace}: {code} {reason}: {message}"),
        }
    }
}

impl Rule {
    fn text(&self) -> String {
        let list = |items: &[String]| {
            let items: Vec<String> = items.iter().map(|item| format!("{item:?}")).collect();
            items.join(", ")
        };
        let Self { api_groups, resources, verbs } = self;
        format!(
            "{{apiGroups: [{}], resources: [{}], verbs: [{}]}}",
            list(api_groups),
            list(resources),
            list(verbs)
        )
    }
}
