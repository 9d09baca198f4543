//! A file of fakes, as a person writes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};

use certs::Name;
use serde::{Deserialize, Serialize};
use serde_saphyr::{Location, Spanned};

use crate::fields::{
    FailurePolicy, Fields, MatchCondition, MatchPolicy, Operation, ReinvocationPolicy, Rule, Scope, Selector,
    SideEffects,
};
use crate::{Behaviour, Certificate, RemoteAccess};

/// A file of fakes: one configuration of mutating and one of validating webhooks, and what its webhooks do.
#[derive(Clone, Debug, PartialEq)]
pub struct FakesFile {
    /// The name of the configurations.
    pub name: String,
    /// Where the fakes listen. Port 0 takes free ones; further certificates take the ports that follow.
    pub listen: SocketAddr,
    /// The host in URLs and certificates; none is the address of `listen`.
    pub host: Option<Name>,
    /// Whether `listen` may be an address that other machines reach.
    pub remote_access: RemoteAccess,
    /// The webhooks in the order of the file.
    pub webhooks: Vec<FakeEntry>,
}

/// One webhook of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct FakeEntry {
    /// The name in the configuration: at least three labels.
    pub name: String,
    /// Which configuration it stands in.
    pub kind: Kind,
    /// The path of its URL.
    pub path: String,
    /// What it does.
    pub behaviour: Behaviour,
    /// Which certificate it shows.
    pub certificate: Certificate,
    /// The other fields of its entry in the configuration.
    pub fields: Fields,
}

/// `type`: which configuration a webhook stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// `mutating`
    Mutating,
    /// `validating`
    Validating,
}

/// What is wrong with a file, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    file: String,
    line: u64,
    column: u64,
    message: String,
    quoted: String,
}

impl std::error::Error for FileError {}

/// The file as it is written. What is not given has its default here or in [`FakesFile::parse`].
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Written {
    version: Spanned<u64>,
    #[serde(default = "configuration_name")]
    name: String,
    #[serde(default = "loopback")]
    listen: SocketAddr,
    host: Option<Spanned<String>>,
    #[serde(default)]
    allow_remote: bool,
    webhooks: Vec<WrittenEntry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WrittenEntry {
    name: Spanned<String>,
    #[serde(rename = "type")]
    kind: Kind,
    behaviour: Behaviour,
    #[serde(default)]
    certificate: Certificate,
    path: Option<Spanned<String>>,
    #[serde(default = "pods_and_config_maps")]
    rules: Vec<Rule>,
    #[serde(default = "opted_in")]
    namespace_selector: Selector,
    #[serde(default)]
    object_selector: Selector,
    #[serde(default)]
    match_conditions: Vec<MatchCondition>,
    #[serde(default)]
    failure_policy: FailurePolicy,
    #[serde(default)]
    match_policy: MatchPolicy,
    #[serde(default)]
    side_effects: SideEffects,
    timeout_seconds: Option<Spanned<u8>>,
    #[serde(default = "v1")]
    admission_review_versions: Vec<String>,
    reinvocation_policy: Option<Spanned<ReinvocationPolicy>>,
}

const VERSION: u64 = 1;
/// Appended to names that are too short for the API.
const DOMAIN: &str = "fakes.local";

impl FakesFile {
    /// Understands the text of a file. `file` is how messages call it.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn parse(text: &str, file: &str) -> Result<Self, FileError> {
        if text.trim().is_empty() {
            let message = "it is empty: expected `version: 1` and `webhooks`".to_owned();
            return Err(FileError::at(file, text, Location::UNKNOWN, message));
        }
        let written: Written =
            serde_saphyr::from_str(text).map_err(|error| FileError::unreadable(file, text, &error))?;
        let wrong = |place: Location, message: String| FileError::at(file, text, place, message);
        if written.version.value != VERSION {
            let message = format!("version {} is unknown: expected {VERSION}", written.version.value);
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
        let mut webhooks = Vec::new();
        for entry in written.webhooks {
            let place = entry.name.referenced;
            let entry = entry.understood().map_err(|(place, message)| wrong(place, message))?;
            if !names.insert(entry.name.clone()) {
                return Err(wrong(place, format!("there are two webhooks named `{}`", entry.name)));
            }
            if !paths.insert(entry.path.clone()) {
                return Err(wrong(place, format!("there are two webhooks with the path `{}`", entry.path)));
            }
            webhooks.push(entry);
        }
        let remote_access = if written.allow_remote { RemoteAccess::Allowed } else { RemoteAccess::Refused };
        Ok(Self { name: written.name, listen: written.listen, host, remote_access, webhooks })
    }
}

/// No webhooks, on a free port of 127.0.0.1.
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
    /// Understands the text of one webhook alone. `shown` is how messages call it.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn parse(text: &str, shown: &str) -> Result<Self, FileError> {
        let written: WrittenEntry =
            serde_saphyr::from_str(text).map_err(|error| FileError::unreadable(shown, text, &error))?;
        written.understood().map_err(|(place, message)| FileError::at(shown, text, place, message))
    }
}

impl FileError {
    fn at(file: &str, text: &str, place: Location, message: String) -> Self {
        let (line, column) = (place.line(), place.column());
        let index = usize::try_from(line).ok().and_then(|line| line.checked_sub(1));
        let quoted = index.and_then(|index| text.lines().nth(index)).unwrap_or_default();
        Self { file: file.to_owned(), line, column, message, quoted: quoted.chars().take(200).collect() }
    }

    fn unreadable(file: &str, text: &str, error: &serde_saphyr::Error) -> Self {
        let place = error.location().unwrap_or(Location::UNKNOWN);
        let message = error.without_snippet().to_string();
        let suffix = format!(" at line {}, column {}", place.line(), place.column());
        let message = message.strip_suffix(&suffix).map(str::to_owned).unwrap_or(message);
        Self::at(file, text, place, message)
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, message, quoted } = self;
        if *line == 0 {
            return write!(f, "{file}: {message}");
        }
        write!(f, "{file}:{line}:{column}: {message}")?;
        // The line names the field, which messages about values do not.
        if quoted.trim().is_empty() { Ok(()) } else { write!(f, "\n  {line} | {quoted}") }
    }
}

impl WrittenEntry {
    fn understood(self) -> Result<FakeEntry, (Location, String)> {
        if let Some(fault) = webhook_name_fault(&self.name.value) {
            let message = format!("`{}` is no name of a webhook: {fault}", self.name.value);
            return Err((self.name.referenced, message));
        }
        let name = full_name(&self.name.value);
        let path = match self.path {
            None => format!("/{name}"),
            Some(path) if path_is_plain(&path.value) => path.value,
            Some(path) => {
                let expected = "expected a `/`, then letters, digits and any of `-._~/`";
                return Err((path.referenced, format!("`{}` is no path: {expected}", path.value)));
            }
        };
        let timeout_seconds = match self.timeout_seconds {
            None => 10,
            Some(seconds) if (1..=30).contains(&seconds.value) => seconds.value,
            Some(seconds) => {
                return Err((
                    seconds.referenced,
                    format!("{} is no `timeoutSeconds`: expected 1 to 30", seconds.value),
                ));
            }
        };
        let reinvocation_policy = match (self.kind, self.reinvocation_policy) {
            (Kind::Mutating, policy) => Some(policy.map_or(ReinvocationPolicy::Never, |policy| policy.value)),
            (Kind::Validating, None) => None,
            (Kind::Validating, Some(policy)) => {
                return Err((
                    policy.referenced,
                    "a validating webhook has no `reinvocationPolicy`".to_owned(),
                ));
            }
        };
        let fields = Fields {
            rules: self.rules,
            namespace_selector: self.namespace_selector,
            object_selector: self.object_selector,
            match_conditions: self.match_conditions,
            failure_policy: self.failure_policy,
            match_policy: self.match_policy,
            side_effects: self.side_effects,
            timeout_seconds,
            admission_review_versions: self.admission_review_versions,
            reinvocation_policy,
        };
        Ok(FakeEntry {
            name,
            kind: self.kind,
            path,
            behaviour: self.behaviour,
            certificate: self.certificate,
            fields,
        })
    }
}

/// The name in the configuration: one label alone is completed.
pub(crate) fn full_name(name: &str) -> String {
    if name.contains('.') { name.to_owned() } else { format!("{name}.{DOMAIN}") }
}

/// Source: apimachinery pkg/util/validation/validation.go, `IsFullyQualifiedName`; one label alone is completed here.
fn webhook_name_fault(name: &str) -> Option<&'static str> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let label = |label: &str| {
        let bytes = label.as_bytes();
        bytes.iter().all(|byte| plain(*byte) || *byte == b'-')
            && bytes.first().is_some_and(|byte| plain(*byte))
            && bytes.last().is_some_and(|byte| plain(*byte))
    };
    if !name.split('.').all(label) {
        Some("expected small letters, digits, `-` and `.`, with a letter or digit at both ends of each label")
    } else if name.len() > 240 {
        Some("it is too long")
    } else if name.matches('.').count() == 1 {
        Some("expected one label, or at least three with dots between")
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

/// Nothing outside a namespace with the label `admit-fakes=enabled` is caught by a file that says nothing.
fn opted_in() -> Selector {
    let label = ("admit-fakes".to_owned(), "enabled".to_owned());
    Selector { match_labels: BTreeMap::from([label]), match_expressions: Vec::new() }
}

fn v1() -> Vec<String> {
    vec!["v1".to_owned()]
}
