//! Defines one attempt to admit a request: its attributes, the values looked up for it, and the record of events.

use std::fmt;
use std::sync::{Arc, OnceLock};

use kubernetes_types::json::{self, text};
use serde_json::Value;

pub use crate::attributes::{Attributes, GroupVersionKind};
use crate::authorizer::{AlwaysAllow, Authorizer};
use crate::cluster_state::{Answers, ByWebhook, ClusterState, ConversionError, EquivalentResource};
use crate::custom_scale;
use crate::event::Record;
use crate::ownership::TimePrecision;

/// One attempt to admit a request: its attributes, the values looked up for it, and the record of what happened.
///
/// A write that is retried after a conflict gets a new run for each attempt, so that no state of an earlier attempt
/// affects a later one. The mutating phase comes first and changes the object; the validating phase sees the result.
///
/// Source: apiserver pkg/endpoints/handlers/{update,patch}.go and pkg/registry/rest/delete.go: each attempt creates its
/// own attributes, which contain the state of reinvocation.
/// Rule: RIV-13.
pub struct AdmissionRun<'a> {
    /// The request. Its `object` is in the version of the field `kind`. That version may differ from `attributes.kind`.
    attributes: Attributes,
    kind: GroupVersionKind,
    /// Whether a webhook has patched the object since it was last in the request's version.
    patched: bool,
    /// The object's `apiVersion` before the patch. Used only for custom resources.
    given_version: String,
    /// The object before it was patched if [`ClusterState::preserves_unpatched`]; otherwise null.
    unpatched: Value,
    /// Whether a patched object had labels before its defaults were set; `None` if no webhook patched it.
    had_labels: Option<bool>,
    times: TimePrecision,
    state: &'a dyn ClusterState,
    authorizer: Arc<dyn Authorizer>,
    /// Whether the record contains the reason why each skipped policy does not match.
    explains_policies: bool,
    /// The new object in other versions; cleared when the object of the request changes.
    versions: Vec<Version>,
    /// The old object in other versions.
    old_versions: Vec<Version>,
    /// The new object of `attributes` as JSON, encoded when a review first needs it.
    text: Text,
    /// The old object of `attributes` as JSON, encoded when a review first needs it.
    old_text: Text,
    /// The results of conversion webhooks. Each is kept until the conversion that needs it uses it, and a failure until
    /// the operation that needed it ends.
    answers: Answers,
    equivalents: Option<Arc<[EquivalentResource]>>,
    /// The record of the run so far.
    pub record: Record,
}

/// An object as JSON, encoded for the first review that contains it and reused for later reviews.
type Text = OnceLock<Vec<u8>>;

/// An object in one version.
struct Version {
    kind: GroupVersionKind,
    object: Value,
    text: Text,
}

impl Version {
    fn new(kind: &GroupVersionKind, object: Value) -> Self {
        Self { kind: kind.clone(), object, text: Text::new() }
    }
}

/// The new and the old object in one version, encoded as JSON.
#[derive(Clone, Copy, Debug)]
pub struct EncodedObjects<'a> {
    /// The new object; `None` for a DELETE.
    pub object: Option<&'a [u8]>,
    /// The stored object; `None` for a CREATE or a CONNECT.
    pub old_object: Option<&'a [u8]>,
}

/// The new and the old object in one version.
#[derive(Clone, Copy, Debug)]
pub struct Objects<'a> {
    /// The new object; `None` for a DELETE.
    pub object: Option<&'a Value>,
    /// The stored object; `None` for a CREATE or a CONNECT.
    pub old_object: Option<&'a Value>,
}

impl<'a> AdmissionRun<'a> {
    /// Creates a run for a request on a server with this `state`; `times` is the precision of the object's timestamps.
    pub fn new(attributes: Attributes, times: TimePrecision, state: &'a dyn ClusterState) -> Self {
        Self {
            kind: attributes.kind.clone(),
            attributes,
            patched: false,
            given_version: String::new(),
            unpatched: Value::Null,
            had_labels: None,
            times,
            state,
            authorizer: Arc::new(AlwaysAllow),
            explains_policies: false,
            versions: Vec::new(),
            old_versions: Vec::new(),
            text: Text::new(),
            old_text: Text::new(),
            answers: Answers::default(),
            equivalents: None,
            record: Record::default(),
        }
    }

    /// Sets the authorizer. By default, every user may do everything.
    #[must_use]
    pub fn with_authorizer(self, authorizer: Arc<dyn Authorizer>) -> Self {
        Self { authorizer, ..self }
    }

    /// Sets whether the record contains the reason why each skipped policy does not match. By default, it does not.
    #[must_use]
    pub fn explaining_policies(self, explains_policies: bool) -> Self {
        Self { explains_policies, ..self }
    }

    /// Returns whether the record contains the reason why each skipped policy does not match.
    pub(crate) fn explains_policies(&self) -> bool {
        self.explains_policies
    }

    /// Returns the authorizer that determines what the user may do.
    pub(crate) fn authorizer(&self) -> &Arc<dyn Authorizer> {
        &self.authorizer
    }

    /// Returns the request. Between the phases its object is in the version of its `kind`.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// Returns the request for modification and drops all values derived from its object.
    pub fn attributes_mut(&mut self) -> &mut Attributes {
        self.forget_object();
        self.old_text = Text::new();
        &mut self.attributes
    }

    /// Returns the request for modification, as [`Self::attributes_mut`] does, together with the record.
    pub(crate) fn parts_mut(&mut self) -> (&mut Attributes, &mut Record) {
        self.forget_object();
        self.old_text = Text::new();
        (&mut self.attributes, &mut self.record)
    }

    /// Drops all values derived from the new object. Must be called before the object changes.
    fn forget_object(&mut self) {
        self.versions.clear();
        self.text = Text::new();
    }

    /// Frees the encoded objects. If a later review needs them, they are encoded again.
    pub(crate) fn forget_texts(&mut self) {
        (self.text, self.old_text) = Default::default();
        for version in self.versions.iter_mut().chain(&mut self.old_versions) {
            version.text = Text::new();
        }
    }

    /// Takes the object out of the request.
    pub fn take_object(&mut self) -> Option<Value> {
        self.attributes_mut().object.take()
    }

    /// Returns the server's state: namespaces, equivalent resources, and versions of kinds.
    pub fn state(&self) -> &'a dyn ClusterState {
        self.state
    }

    /// Looks up the equivalent resources for [`Self::equivalents`], unless that has been done already.
    pub(crate) fn look_up_equivalents(&mut self) {
        let Self { attributes, state, equivalents, .. } = self;
        equivalents
            .get_or_insert_with(|| state.equivalent_resources(&attributes.resource, &attributes.subresource));
    }

    /// Returns the resources that share the request's stored objects; empty before they are looked up.
    pub(crate) fn equivalents(&self) -> &[EquivalentResource] {
        self.equivalents.as_deref().unwrap_or_default()
    }

    /// Records the result of a conversion webhook.
    ///
    /// The caller then repeats [`Self::convert`], [`Self::convert_to_request_version`], or the decision that needed the
    /// conversion. The repeated operation uses the result.
    pub(crate) fn answer(&mut self, asked: ByWebhook, answer: Result<Value, ConversionError>) {
        self.answers.add(asked, answer);
    }

    /// Forgets the failed conversions, so that the next operation that needs one calls the webhook again.
    pub(crate) fn forget_failed_conversions(&mut self) {
        self.answers.forget_failures();
    }

    /// Returns a stored object in the version of `kind`.
    ///
    /// # Errors
    /// Returns [`ConversionError`] if the object cannot be converted, or if a webhook must convert it first.
    pub(crate) fn read_stored(
        &self,
        stored: &Arc<Value>,
        kind: &GroupVersionKind,
    ) -> Result<Arc<Value>, ConversionError> {
        self.state.read_stored(stored, kind).or_else(|error| self.answers.get(error).map(Arc::new))
    }

    /// Converts both objects to the version of `kind`, so that [`Self::objects`] can return them.
    ///
    /// Each object is converted once; the new one is converted again after it changes. A patched object is first
    /// converted back to the version of the request.
    ///
    /// # Errors
    /// Returns [`ConversionError`] if an object cannot be converted to that version, or if a webhook must convert it
    /// first.
    ///
    /// Source: apiserver pkg/admission/conversion.go, `NewVersionedAttributes` and `ConvertVersionedAttributes`.
    /// Rule: CNV-14, REQ-10, REQ-20, REQ-21.
    pub(crate) fn convert(&mut self, kind: &GroupVersionKind) -> Result<(), ConversionError> {
        if let Some(old) = &self.attributes.old_object
            && *kind != self.attributes.kind
            && find(&self.old_versions, kind).is_none()
        {
            let converted = self.state.convert(old, kind).or_else(|error| self.answers.take(error))?;
            self.old_versions.push(Version::new(kind, converted));
        }
        if find(&self.versions, kind).is_some() {
            return Ok(());
        }
        if self.kind == *kind {
            return self.name_kind();
        }
        self.convert_to_request_version()?;
        if let Some(object) = &self.attributes.object
            && self.kind != *kind
        {
            let converted = self.state.convert(object, kind).or_else(|error| self.answers.take(error))?;
            self.versions.push(Version::new(kind, converted));
        }
        Ok(())
    }

    /// Returns both objects in the version of `kind`. [`Self::convert`] must have been called for `kind`.
    pub(crate) fn objects(&self, kind: &GroupVersionKind) -> Objects<'_> {
        let Attributes { kind: own, object, old_object, .. } = &self.attributes;
        let (new, old) = (find(&self.versions, kind), find(&self.old_versions, kind));
        Objects {
            object: new.map(|(object, _)| object).or(object.as_ref().filter(|_| self.kind == *kind)),
            old_object: if own == kind { old_object.as_ref() } else { old.map(|(object, _)| object) },
        }
    }

    /// Returns both objects as JSON. Each is encoded once; the new one is encoded again after it changes.
    ///
    /// # Errors
    /// Returns [`serde_json::Error`] if an object cannot be encoded as JSON.
    pub(crate) fn encoded(&self, kind: &GroupVersionKind) -> Result<EncodedObjects<'_>, serde_json::Error> {
        let Objects { object, old_object } = self.objects(kind);
        let text = find(&self.versions, kind).map_or(&self.text, |(_, text)| text);
        let old_text = if self.attributes.kind == *kind { None } else { find(&self.old_versions, kind) };
        let old_text = old_text.map_or(&self.old_text, |(_, text)| text);
        Ok(EncodedObjects {
            object: object.map(|object| encoded(object, text)).transpose()?,
            old_object: old_object.map(|object| encoded(object, old_text)).transpose()?,
        })
    }

    /// Corrects the `apiVersion` and `kind` that reviews show for a custom resource if they differ from the request's.
    ///
    /// Source: apiserver pkg/admission/conversion.go, `ConvertToGVK`; apiextensions-apiserver
    /// pkg/apiserver/conversion/converter.go, `Convert`.
    /// Rule: SCH-19.
    fn name_kind(&mut self) -> Result<(), ConversionError> {
        let Some(object) = self.attributes.object.as_ref().filter(|_| !self.patched) else { return Ok(()) };
        if self.kind.is_of(object) || self.state.is_built_in(&self.kind) {
            return Ok(());
        }
        let found = GroupVersionKind::from_object(object);
        check_group(&found, &self.kind)?;
        let shown = if found.kind == self.kind.kind {
            self.state.convert(object, &self.kind).or_else(|error| self.answers.take(error))?
        } else {
            let mut shown = object.clone();
            json::set(&mut shown, &["apiVersion"], self.kind.api_version());
            json::set(&mut shown, &["kind"], self.kind.kind.as_str());
            shown
        };
        self.versions.push(Version::new(&self.kind, shown));
        Ok(())
    }

    /// Returns whether the object's timestamps have fractions of a second, and marks them as rounded.
    ///
    /// A patch encodes the object as JSON, which drops the fractions.
    ///
    /// Rule: MUT-13.
    pub(crate) fn round_times(&mut self) -> bool {
        std::mem::replace(&mut self.times, TimePrecision::Seconds) == TimePrecision::Nanos
    }

    /// Returns whether the object had labels before defaulting at the last patch; `None` if no webhook patched it.
    pub fn had_labels(&self) -> Option<bool> {
        self.had_labels
    }

    /// Returns whether any webhook patched the object. Patching encodes the object as JSON, which omits empty lists.
    pub fn was_patched(&self) -> bool {
        self.had_labels.is_some()
    }

    /// Returns whether a webhook has patched the object since it was last in the request's version.
    pub(crate) fn is_patched(&self) -> bool {
        self.patched
    }

    /// Replaces the object with `patched`. `patched` must be in the version of `kind`.
    ///
    /// `had_labels` specifies whether `patched` had labels before its defaults were set.
    pub(crate) fn patch(&mut self, kind: &GroupVersionKind, patched: Value, had_labels: bool) {
        self.forget_object();
        self.had_labels = Some(had_labels);
        self.kind.clone_from(kind);
        let before = self.attributes.object.replace(patched);
        if let (false, Some(object)) = (self.patched, before) {
            text(&object, &["apiVersion"]).clone_into(&mut self.given_version);
            if self.state.preserves_unpatched(&self.attributes.kind) {
                self.unpatched = object;
            }
        }
        self.patched = true;
    }

    /// Converts a patched object back to the version of the request.
    ///
    /// # Errors
    /// Returns [`ConversionError`] if the kind of the object changed, or if the object cannot be converted.
    ///
    /// Source: apiserver pkg/admission/plugin/webhook/mutating/dispatcher.go, `Dispatch`; pkg/admission/conversion.go.
    /// Rule: MUT-12, MUT-15, MUT-22, MUT-23, SCH-19.
    pub(crate) fn convert_to_request_version(&mut self) -> Result<(), ConversionError> {
        let is_custom_scale = custom_scale::is_custom_scale(&self.attributes);
        let own = &self.attributes.kind;
        let Some(object) = &mut self.attributes.object else { return Ok(()) };
        if self.patched && is_custom_scale {
            let typed = custom_scale::decode(object.take(), own, self.state);
            *object = typed.map_err(ConversionError::Refused)?;
            self.versions.clear();
            self.text = Text::new();
        } else if self.patched {
            let found = GroupVersionKind::from_object(object);
            let built_in = self.state.is_built_in(own);
            if built_in && found != self.kind {
                return Err(ConversionError::Refused(format!(
                    "converting ({}.{}) to ({}.{}): unknown conversion",
                    found.version,
                    found.kind,
                    internal_package(&own.group),
                    own.kind
                )));
            }
            if !built_in {
                check_group(&found, own)?;
            }
            // A custom resource whose kind changed is rejected later, by its validation.
            let is_converted = found != *own && found.kind == own.kind;
            if is_converted {
                *object = self.state.convert(object, own).or_else(|error| self.answers.take(error))?;
            }
            let is_another = if built_in {
                !is_converted && self.state.pass_through_internal(object, &self.unpatched)
            } else if self.given_version == own.api_version() {
                false
            } else {
                // A changed `apiVersion` is also rejected later; until then the original one is restored.
                json::set(object, &["apiVersion"], self.given_version.as_str())
            };
            if is_converted || is_another {
                self.versions.clear();
                self.text = Text::new();
            }
        }
        self.kind.clone_from(&self.attributes.kind);
        self.patched = false;
        self.unpatched = Value::Null;
        Ok(())
    }
}

impl fmt::Debug for AdmissionRun<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { attributes, record, .. } = self;
        f.debug_struct("AdmissionRun")
            .field("attributes", attributes)
            .field("record", record)
            .finish_non_exhaustive()
    }
}

/// Rejects a custom resource that does not have a version, or whose group is not the group of `kind`.
///
/// Source: apiextensions-apiserver pkg/apiserver/conversion/converter.go, `ConvertToVersion`.
fn check_group(found: &GroupVersionKind, kind: &GroupVersionKind) -> Result<(), ConversionError> {
    if found.version.is_empty() || found.group != kind.group {
        return Err(ConversionError::unsuitable(found, kind));
    }
    Ok(())
}

fn find<'v>(versions: &'v [Version], kind: &GroupVersionKind) -> Option<(&'v Value, &'v Text)> {
    let version = versions.iter().find(|version| version.kind == *kind)?;
    Some((&version.object, &version.text))
}

/// Returns `object` as JSON, and caches the JSON in `text`.
fn encoded<'t>(object: &Value, text: &'t Text) -> Result<&'t [u8], serde_json::Error> {
    if let Some(text) = text.get() {
        return Ok(text);
    }
    let mut new = Vec::with_capacity(OBJECT);
    serde_json::to_writer(&mut new, object)?;
    Ok(text.get_or_init(|| new))
}

/// The initial capacity, in bytes, of the buffer for an encoded object; most objects are smaller.
const OBJECT: usize = 4096;

/// Returns the Go package of a group's internal types.
fn internal_package(group: &str) -> &str {
    if group.is_empty() { "core" } else { group.split('.').next().unwrap_or(group) }
}

#[cfg(test)]
mod tests;
