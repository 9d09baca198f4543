//! Provides the objects in manifests to the static checks.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kubernetes_admission::config::{self, ConfigError};
use kubernetes_api_server::ClusterFixture;
use kubernetes_types::json::text;
use serde_json::{Value, json};

use super::subject::Subject;
use super::violation::Violation;

/// The objects in manifests, and the webhooks of their configurations.
#[derive(Debug)]
pub struct Manifests<'a> {
    /// All objects, in file order.
    pub(super) objects: &'a [Value],
    /// The positions of the configurations in `objects`.
    pub(super) configurations: Vec<usize>,
    /// The webhooks of the configurations, in dispatch order, with [substitutes](substituted) for rejected fields.
    pub(super) subjects: Vec<Subject>,
    /// The positions in `objects` of the configurations of `subjects`, in the same order.
    pub(super) positions: Vec<usize>,
    /// The positions and errors of configurations that cannot be decoded.
    pub(super) unreadable: Vec<(usize, ConfigError)>,
    /// The rejected fields that have a substitute in `subjects`, each with the position of its configuration.
    substitutes: Vec<(usize, String)>,
    /// The namespaces and resources that the other objects define.
    pub(super) cluster_fixture: ClusterFixture,
    /// The time at which certificates must be valid.
    pub(super) now: Timestamp,
    /// The minimum remaining validity of certificates.
    ///
    /// The default is 30 days, or a third of the lifetime if that is less.
    pub(super) horizon: Option<Duration>,
}

/// A violation in an object of the manifests.
#[derive(Debug)]
pub struct Defect {
    /// The position of the object in the manifests.
    pub(super) position: usize,
    /// The violation. Its field is a path in the object.
    pub(super) violation: Violation,
}

impl<'a> Manifests<'a> {
    /// Reads the configurations among `objects`.
    pub(super) fn new(objects: &'a [Value], now: Timestamp, horizon: Option<Duration>) -> Self {
        let configurations: Vec<usize> = (0..objects.len())
            .filter(|position| objects.get(*position).is_some_and(is_configuration))
            .collect();
        let (mut readable, mut unreadable, mut substitutes) = (Vec::new(), Vec::new(), Vec::new());
        for position in &configurations {
            let Some(object) = objects.get(*position) else { continue };
            match config::webhooks(object) {
                Ok(_) => readable.push((*position, Arc::new(object.clone()))),
                Err(error) => {
                    unreadable.push((*position, error));
                    if let Some((object, fields)) = substituted(object) {
                        readable.push((*position, Arc::new(object)));
                        substitutes.extend(fields.into_iter().map(|field| (*position, field)));
                    }
                }
            }
        }
        // Each of them was decoded above.
        let shared = readable.iter().map(|(_, object)| Arc::clone(object));
        let subjects = Subject::of_shared(shared).unwrap_or_default();
        let position = |subject: &Subject| {
            let mut readable = readable.iter();
            let own = readable.find(|(_, object)| Arc::ptr_eq(object, &subject.configuration));
            own.map(|(position, _)| *position).unwrap_or_default()
        };
        let positions = subjects.iter().map(position).collect();
        let around = objects.iter().filter(|object| !is_configuration(object));
        let cluster_fixture = ClusterFixture::new(around);
        Self {
            objects,
            configurations,
            subjects,
            positions,
            unreadable,
            substitutes,
            cluster_fixture,
            now,
            horizon,
        }
    }

    pub(super) fn object(&self, position: usize) -> &'a Value {
        self.objects.get(position).unwrap_or(&Value::Null)
    }

    /// Returns the configurations, each with its position.
    pub(super) fn configurations(&self) -> impl Iterator<Item = (usize, &'a Value)> {
        self.configurations.iter().map(|position| (*position, self.object(*position)))
    }

    /// Returns the webhooks, each with the position of its configuration.
    pub(super) fn webhooks(&self) -> impl Iterator<Item = (&Subject, usize)> {
        self.subjects.iter().zip(self.positions.iter().copied())
    }

    /// Returns whether `subjects` contains the webhooks of the configuration at `position`.
    pub(super) fn has_subjects(&self, position: usize) -> bool {
        self.positions.contains(&position)
    }

    /// Returns whether `field` of the configuration at `position`, or the entry that contains it, has a substitute.
    pub(super) fn is_substitute(&self, position: usize, field: &str) -> bool {
        let is_in = |rejected: &str| {
            field.strip_prefix(rejected).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.substitutes.iter().any(|(at, rejected)| *at == position && is_in(rejected))
    }

    /// Locates a violation in the configuration of the webhook that it names or, if it names none, in that of
    /// `looked_at`.
    pub(super) fn located(&self, mut violation: Violation, looked_at: Option<(&Subject, usize)>) -> Defect {
        let about = violation.about.clone();
        let said = about.and_then(|id| self.webhooks().find(|(it, _)| Arc::ptr_eq(&it.webhook.id, &id)));
        let Some((subject, position)) = said.or(looked_at).or_else(|| self.webhooks().next()) else {
            return Defect { position: 0, violation };
        };
        let entry = format!("webhooks[{}]", subject.index);
        let field = std::mem::take(&mut violation.field);
        violation.field = if field.is_empty() { entry } else { format!("{entry}.{field}") };
        Defect { position, violation }
    }

    /// Returns `CONFIGURATION/WEBHOOK` for the webhook that contains `field`, or the name of the object.
    pub(super) fn webhook_at(&self, position: usize, field: &str) -> String {
        let index = field.strip_prefix("webhooks[").and_then(|rest| rest.split_once(']'));
        let index = index.and_then(|(index, _)| index.parse::<usize>().ok());
        if let Some(index) = index
            && let Some((subject, _)) = self.webhooks().find(|(it, at)| *at == position && it.index == index)
        {
            return subject.name();
        }
        let object = self.object(position);
        let name = text(object, &["metadata", "name"]);
        let entry = index.and_then(|index| object.get("webhooks")?.get(index)?.get("name")?.as_str());
        entry.map_or_else(|| name.to_owned(), |entry| format!("{name}/{entry}"))
    }
}

/// The maximum number of rejected fields to replace in a configuration.
const MAX_SUBSTITUTES: usize = 64;

/// Replaces the fields that the API server rejects with valid values, and returns the result and the replaced fields.
///
/// An entry with a field that does not have a substitute is replaced by an entry without rules. Entries keep their
/// positions. Returns `None` if the rejected field is not in an entry.
fn substituted(configuration: &Value) -> Option<(Value, Vec<String>)> {
    let mut complete = configuration.clone();
    let mut fields: Vec<String> = Vec::new();
    while fields.len() < MAX_SUBSTITUTES {
        let field = match config::webhooks(&complete) {
            Ok(_) => return Some((complete, fields)),
            Err(ConfigError::Field { field, .. }) => field,
            Err(_) => return None,
        };
        let is_substituted = !fields.contains(&field) && substitute(&mut complete, &field).is_some();
        if is_substituted {
            fields.push(field);
            continue;
        }
        let entry = field.split_inclusive(']').next().filter(|entry| entry.starts_with("webhooks["))?;
        if fields.iter().any(|known| known == entry) {
            return None;
        }
        *complete.pointer_mut(&pointer(entry))? = entry_without_rules(fields.len());
        fields.push(entry.to_owned());
    }
    None
}

/// Writes a valid value to `field`, or returns `None` if the field does not have a substitute.
fn substitute(configuration: &mut Value, field: &str) -> Option<()> {
    let (parent, name) = field.rsplit_once('.')?;
    let value = match name {
        "sideEffects" => json!("None"),
        "admissionReviewVersions" => json!(["v1"]),
        "timeoutSeconds" => json!(10),
        // With Ignore, fewer requests depend on the webhook.
        "failurePolicy" => json!("Ignore"),
        "matchPolicy" => json!("Equivalent"),
        "reinvocationPolicy" => json!("Never"),
        "scope" => json!("*"),
        "caBundle" => json!(""),
        "operations" => json!(["CREATE"]),
        _ if name.starts_with("operations[") => {
            *configuration.pointer_mut(&pointer(field))? = json!("CREATE");
            return Some(());
        }
        _ => return None,
    };
    configuration.pointer_mut(&pointer(parent))?.as_object_mut()?.insert(name.to_owned(), value);
    Some(())
}

/// Returns a valid entry that replaces a rejected entry and does not match any request.
fn entry_without_rules(number: usize) -> Value {
    json!({
        "name": format!("rejected-{number}.example.com"),
        "clientConfig": {"url": "https://localhost/"},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Ignore",
    })
}

/// Converts the path of a field, such as `webhooks[0].rules`, to a JSON pointer.
fn pointer(field: &str) -> String {
    format!("/{}", field.replace(['.', '['], "/").replace(']', ""))
}

/// Returns whether `object` is a webhook configuration of any version.
fn is_configuration(object: &Value) -> bool {
    let group = text(object, &["apiVersion"]).split_once('/').map_or("", |(group, _)| group);
    let kind = text(object, &["kind"]);
    group == "admissionregistration.k8s.io"
        && ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"].contains(&kind)
}
