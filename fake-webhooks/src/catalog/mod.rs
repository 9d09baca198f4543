//! Every fault that a webhook can have: what it is, how to reproduce it, and how kube-apiserver responds.
//!
//! The catalog is data, one file a family. What its entries say of a kube-apiserver is held against recordings of a
//! real one.

use std::fmt;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::fakes_file::Settings;
use crate::{Behavior, Kind};

/// One fault.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fault {
    /// Its short name, such as `E07-missing`: a letter for the family, a number and, where there are several, a variant.
    pub id: String,
    /// Its long name, such as `uid-missing`.
    pub name: String,
    /// What it belongs to; the file that it stands in says so.
    #[serde(skip_deserializing)]
    pub family: Family,
    /// What is wrong, in one line.
    pub help: String,
    /// What a kube-apiserver makes of it.
    pub class: Class,
    /// What an entry of a file of fakes says to have it, beside its name and type.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub fake: Map<String, Value>,
    /// Of which type the webhook has to be.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// Objects that it needs beside the webhook.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster: Vec<Value>,
    /// What shows it, if not the creation of a ConfigMap; in the words of a recorded case, such as `{verb: delete}`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub request: Map<String, Value>,
    /// How many such requests show it, one after another.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub requests: u8,
    /// Requests for the same object that show it after that, in the same words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<Map<String, Value>>,
    /// Webhooks beside it without which it does not show, each called after it; entries of a file of fakes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Map<String, Value>>,
    /// How the webhook has to be named in its configuration.
    #[serde(default, skip_serializing_if = "Reference::is_either")]
    pub reference: Reference,
}

/// What a kube-apiserver makes of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Class {
    /// `policy`: the `failurePolicy` decides. `Fail` refuses the request, `Ignore` admits it.
    #[value(help = "The failurePolicy decides: Fail refuses the request, Ignore admits it")]
    Policy,
    /// `immune`: the request fails whatever the `failurePolicy` says; conversion webhooks have none.
    #[value(help = "The request fails whatever the failurePolicy says")]
    Immune,
    /// `accepted`: it looks broken, and is taken all the same.
    #[value(help = "It looks broken, and is taken all the same")]
    Accepted,
    /// `refused`: the configuration is not accepted, so that no webhook is ever called.
    #[value(help = "The configuration is not accepted, so that no webhook is ever called")]
    Refused,
}

/// What kind of fault it is.
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
    /// `http`: what stands around the review (H).
    #[value(help = "What stands around the review (H)")]
    Http,
    /// `envelope`: the review in the answer (E).
    #[value(help = "The review in the answer (E)")]
    Envelope,
    /// `denials`: how a webhook says no (E20 and further).
    #[value(help = "How a webhook says no (E20 and further)")]
    Denials,
    /// `patch`: what a webhook changes (P).
    #[value(help = "What a webhook changes (P)")]
    Patch,
    /// `configuration`: what the configuration says of the webhook (C).
    #[value(help = "What the configuration says of the webhook (C)")]
    Configuration,
    /// `misbehaving`: valid answers with bad consequences (M).
    #[value(help = "Valid answers with bad consequences (M)")]
    Misbehaving,
    /// `conversion`: conversion webhooks of custom resources (X).
    #[value(help = "Conversion webhooks of custom resources (X)")]
    Conversion,
}

/// How a webhook is named in its configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reference {
    /// By URL or by service.
    #[default]
    Either,
    /// `service`: the fault shows only behind a Service.
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

/// Every fault, family by family.
pub fn catalog() -> &'static [Fault] {
    &CATALOG
}

/// A text that names no fault, or one that is not meant here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultError {
    /// There is none.
    #[error("`{0}` is not a fault of the catalog: `admit fakes list` prints them")]
    Unknown(String),
    /// It is none of what is answered.
    #[error(
        "`{0}` is not a fault of an answer but of {1}: it stands as `fault: {0}` in the entry of a webhook, not in a behavior"
    )]
    NoBehavior(String, &'static str),
}

impl Fault {
    /// The fault with this id or name.
    pub fn find(text: &str) -> Option<&'static Self> {
        catalog().iter().find(|fault| fault.id.eq_ignore_ascii_case(text) || fault.name == text)
    }

    /// What it says of the entry of a webhook.
    pub(crate) fn settings(&self) -> Settings {
        let settings: Settings = serde_json::from_value(Value::Object(self.fake.clone()))
            .unwrap_or_else(|error| panic!("catalog/{}.yaml: {}: {error}", self.family, self.id));
        // A conversion webhook is named by a definition: no request goes to it for admission.
        if self.family == Family::Conversion { settings.without_rules() } else { settings }
    }

    /// What a webhook does that has it, where the behavior is all of it.
    ///
    /// # Errors
    /// There is no such fault, or it is one of the connection, the certificate or the configuration.
    pub(crate) fn behavior(text: &str) -> Result<Behavior, FaultError> {
        let fault = Self::find(text).ok_or_else(|| FaultError::Unknown(text.to_owned()))?;
        let elsewhere = |what| FaultError::NoBehavior(fault.id.clone(), what);
        if fault.fake.contains_key("connection") {
            Err(elsewhere("the connection"))
        } else if fault.fake.contains_key("certificate") || fault.fake.contains_key("rotate") {
            Err(elsewhere("the certificate"))
        } else {
            fault.settings().behavior.ok_or_else(|| elsewhere("the configuration"))
        }
    }
}

impl Reference {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    fn is_either(&self) -> bool {
        *self == Self::Either
    }
}

impl Class {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Policy, Self::Immune, Self::Accepted, Self::Refused];

    /// The name in files, such as `policy`.
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
    /// All of them.
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

    /// The name in files, such as `transport`.
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
