//! Lists the faults that a webhook can have, how to reproduce each fault, and how kube-apiserver responds.
//!
//! The catalog has one file per family. Tests compare its statements about kube-apiserver with recordings of a real
//! server.

use std::fmt;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::admission_registration::WebhookType;
use crate::suggestion;

/// A fault that a webhook can have. The catalog files have the same fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fault {
    /// The ID, such as `E07-missing`: a letter for the family, a number, and possibly a variant.
    pub id: String,
    /// The name, such as `uid-missing`.
    pub name: String,
    /// The family, which the catalog file determines.
    #[serde(skip_deserializing)]
    pub family: Family,
    /// A one-line description.
    pub help: String,
    /// How kube-apiserver treats the fault.
    pub class: Class,
    /// The fields of a fakes file entry with this fault, other than the name and the type.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub fake: Map<String, Value>,
    /// The type that the webhook must have.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<WebhookType>,
    /// The objects that must exist in addition to the webhook.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster: Vec<Value>,
    /// The request that triggers the fault, in the format of recorded cases; the default creates a ConfigMap.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub request: Map<String, Value>,
    /// The number of times that the request is sent.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub requests: u8,
    /// Additional requests for the same object, in the same format.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<Map<String, Value>>,
    /// Additional required webhooks, as fakes file entries. They are called after the faulty webhook.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<Map<String, Value>>,
    /// How the configuration must refer to the webhook.
    #[serde(default, skip_serializing_if = "Reference::is_either")]
    pub reference: Reference,
}

/// How kube-apiserver treats a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Class {
    /// `policy`: the `failurePolicy` applies: `Fail` rejects the request, and `Ignore` admits it.
    #[value(help = "The failurePolicy applies: Fail rejects the request, Ignore admits it")]
    Policy,
    /// `immune`: the request fails regardless of the `failurePolicy`, which conversion webhooks do not have.
    #[value(help = "The request fails whatever the failurePolicy")]
    Immune,
    /// `accepted`: the response looks broken, but kube-apiserver accepts it.
    #[value(help = "The response looks broken but is accepted")]
    Accepted,
    /// `refused`: the API server rejects the configuration, so the webhook is never called.
    #[value(help = "The API server rejects the configuration, so the webhook is never called")]
    Refused,
}

/// The family of a fault.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Family {
    /// `transport`: connections and TLS (T).
    #[value(help = "Connections and TLS (T)")]
    #[default]
    Transport,
    /// `http`: the HTTP response (H).
    #[value(help = "The HTTP response (H)")]
    Http,
    /// `envelope`: the AdmissionReview in the response (E).
    #[value(help = "The AdmissionReview in the response (E)")]
    Envelope,
    /// `denials`: denials (E20 and higher).
    #[value(help = "Denials (E20 and higher)")]
    Denials,
    /// `patch`: patches (P).
    #[value(help = "Patches (P)")]
    Patch,
    /// `configuration`: the webhook configuration (C).
    #[value(help = "The webhook configuration (C)")]
    Configuration,
    /// `misbehaving`: valid responses with harmful consequences (M).
    #[value(help = "Valid responses with harmful consequences (M)")]
    Misbehaving,
    /// `conversion`: conversion webhooks of custom resources (X).
    #[value(help = "Conversion webhooks of custom resources (X)")]
    Conversion,
}

/// How a configuration must refer to a webhook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reference {
    /// The configuration can refer to the webhook by URL or by Service.
    #[default]
    Either,
    /// `service`: the fault requires a Service.
    Service,
}

const FILES: [(Family, &str); 8] = [
    (Family::Transport, include_str!("transport.yaml")),
    (Family::Http, include_str!("http.yaml")),
    (Family::Envelope, include_str!("envelope.yaml")),
    (Family::Denials, include_str!("denials.yaml")),
    (Family::Patch, include_str!("patch.yaml")),
    (Family::Configuration, include_str!("configuration.yaml")),
    (Family::Misbehaving, include_str!("misbehaving.yaml")),
    (Family::Conversion, include_str!("conversion.yaml")),
];

static CATALOG: LazyLock<Vec<Fault>> = LazyLock::new(|| {
    let mut all = Vec::new();
    for (family, text) in FILES {
        let faults: Vec<Fault> =
            serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("catalog/{family}.yaml: {error}"));
        all.extend(faults.into_iter().map(|fault| Fault { family, ..fault }));
    }
    all
});

/// Returns every fault, grouped by family.
pub fn catalog() -> &'static [Fault] {
    &CATALOG
}

/// The error for a fault that is unknown or that a behavior cannot have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultError {
    /// The catalog does not contain a fault with this ID or name.
    #[error(
        "unknown fault `{0}`: {suggestions}`admit fakes list` lists all faults",
        suggestions = suggestion::question(&similar_faults(.0))
    )]
    Unknown(String),
    /// The fault does not concern the response, so a behavior cannot have it.
    #[error(
        "invalid fault `{0}` in a behavior: it is a fault of {1}; use `fault: {0}` in the entry of the webhook"
    )]
    NoBehavior(String, &'static str),
}

impl Fault {
    /// Returns the fault with this ID or name, or `None` if the catalog does not contain it.
    pub fn find(text: &str) -> Option<&'static Self> {
        catalog().iter().find(|fault| fault.id.eq_ignore_ascii_case(text) || fault.name == text)
    }

    /// Panics, because the catalog is part of the program and its entries must be valid.
    pub(crate) fn invalid(&self, error: &serde_json::Error) -> ! {
        panic!("catalog/{}.yaml: {}: {error}", self.family, self.id)
    }
}

/// Returns the faults whose ID begins with `text` or, if there are none, whose name is similar to `text`.
fn similar_faults(text: &str) -> Vec<String> {
    let begins = |fault: &&Fault| {
        let begin = fault.id.get(..text.len());
        text.len() > 1 && begin.is_some_and(|begin| begin.eq_ignore_ascii_case(text))
    };
    let mut found: Vec<&Fault> = catalog().iter().filter(begins).collect();
    if found.is_empty() {
        let names = suggestion::similar(text, catalog().iter().map(|fault| fault.name.as_str()));
        found = names.into_iter().filter_map(Fault::find).collect();
    }
    found.into_iter().take(4).map(|fault| format!("`{}` ({})", fault.id, fault.name)).collect()
}

impl Reference {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    fn is_either(&self) -> bool {
        *self == Self::Either
    }
}

impl Class {
    /// All classes, in declaration order.
    pub const ALL: [Self; 4] = [Self::Policy, Self::Immune, Self::Accepted, Self::Refused];

    /// Returns the class's name in files, such as `policy`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Immune => "immune",
            Self::Accepted => "accepted",
            Self::Refused => "refused",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Family {
    /// All families, in declaration order.
    pub const ALL: [Self; 8] = [
        Self::Transport,
        Self::Http,
        Self::Envelope,
        Self::Denials,
        Self::Patch,
        Self::Configuration,
        Self::Misbehaving,
        Self::Conversion,
    ];

    /// Returns the family's name in files, such as `transport`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Transport => "transport",
            Self::Http => "http",
            Self::Envelope => "envelope",
            Self::Denials => "denials",
            Self::Patch => "patch",
            Self::Configuration => "configuration",
            Self::Misbehaving => "misbehaving",
            Self::Conversion => "conversion",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

fn one() -> u8 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_one(count: &u8) -> bool {
    *count == 1
}
