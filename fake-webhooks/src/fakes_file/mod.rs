//! Parses fakes files.

mod error;
mod fault_fields;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};

use certs::Name;
use serde::Deserialize;
use serde_json::{Map, Value};
use serde_saphyr::{Location, Spanned};

pub use self::error::{FileError, needed_parameters};
use self::fault_fields::FaultFields;
use crate::admission_registration::{
    FailurePolicy, MatchCondition, MatchPolicy, Operation, ReinvocationPolicy, Rule, Scope, Selector,
    SideEffects, WebhookFields, WebhookType,
};
use crate::catalog::{Fault, FaultError};
use crate::{Behavior, Certificate, Connection, HttpVersions, RemoteAccess, Transport};

/// A fakes file: webhooks for one mutating and one validating configuration, with their behaviors.
#[derive(Clone, Debug, PartialEq)]
pub struct FakesFile {
    /// The name of the configurations.
    pub name: String,
    /// The address to listen on. Port 0 uses free ports; additional listeners use the ports that follow.
    pub listen: SocketAddr,
    /// The host in URLs and certificates; the default is the address of `listen`.
    pub host: Option<Name>,
    /// Whether `listen` may be an address that other machines can reach.
    pub remote_access: RemoteAccess,
    /// The webhooks in file order.
    pub webhooks: Vec<FakeEntry>,
}

/// A webhook in a fakes file.
#[derive(Clone, Debug, PartialEq)]
pub struct FakeEntry {
    /// The unique name of the fake: at least three labels, separated by dots.
    pub name: String,
    /// The name of the webhook in the configuration; the default is `name`.
    pub webhook_name: String,
    /// Whether the webhook is mutating or validating.
    pub kind: WebhookType,
    /// The path of the webhook's URL.
    pub path: String,
    /// The behavior of the fake.
    pub behavior: Behavior,
    /// The transport of the fake.
    pub transport: Transport,
    /// A JSON merge patch for the `clientConfig` that points to the fake.
    pub client_config: Map<String, Value>,
    /// The other fields of the entry in the configuration.
    pub fields: WebhookFields,
}

/// A fakes file before defaults are set; some defaults are set in [`FakesFile::parse`].
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FileDocument {
    version: Spanned<Value>,
    #[serde(default = "configuration_name")]
    name: String,
    #[serde(default = "loopback")]
    listen: SocketAddr,
    host: Option<Spanned<String>>,
    #[serde(default)]
    allow_remote: bool,
    webhooks: Vec<EntryDocument>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct EntryDocument {
    name: Spanned<String>,
    webhook_name: Option<Spanned<String>>,
    #[serde(rename = "type")]
    kind: WebhookType,
    fault: Option<Spanned<String>>,
    behavior: Option<Behavior>,
    certificate: Option<Certificate>,
    rotate: Option<Certificate>,
    connection: Option<Connection>,
    http: Option<HttpVersions>,
    path: Option<Spanned<String>>,
    client_config: Option<Map<String, Value>>,
    rules: Option<Vec<Rule>>,
    namespace_selector: Option<Selector>,
    object_selector: Option<Selector>,
    match_conditions: Option<Vec<MatchCondition>>,
    failure_policy: Option<FailurePolicy>,
    match_policy: Option<MatchPolicy>,
    side_effects: Option<SideEffects>,
    timeout_seconds: Option<Spanned<u8>>,
    admission_review_versions: Option<Vec<String>>,
    reinvocation_policy: Option<Spanned<ReinvocationPolicy>>,
}

const VERSION: u8 = 1;
/// The default domain, which is appended to short names.
const DOMAIN: &str = "fakes.local";

impl FakesFile {
    /// Parses a fakes file. `file` is the name of the file in error messages.
    ///
    /// # Errors
    /// Returns the first error with its line and column.
    pub fn parse(text: &str, file: &str) -> Result<Self, FileError> {
        if text.trim().is_empty() {
            let message = "it is empty: expected `version: 1` and `webhooks`".to_owned();
            return Err(FileError::at(file, text, Location::UNKNOWN, message));
        }
        let written: FileDocument =
            serde_saphyr::from_str(text).map_err(|error| FileError::unreadable(file, text, &error))?;
        let wrong = |place: Location, message: String| FileError::at(file, text, place, message);
        if written.version.value != VERSION {
            let message = format!("unsupported version {}: must be {VERSION}", written.version.value);
            return Err(wrong(written.version.referenced, message));
        }
        let host = match written.host {
            None => None,
            Some(host) => Some(
                host.value
                    .parse()
                    .map_err(|error: certs::InvalidName| wrong(host.referenced, error.to_string()))?,
            ),
        };
        let mut names = BTreeSet::new();
        let mut paths = BTreeSet::new();
        let mut webhook_names = BTreeSet::new();
        let mut webhooks = Vec::new();
        for entry in written.webhooks {
            let place = entry.name.referenced;
            let entry = entry.into_entry().map_err(|(place, message)| wrong(place, message))?;
            if !names.insert(entry.name.clone()) {
                return Err(wrong(place, format!("duplicate webhook name `{}`", entry.name)));
            }
            if !paths.insert(entry.path.clone()) {
                return Err(wrong(place, format!("duplicate path `{}`", entry.path)));
            }
            if !webhook_names.insert((entry.kind, entry.webhook_name.clone())) {
                let name = &entry.webhook_name;
                return Err(wrong(place, format!("duplicate webhookName `{name}` in one type")));
            }
            webhooks.push(entry);
        }
        let remote_access = if written.allow_remote { RemoteAccess::Allowed } else { RemoteAccess::Refused };
        Ok(Self { name: written.name, listen: written.listen, host, remote_access, webhooks })
    }
}

/// Returns a fakes file without webhooks, which uses a free port of 127.0.0.1.
impl Default for FakesFile {
    fn default() -> Self {
        Self {
            name: configuration_name(),
            listen: loopback(),
            host: None,
            remote_access: RemoteAccess::default(),
            webhooks: Vec::new(),
        }
    }
}

impl FakeEntry {
    /// Parses a single webhook. `shown` identifies the webhook in error messages.
    ///
    /// # Errors
    /// Returns the first error with its line and column.
    pub fn parse(text: &str, shown: &str) -> Result<Self, FileError> {
        let written: EntryDocument =
            serde_saphyr::from_str(text).map_err(|error| FileError::unreadable(shown, text, &error))?;
        written.into_entry().map_err(|(place, message)| FileError::at(shown, text, place, message))
    }
}

impl Behavior {
    /// Parses the `behavior` of a webhook. `shown` identifies the text in error messages.
    ///
    /// # Errors
    /// Returns the first error with its line and column.
    pub fn parse(text: &str, shown: &str) -> Result<Self, FileError> {
        if text.trim().is_empty() {
            let message = "it is empty: expected a behavior, such as `allow`".to_owned();
            return Err(FileError::at(shown, text, Location::UNKNOWN, message));
        }
        serde_saphyr::from_str(text).map_err(|error| FileError::unreadable(shown, text, &error))
    }
}

/// An error in an entry, with its line and column.
type EntryError = (Location, String);

impl EntryDocument {
    fn into_entry(self) -> Result<FakeEntry, EntryError> {
        let name = parsed_name(&self.name)?;
        let webhook_name =
            self.webhook_name.as_ref().map(parsed_name).transpose()?.unwrap_or_else(|| name.clone());
        let path = parsed_path(self.path, &name)?;
        if let (Some(fault), Some(_)) = (&self.fault, &self.behavior) {
            let message = "an entry has a `fault` or a `behavior`, not both".to_owned();
            return Err((fault.referenced, message));
        }
        let fault =
            self.fault.map_or_else(|| Ok(FaultFields::default()), |fault| fault_fields(&fault, self.kind))?;
        let Some(behavior) = self.behavior.or(fault.behavior) else {
            let message = "it needs a `behavior`, or a `fault` of the catalog".to_owned();
            return Err((self.name.referenced, message));
        };
        let reinvocation_policy =
            parsed_reinvocation(self.reinvocation_policy, fault.reinvocation_policy, self.kind)?;
        let fields = WebhookFields {
            rules: self.rules.or(fault.rules).unwrap_or_else(pods_and_config_maps),
            namespace_selector: self.namespace_selector.unwrap_or_else(opted_in),
            object_selector: self.object_selector.or(fault.object_selector).unwrap_or_default(),
            match_conditions: self.match_conditions.or(fault.match_conditions).unwrap_or_default(),
            failure_policy: self.failure_policy.unwrap_or_default(),
            match_policy: self.match_policy.or(fault.match_policy).unwrap_or_default(),
            side_effects: self.side_effects.or(fault.side_effects).unwrap_or_default(),
            timeout_seconds: parsed_timeout(self.timeout_seconds, fault.timeout_seconds)?,
            admission_review_versions: self
                .admission_review_versions
                .or(fault.admission_review_versions)
                .unwrap_or_else(v1),
            reinvocation_policy,
        };
        let transport = Transport {
            certificate: self.certificate.or(fault.certificate).unwrap_or_default(),
            rotate: self.rotate.or(fault.rotate),
            connection: self.connection.or(fault.connection).unwrap_or_default(),
            http: self.http.or(fault.http).unwrap_or_default(),
        }
        .for_behavior(&behavior);
        let client_config = self.client_config.or(fault.client_config).unwrap_or_default();
        Ok(FakeEntry {
            name,
            webhook_name,
            kind: self.kind,
            path,
            behavior,
            transport,
            client_config,
            fields,
        })
    }
}

fn parsed_name(written: &Spanned<String>) -> Result<String, EntryError> {
    match webhook_name_fault(&written.value) {
        None => Ok(full_name(&written.value)),
        Some(fault) => {
            let message = format!("invalid webhook name `{}`: {fault}", written.value);
            Err((written.referenced, message))
        }
    }
}

/// Parses the path of a webhook; the default is the webhook's name.
fn parsed_path(written: Option<Spanned<String>>, name: &str) -> Result<String, EntryError> {
    match written {
        None => Ok(format!("/{name}")),
        Some(path) if path_is_plain(&path.value) => Ok(path.value),
        Some(path) => {
            let expected = "must start with `/` and contain only letters, digits, and `-._~/`";
            Err((path.referenced, format!("invalid path `{}`: {expected}", path.value)))
        }
    }
}

/// Returns the fields, including the behavior, that a fault sets in an entry of the given type.
fn fault_fields(fault: &Spanned<String>, kind: WebhookType) -> Result<FaultFields, EntryError> {
    let Some(found) = Fault::find(&fault.value) else {
        return Err((fault.referenced, FaultError::Unknown(fault.value.clone()).to_string()));
    };
    if found.kind.is_some_and(|needed| needed != kind) {
        let message = format!("the fault `{}` requires the other webhook type", fault.value);
        return Err((fault.referenced, message));
    }
    let fields = FaultFields::from_fault(found);
    Ok(FaultFields { behavior: fields.behavior.or_else(|| Some(Behavior::default())), ..fields })
}

fn parsed_timeout(written: Option<Spanned<u8>>, of_fault: Option<u8>) -> Result<u8, EntryError> {
    match written {
        None => Ok(of_fault.unwrap_or(10)),
        Some(seconds) if (1..=30).contains(&seconds.value) => Ok(seconds.value),
        Some(seconds) => {
            let message = format!("invalid timeoutSeconds {}: must be 1 to 30", seconds.value);
            Err((seconds.referenced, message))
        }
    }
}

/// Parses a reinvocation policy. Returns `None` for a validating webhook, because it cannot have one.
fn parsed_reinvocation(
    written: Option<Spanned<ReinvocationPolicy>>,
    of_fault: Option<ReinvocationPolicy>,
    kind: WebhookType,
) -> Result<Option<ReinvocationPolicy>, EntryError> {
    match (kind, written) {
        (WebhookType::Mutating, policy) => {
            Ok(Some(policy.map(|policy| policy.value).or(of_fault).unwrap_or_default()))
        }
        (WebhookType::Validating, None) => Ok(None),
        (WebhookType::Validating, Some(policy)) => {
            let message = "a validating webhook has no `reinvocationPolicy`".to_owned();
            Err((policy.referenced, message))
        }
    }
}

/// Returns the full name of a fake: a name without a dot gets the default domain.
pub(crate) fn full_name(name: &str) -> String {
    if name.contains('.') { name.to_owned() } else { format!("{name}.{DOMAIN}") }
}

/// Returns the reason why a webhook name is invalid, or `None` if the name is valid.
///
/// Source: apimachinery pkg/util/validation/validation.go, `IsFullyQualifiedName`.
fn webhook_name_fault(name: &str) -> Option<&'static str> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let label = |label: &str| {
        let bytes = label.as_bytes();
        bytes.iter().all(|byte| plain(*byte) || *byte == b'-')
            && bytes.first().is_some_and(|byte| plain(*byte))
            && bytes.last().is_some_and(|byte| plain(*byte))
    };
    if !name.split('.').all(label) {
        Some(
            "must consist of labels of lower-case letters, digits, and `-` that start and end with a letter or digit",
        )
    } else if name.len() > 240 {
        Some("it is too long")
    } else if name.matches('.').count() == 1 {
        Some("must be one label or at least three labels")
    } else {
        None
    }
}

fn path_is_plain(path: &str) -> bool {
    path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte))
}

fn configuration_name() -> String {
    "admit-fakes".to_owned()
}

fn loopback() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

fn pods_and_config_maps() -> Vec<Rule> {
    vec![Rule {
        api_groups: vec![String::new()],
        api_versions: vec!["v1".to_owned()],
        operations: vec![Operation::Create, Operation::Update],
        resources: vec!["pods".to_owned(), "configmaps".to_owned()],
        scope: Scope::All,
    }]
}

/// Returns the default namespace selector, which requires the label `admit-fakes=enabled`.
fn opted_in() -> Selector {
    let label = ("admit-fakes".to_owned(), "enabled".to_owned());
    Selector { match_labels: BTreeMap::from([label]), match_expressions: Vec::new() }
}

fn v1() -> Vec<String> {
    vec!["v1".to_owned()]
}
