//! Replaces values that differ between two runs of a case with named placeholders.
//!
//! No other module masks values. Equal values get equal placeholders: `<uid-1>` is the same UID everywhere.
//! Placeholders are numbered in the order in which their values first occur. The mask omits `metadata.managedFields`
//! unless a case compares them, and the audit annotations of other parts of the server (see [`crate::annotations`]).

use std::collections::BTreeMap;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use regex::Regex;
use serde_json::{Map, Value};

use crate::credentials;
use crate::names::Names;

/// A mask for one run of a case.
#[derive(Debug)]
pub struct Mask<'a> {
    names: &'a Names,
    ports: Vec<(u16, String)>,
    numbered: BTreeMap<String, String>,
    counts: BTreeMap<&'static str, usize>,
    /// The prefixes of names that the server generates.
    prefixes: Vec<String>,
    managed_fields: ManagedFields,
}

/// The treatment of `metadata.managedFields`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "they are compared or not")]
pub enum ManagedFields {
    /// The field is omitted.
    #[default]
    LeftOut,
    /// The field is compared. Its entries are sorted regardless of their times, because the times vary.
    Compared,
}

static UID: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new("(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").ok());
static TIME: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z").ok());
/// Matches a CEL type name to which kube-apiserver appends a random number.
static SELF_TYPE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\bselfType\d+").ok());
/// Matches a `resourceVersion` in a message that quotes an object, and in an object in YAML.
static VERSION: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(resourceVersion\\?"?: ?\\?")(\d+)(\\?")"#).ok());
/// Matches a `resourceVersion` in a message about a precondition.
static PRECONDITION: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(ResourceVersion in (?:precondition|object meta): )(\d+)()").ok());
/// Matches a `resourceVersion` in the other format of messages about a precondition.
static IN_RECORD: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(the ResourceVersion in (?:the precondition|record) \()(\d+)(\))").ok());
/// Matches a revision in a message about an object that cannot be decoded.
static REVISION: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(object not decodable revision=)(\d+)(:)").ok());
/// Matches the versions in a message about a cache that is behind by a random number of versions.
static TOO_LARGE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"Too large resource version: \d+, current: \d+").ok());
/// Matches `managedFields` in a message that quotes an object.
static MANAGED_FIELDS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#""managedFields":\[[^\]]*\],|,"managedFields":\[[^\]]*\]"#).ok());
/// Matches an age in seconds in a cell of a Table.
static AGE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^\d{1,3}s$").ok());
/// Matches the node port of a Service in a cell of a Table.
static NODE_PORT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r":3\d{4}/").ok());
/// Matches the address of the server in the URL of its public keys for verifying tokens.
static OWN_KEYS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"127\.0\.0\.1:\d+/openid/").ok());
/// Matches the errors of Go's HTTP client if a server requires a client certificate and does not receive one.
///
/// Either the client's reader or its writer receives the alert; the other one may find the connection closed.
static CERTIFICATE_REQUIRED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        "(?:write tcp .+?: )?(?:remote error: tls: certificate required|use of closed network connection)",
    )
    .ok()
});
static PEER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"127\.0\.0\.1:\d+->").ok());

/// Sorts the conditions of a definition, because several controllers write them in any order.
fn with_sorted_conditions(status: &Value) -> Value {
    let mut status = status.clone();
    if let Some(conditions) = status.get_mut("conditions").and_then(Value::as_array_mut) {
        conditions.sort_by_key(|condition| condition["type"] == "KubernetesAPIApprovalPolicyConformant");
    }
    status
}

/// Decodes the `continue` token of a list's metadata.
///
/// The `resourceVersion` in the token is random: it is the version of the list, or a different one.
fn with_readable_token(metadata: &Value) -> Value {
    let mut metadata = metadata.clone();
    let token = metadata.get("continue").and_then(Value::as_str).filter(|token| !token.is_empty());
    let token = token.and_then(|token| URL_SAFE_NO_PAD.decode(token).ok());
    let token = token.and_then(|token| serde_json::from_slice::<Value>(&token).ok());
    if let Some(mut token) = token {
        let version = token["rv"].to_string();
        token["rv"] = match metadata.get("resourceVersion").and_then(Value::as_str) {
            Some(of_list) if of_list == version => Value::from("<resourceVersion of the list>"),
            _ if version.starts_with('-') => token["rv"].take(),
            _ => Value::from("<another resourceVersion>"),
        };
        metadata["continue"] = token;
    }
    metadata
}

/// Sorts the conflicts of an apply, because the server lists the managers in random order.
///
/// Source: structured-merge-diff merge/conflict.go, `ConflictsFromManagers`.
fn with_sorted_conflicts(details: &Value) -> Value {
    let mut details = details.clone();
    if let Some(causes) = details.get_mut("causes").and_then(Value::as_array_mut)
        && causes.iter().all(|cause| cause["reason"] == "FieldManagerConflict")
    {
        causes.sort_by_key(|cause| cause["message"].to_string());
    }
    details
}

/// Sorts a list by a field, because the server lists the custom resources of a group in random order.
fn sorted_by(list: &Value, field: &str) -> Value {
    let mut list = list.clone();
    if let Some(items) = list.as_array_mut() {
        items.sort_by_key(|item| item[field].to_string());
    }
    list
}

/// The suffix that Go's HTTP client adds to one of two errors, or to neither, when its own timeout ends a call.
///
/// Which error gets the suffix depends on which of the client's timers expires first.
const CLIENT_TIMEOUT: &str = " (Client.Timeout exceeded while awaiting headers)";

impl<'a> Mask<'a> {
    /// Creates a mask for a run with `names`. `ports` are the ports of its webhooks.
    pub fn new(names: &'a Names, ports: Vec<(u16, String)>) -> Self {
        Self {
            names,
            ports,
            numbered: BTreeMap::new(),
            counts: BTreeMap::new(),
            prefixes: Vec::new(),
            managed_fields: ManagedFields::default(),
        }
    }

    /// Sets the treatment of `metadata.managedFields`.
    #[must_use]
    pub fn with_managed_fields(mut self, managed_fields: ManagedFields) -> Self {
        self.managed_fields = managed_fields;
        self
    }

    /// Adds the `generateName`s of the run's requests, because an answer may contain only a generated name.
    #[must_use]
    pub fn of_generated_names(mut self, prefixes: Vec<String>) -> Self {
        self.prefixes = prefixes;
        self
    }

    /// Masks a document. All documents of one run must be passed to the same mask, in order.
    pub fn apply(&mut self, document: &Value) -> Value {
        self.note_generated_names(document);
        self.value(document, "")
    }

    fn value(&mut self, value: &Value, key: &str) -> Value {
        match value {
            Value::Object(members) => Value::Object(self.members(members)),
            Value::Array(items) => Value::Array(items.iter().map(|item| self.value(item, key)).collect()),
            Value::String(text) if key == "resourceVersion" && !text.is_empty() => {
                Value::String(self.number("resourceVersion", text))
            }
            // Values in a case are shorter than any certificate.
            Value::String(text) if key == "caBundle" && text.len() > 300 => Value::from("<caBundle>"),
            Value::String(text)
                // A dry run returns the address of the network itself.
                if ["clusterIP", "clusterIPs"].contains(&key) && text.starts_with("10.0.0.") && text != "10.0.0.0" =>
            {
                Value::String(self.number("clusterIP", text))
            }
            Value::String(text) if key == "cells" && AGE.as_ref().is_some_and(|age| age.is_match(text)) => {
                Value::from("<seconds>")
            }
            Value::String(text) if key == "cells" && text.starts_with("10.0.0.") => {
                Value::String(self.number("clusterIP", text))
            }
            Value::String(text)
                if key == "cells" && NODE_PORT.as_ref().is_some_and(|port| port.is_match(text)) =>
            {
                let masked = NODE_PORT.as_ref().map(|port| port.replace_all(text, ":<node port>/"));
                Value::from(masked.unwrap_or_default().into_owned())
            }
            Value::Number(port) if ["nodePort", "healthCheckNodePort"].contains(&key) => {
                Value::String(self.number("nodePort", &format!("port {port}")))
            }
            Value::String(text) if key == "kid" => Value::String(self.number("key", text)),
            Value::String(text) if key == "token" => match credentials::readable(text) {
                Some(token) => self.value(&token, ""),
                None => Value::String(self.text(text)),
            },
            Value::String(text) => Value::String(self.text(text)),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    fn members(&mut self, members: &Map<String, Value>) -> Map<String, Value> {
        let text = |key: &str| members.get(key).and_then(Value::as_str).unwrap_or_default();
        let is_list = text("kind").ends_with("List") || text("kind") == "Table";
        let is_bookmark = text("type") == "BOOKMARK";
        let is_definition = text("kind") == "CustomResourceDefinition";
        let is_discovery = text("kind") == "APIResourceList";
        let is_key = members.contains_key("kty");
        let mut masked = Map::new();
        for (key, member) in members {
            if is_key && ["x", "y", "n"].contains(&key.as_str()) {
                masked.insert(key.clone(), Value::from("<number>"));
                continue;
            }
            if key == "storageVersionHash" {
                // The hash of a group, whose name differs in each run.
                masked.insert(key.clone(), Value::from("<hash>"));
                continue;
            }
            if is_discovery && key == "resources" {
                masked.insert(key.clone(), self.value(&sorted_by(member, "name"), key));
                continue;
            }
            if is_definition && key == "status" {
                masked.insert(key.clone(), self.value(&with_sorted_conditions(member), key));
                continue;
            }
            let sorted;
            let mut member = member;
            if let ("managedFields", Value::Array(entries)) = (key.as_str(), member) {
                if self.managed_fields == ManagedFields::LeftOut {
                    continue;
                }
                sorted = in_order(entries);
                member = &sorted;
            }
            let is_status = text("kind") == "Status";
            let member = if is_status && key == "metadata" {
                self.value(&with_readable_token(member), key)
            } else if is_status && key == "details" {
                self.value(&with_sorted_conflicts(member), key)
            } else if is_list && key == "metadata" {
                // The version is that of the whole server, in which other objects change too.
                let mut metadata = with_readable_token(member);
                metadata["resourceVersion"] = Value::from("<resourceVersion of the list>");
                self.value(&metadata, "metadata of a list")
            } else if is_bookmark && key == "object" {
                let mut object = member.clone();
                let version = || Value::from("<resourceVersion of the server>");
                object["metadata"]["resourceVersion"] = version();
                for row in object.get_mut("rows").and_then(Value::as_array_mut).into_iter().flatten() {
                    if let Some(metadata) = row.pointer_mut("/object/metadata") {
                        metadata["resourceVersion"] = version();
                    }
                }
                self.value(&object, "object of a bookmark")
            } else {
                self.value(member, key)
            };
            masked.insert(self.text(key), member);
        }
        masked
    }

    fn text(&mut self, text: &str) -> String {
        let mut text = self.names.shorten(text);
        for end in 1..self.names.id().len() {
            // A server cuts off a long body in a message, perhaps within the ID.
            let Some(start) = self.names.id().get(..end) else { continue };
            text = text.replace(&format!("-{start} ...)"), "-<id> ...)");
        }
        for (port, webhook) in &self.ports {
            text = text.replace(&format!("127.0.0.1:{port}"), &format!("127.0.0.1:<port of {webhook}>"));
            text = text.replace(&format!("localhost:{port}"), &format!("localhost:<port of {webhook}>"));
            text = text.replace(&format!(".svc:{port}"), &format!(".svc:<port of {webhook}>"));
        }
        if let Some(peer) = PEER.as_ref() {
            text = peer.replace_all(&text, "127.0.0.1:<port of the server>->").into_owned();
        }
        if let Some(keys) = OWN_KEYS.as_ref() {
            text = keys.replace_all(&text, "127.0.0.1:<port of the server>/openid/").into_owned();
        }
        for word in ["context deadline exceeded", "net/http: request canceled"] {
            text = text.replace(&format!("{word}{CLIENT_TIMEOUT}"), "context deadline exceeded");
        }
        if let Some(certificate) = CERTIFICATE_REQUIRED.as_ref() {
            text = certificate.replace_all(&text, "remote error: tls: certificate required").into_owned();
        }
        if let Some(self_type) = SELF_TYPE.as_ref() {
            text = self_type.replace_all(&text, "selfType").into_owned();
        }
        if let Some(time) = TIME.as_ref() {
            text = time.replace_all(&text, "<time>").into_owned();
        }
        if let Some(uid) = UID.as_ref() {
            text = uid.replace_all(&text, |found: &regex::Captures<'_>| self.uid(&found[0])).into_owned();
        }
        if let Some(managed) = MANAGED_FIELDS.as_ref() {
            text = managed.replace_all(&text, "").into_owned();
        }
        if let Some(behind) = TOO_LARGE.as_ref() {
            let masked =
                "Too large resource version: <resourceVersion of the server>, current: <a former one>";
            text = behind.replace_all(&text, masked).into_owned();
        }
        for version in [&VERSION, &PRECONDITION, &IN_RECORD, &REVISION]
            .into_iter()
            .filter_map(|version| version.as_ref())
        {
            text = version
                .replace_all(&text, |found: &regex::Captures<'_>| {
                    format!("{}{}{}", &found[1], self.number("resourceVersion", &found[2]), &found[3])
                })
                .into_owned();
        }
        for (generated, placeholder) in &self.numbered {
            if placeholder.starts_with("<generated") && text.contains(generated.as_str()) {
                text = text.replace(generated.as_str(), placeholder);
            }
        }
        text
    }

    /// Returns the placeholder for a UID, in uppercase if the UID is in uppercase.
    fn uid(&mut self, uid: &str) -> String {
        let lower = uid.to_lowercase();
        let placeholder = self.number("uid", &lower);
        if uid == lower { placeholder } else { placeholder.to_uppercase() }
    }

    /// Returns the placeholder for a value, with the next number unless the value has already occurred.
    fn number(&mut self, what: &'static str, value: &str) -> String {
        if let Some(known) = self.numbered.get(value).filter(|known| known.starts_with(&format!("<{what}-")))
        {
            return known.clone();
        }
        let count = self.counts.entry(what).or_default();
        *count += 1;
        let placeholder = format!("<{what}-{count}>");
        self.numbered.insert(value.to_owned(), placeholder.clone());
        placeholder
    }

    /// Records the names of objects with a `generateName`. They end with five random characters.
    fn note_generated_names(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                let text = |key: &str| members.get(key).and_then(Value::as_str);
                let own = text("generateName").map(str::to_owned).into_iter().collect::<Vec<_>>();
                let mut prefixes = if own.is_empty() { self.prefixes.clone() } else { own };
                // The volume of a Pod for its service account token.
                prefixes.push("kube-api-access-".to_owned());
                let name = text("name").unwrap_or_default();
                let is_of = |prefix: &&String| {
                    name.strip_prefix(prefix.as_str()).is_some_and(|generated| generated.len() == 5)
                };
                if let Some(prefix) = prefixes.iter().find(is_of) {
                    self.note_generated(name, &self.names.shorten(prefix));
                }
                members.values().for_each(|member| self.note_generated_names(member));
            }
            Value::Array(items) => items.iter().for_each(|item| self.note_generated_names(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn note_generated(&mut self, name: &str, prefix: &str) {
        if !self.numbered.contains_key(name) {
            let count = self.counts.entry("generated").or_default();
            *count += 1;
            self.numbered.insert(name.to_owned(), format!("<generated-{count} {prefix}>"));
        }
    }
}

/// Sorts the entries of `metadata.managedFields` by operation, manager, subresource, and API version.
fn in_order(entries: &[Value]) -> Value {
    let mut entries = entries.to_vec();
    entries.sort_by_cached_key(|entry| {
        ["operation", "manager", "subresource", "apiVersion"].map(|field| entry[field].to_string())
    });
    Value::Array(entries)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn repeated_values_have_the_same_mask() {
        let names = Names::random();
        let one = uuid::Uuid::new_v4().to_string();
        let other = uuid::Uuid::new_v4().to_string();
        let mut mask = Mask::new(&names, vec![(4711, "a".to_owned())]);
        let masked = mask.apply(&json!({
            "a": one, "b": format!("uid={other}, not {one}"), "metadata": {"managedFields": [], "resourceVersion": "7"},
            "c": format!("https://127.0.0.1:4711/ {} 2026-01-01T00:00:00Z", names.namespace()),
            "g": r#"{"managedFields":[{"time":"x"}],"name":"y","resourceVersion":"8"}"#,
            "h": "ResourceVersion in precondition: 8, ResourceVersion in object meta: 7",
            "d": {"resourceVersion": "8"}, "e": {"resourceVersion": "7"}, "f": format!("not {}", one.to_uppercase()),
        }));
        assert_eq!(
            masked,
            json!({
                "a": "<uid-1>", "b": "uid=<uid-2>, not <uid-1>",
                "c": "https://127.0.0.1:<port of a>/ <ns> <time>",
                "d": {"resourceVersion": "<resourceVersion-1>"}, "e": {"resourceVersion": "<resourceVersion-2>"},
                "f": "not <UID-1>",
                "g": r#"{"name":"y","resourceVersion":"<resourceVersion-1>"}"#,
                "h": "ResourceVersion in precondition: <resourceVersion-1>, ResourceVersion in object meta: <resourceVersion-2>",
                "metadata": {"resourceVersion": "<resourceVersion-2>"},
            })
        );
    }

    #[test]
    fn of_errors_that_the_client_reports_by_chance_one_is_shown() {
        let names = Names::random();
        let shown = "Post \"/\": remote error: tls: certificate required";
        for error in [
            "use of closed network connection",
            "remote error: tls: certificate required",
            "write tcp 127.0.0.1:1->127.0.0.1:2: remote error: tls: certificate required",
        ] {
            let reported = format!("Post \"/\": {error}");
            assert_eq!(Mask::new(&names, Vec::new()).apply(&json!(reported)), json!(shown));
        }
    }

    #[test]
    fn managed_fields_are_compared_on_request() {
        let names = Names::random();
        let entry =
            |manager: &str, time: &str| json!({"manager": manager, "operation": "Update", "time": time});
        let (b, a) = (entry("b", "2026-01-01T00:00:00Z"), entry("a", "2026-01-01T00:00:01Z"));
        let object = json!({"metadata": {"managedFields": [b, a]}});
        let mut mask = Mask::new(&names, Vec::new());
        assert_eq!(mask.apply(&object), json!({"metadata": {}}));
        let mut mask = Mask::new(&names, Vec::new()).with_managed_fields(ManagedFields::Compared);
        let (a, b) = (entry("a", "<time>"), entry("b", "<time>"));
        assert_eq!(mask.apply(&object), json!({"metadata": {"managedFields": [a, b]}}));
    }

    #[test]
    fn addresses_and_ports_of_services_keep_their_identity() {
        let names = Names::random();
        let mut mask = Mask::new(&names, Vec::new());
        let masked = mask.apply(&json!([
            {"clusterIP": "10.0.0.9", "clusterIPs": ["10.0.0.9"], "ports": [{"nodePort": 30001, "port": 30001}]},
            {"clusterIP": "None", "healthCheckNodePort": 30001, "metadata": {"resourceVersion": "30001"}},
        ]));
        assert_eq!(
            masked,
            json!([
                {
                    "clusterIP": "<clusterIP-1>", "clusterIPs": ["<clusterIP-1>"],
                    "ports": [{"nodePort": "<nodePort-1>", "port": 30001}],
                },
                {
                    "clusterIP": "None", "healthCheckNodePort": "<nodePort-1>",
                    "metadata": {"resourceVersion": "<resourceVersion-1>"},
                },
            ])
        );
    }

    #[test]
    fn generated_name_without_context_is_masked() {
        let names = Names::random();
        let mut mask = Mask::new(&names, Vec::new()).of_generated_names(vec!["thing-".to_owned()]);
        let masked = mask.apply(&json!({"message": "no thing-abcde", "details": {"name": "thing-abcde"}}));
        assert_eq!(masked["message"], "no <generated-1 thing->");
    }

    #[test]
    fn a_generated_name_is_the_same_everywhere() {
        let names = Names::random();
        let mut mask = Mask::new(&names, Vec::new());
        let masked = mask.apply(&json!([
            {"name": "thing-abcde"}, {"metadata": {"generateName": "thing-", "name": "thing-abcde"}},
        ]));
        assert_eq!(masked[0]["name"], "<generated-1 thing->");
        assert_eq!(masked[1]["metadata"]["name"], "<generated-1 thing->");
    }
}
