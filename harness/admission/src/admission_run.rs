//! One run of admission: what one attempt at a request knows.

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

/// One run of admission: the attributes of one attempt at a request, what was looked up for it, and what happened.
///
/// A write that is retried because another one was faster has a run for each attempt, so that nothing of an earlier
/// attempt decides about a later one. The mutating phase comes first and changes the object; the validating phase sees
/// what it left.
///
/// Source: apiserver pkg/endpoints/handlers/{update,patch}.go and pkg/registry/rest/delete.go: each attempt makes
/// attributes of its own, and with them the state of reinvocation.
/// Rule: RIV-13.
pub struct AdmissionRun<'a> {
    /// `object` is in the version of `kind`, which may be another one than `attributes.kind`.
    attributes: Attributes,
    kind: GroupVersionKind,
    /// Whether a webhook patched the object since it was last in the version of the request.
    patched: bool,
    /// The `apiVersion` that a patched custom resource had before.
    given_version: String,
    /// The object before it was patched, where [`ClusterState::keeps_what_was_there`]; else null.
    unpatched: Value,
    /// Of an object that was patched: whether it had labels before it got its defaults.
    had_labels: Option<bool>,
    times: TimePrecision,
    state: &'a dyn ClusterState,
    authorizer: Arc<dyn Authorizer>,
    /// The new and the old object in other versions than those of `attributes`; the new ones until the object changes.
    versions: Vec<Version>,
    old_versions: Vec<Version>,
    /// The objects of `attributes` as JSON, once a review has them.
    text: Text,
    old_text: Text,
    /// What conversion webhooks made of objects, until it is asked for again.
    answers: Answers,
    equivalents: Option<Arc<[EquivalentResource]>>,
    /// What happened so far.
    pub record: Record,
}

/// An object as JSON, encoded for the first review that has it and spliced into the others.
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

/// The new and the old object in one version, as JSON.
#[derive(Clone, Copy, Debug)]
pub struct EncodedObjects<'a> {
    /// The new object; none for a DELETE.
    pub object: Option<&'a [u8]>,
    /// The stored object; none for a CREATE and a CONNECT.
    pub old_object: Option<&'a [u8]>,
}

/// The new and the old object in one version.
#[derive(Clone, Copy, Debug)]
pub struct Objects<'a> {
    /// The new object; none for a DELETE.
    pub object: Option<&'a Value>,
    /// The stored object; none for a CREATE and a CONNECT.
    pub old_object: Option<&'a Value>,
}

impl<'a> AdmissionRun<'a> {
    /// A run of a request whose object has these `times`, on a server that knows `state`.
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
            versions: Vec::new(),
            old_versions: Vec::new(),
            text: Text::new(),
            old_text: Text::new(),
            answers: Answers::default(),
            equivalents: None,
            record: Record::default(),
        }
    }

    /// The same with an authorizer. Without one users may do everything.
    #[must_use]
    pub fn with_authorizer(self, authorizer: Arc<dyn Authorizer>) -> Self {
        Self { authorizer, ..self }
    }

    /// Who is asked what the user may do.
    pub(crate) fn authorizer(&self) -> &Arc<dyn Authorizer> {
        &self.authorizer
    }

    /// The request. Between the phases its object is in the version of its `kind`.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// The request, to be changed: what was derived from its object is forgotten.
    pub fn attributes_mut(&mut self) -> &mut Attributes {
        self.forget_object();
        self.old_text = Text::new();
        &mut self.attributes
    }

    /// The record, and the request to be changed as by [`Self::attributes_mut`].
    pub(crate) fn parts_mut(&mut self) -> (&mut Attributes, &mut Record) {
        self.forget_object();
        self.old_text = Text::new();
        (&mut self.attributes, &mut self.record)
    }

    /// Forgets what was derived from the new object, which changes.
    fn forget_object(&mut self) {
        self.versions.clear();
        self.text = Text::new();
    }

    /// Gives the memory back that the objects take as JSON: no review follows soon.
    pub(crate) fn forget_texts(&mut self) {
        (self.text, self.old_text) = Default::default();
        for version in self.versions.iter_mut().chain(&mut self.old_versions) {
            version.text = Text::new();
        }
    }

    /// Takes the object out.
    pub fn take_object(&mut self) -> Option<Value> {
        self.attributes_mut().object.take()
    }

    /// What the server knows beside the request.
    pub fn state(&self) -> &'a dyn ClusterState {
        self.state
    }

    /// Sees to it that [`Self::equivalents`] has them. They are looked up once.
    pub(crate) fn look_up_equivalents(&mut self) {
        let Self { attributes, state, equivalents, .. } = self;
        equivalents
            .get_or_insert_with(|| state.equivalent_resources(&attributes.resource, &attributes.subresource));
    }

    /// The resources that lead to the same stored objects, once they were looked up.
    pub(crate) fn equivalents(&self) -> &[EquivalentResource] {
        self.equivalents.as_deref().unwrap_or_default()
    }

    /// Records what a conversion webhook made of an object that [`Self::convert`], [`Self::fold_back`] or a decision needs
    /// converted: they find the answer here when the caller of the webhook runs them again.
    pub(crate) fn answer(&mut self, asked: ByWebhook, answer: Result<Value, ConversionError>) {
        self.answers.add(asked, answer);
    }

    /// Sees to it that [`Self::objects`] has both objects in the version of `kind`. Each is converted once, the new one
    /// again after it has changed. An object that was patched is converted by way of the version of the request.
    ///
    /// # Errors
    /// [`ConversionError`] when one of them cannot be had in that version, or a webhook has to be asked for it first.
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
        self.fold_back()?;
        if let Some(object) = &self.attributes.object
            && self.kind != *kind
        {
            let converted = self.state.convert(object, kind).or_else(|error| self.answers.take(error))?;
            self.versions.push(Version::new(kind, converted));
        }
        Ok(())
    }

    /// Both objects in the version of `kind`, to which they were converted.
    pub(crate) fn objects(&self, kind: &GroupVersionKind) -> Objects<'_> {
        let Attributes { kind: own, object, old_object, .. } = &self.attributes;
        let (new, old) = (find(&self.versions, kind), find(&self.old_versions, kind));
        Objects {
            object: new.map(|(object, _)| object).or(object.as_ref().filter(|_| self.kind == *kind)),
            old_object: if own == kind { old_object.as_ref() } else { old.map(|(object, _)| object) },
        }
    }

    /// The same as JSON. Each is encoded once, the new one again after it has changed.
    ///
    /// # Errors
    /// An object that is no JSON.
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

    /// A custom resource that says to be of another kind or version is shown as what it should be, if it can be.
    ///
    /// Source: apiserver pkg/admission/conversion.go, `ConvertToGVK`; apiextensions-apiserver
    /// pkg/apiserver/conversion/converter.go, `Convert`.
    /// Rule: SCH-19.
    fn name_kind(&mut self) -> Result<(), ConversionError> {
        let Some(object) = self.attributes.object.as_ref().filter(|_| !self.patched) else { return Ok(()) };
        if self.kind.is_of(object) || self.state.is_built_in(&self.kind) {
            return Ok(());
        }
        let found = GroupVersionKind::of(object);
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

    /// Whether the object has fractions of seconds in its times, and from now on no longer: a patch sends it through
    /// JSON.
    ///
    /// Rule: MUT-13.
    pub(crate) fn round_times(&mut self) -> bool {
        std::mem::replace(&mut self.times, TimePrecision::Seconds) == TimePrecision::Nanos
    }

    /// Whether the object had labels before it got its defaults, after the last patch of a webhook; none without a patch.
    pub fn had_labels(&self) -> Option<bool> {
        self.had_labels
    }

    /// Whether any webhook patched the object: then it was JSON in between, which has no empty lists.
    pub fn was_patched(&self) -> bool {
        self.had_labels.is_some()
    }

    /// Whether the object is as the last webhook left it.
    pub(crate) fn is_patched(&self) -> bool {
        self.patched
    }

    /// The object is `patched` now, in the version of `kind`. It `had_labels` before it got its defaults.
    pub(crate) fn patch(&mut self, kind: &GroupVersionKind, patched: Value, had_labels: bool) {
        self.forget_object();
        self.had_labels = Some(had_labels);
        self.kind.clone_from(kind);
        let before = self.attributes.object.replace(patched);
        if let (false, Some(object)) = (self.patched, before) {
            text(&object, &["apiVersion"]).clone_into(&mut self.given_version);
            if self.state.keeps_what_was_there(&self.attributes.kind) {
                self.unpatched = object;
            }
        }
        self.patched = true;
    }

    /// Converts a patched object back to the version of the request.
    ///
    /// # Errors
    /// [`ConversionError`] when it became another kind, or cannot be converted.
    ///
    /// Source: apiserver pkg/admission/plugin/webhook/mutating/dispatcher.go, `Dispatch`; pkg/admission/conversion.go.
    /// Rule: MUT-12, MUT-15, MUT-22, MUT-23, SCH-19.
    pub(crate) fn fold_back(&mut self) -> Result<(), ConversionError> {
        let is_custom_scale = custom_scale::is_meant(&self.attributes);
        let own = &self.attributes.kind;
        let Some(object) = &mut self.attributes.object else { return Ok(()) };
        if self.patched && is_custom_scale {
            let typed = custom_scale::typed(object.take(), own, self.state);
            *object = typed.map_err(ConversionError::Refused)?;
            self.versions.clear();
            self.text = Text::new();
        } else if self.patched {
            let found = GroupVersionKind::of(object);
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
            // A custom resource that became another kind is refused later, by its validation.
            let is_converted = found != *own && found.kind == own.kind;
            if is_converted {
                *object = self.state.convert(object, own).or_else(|error| self.answers.take(error))?;
            }
            let is_another = if built_in {
                !is_converted && self.state.pass_through_internal(object, &self.unpatched)
            } else if self.given_version == own.api_version() {
                false
            } else {
                // One that said to be of another version is refused later, too: it gets back what it said.
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

/// Refuses a custom resource that is `found` to be none of the group of `kind`.
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

/// `object` as JSON, which `text` is or becomes.
fn encoded<'t>(object: &Value, text: &'t Text) -> Result<&'t [u8], serde_json::Error> {
    if let Some(text) = text.get() {
        return Ok(text);
    }
    let mut new = Vec::with_capacity(OBJECT);
    serde_json::to_writer(&mut new, object)?;
    Ok(text.get_or_init(|| new))
}

/// As long as most objects are.
const OBJECT: usize = 4096;

/// The Go package of a group's internal types.
fn internal_package(group: &str) -> &str {
    if group.is_empty() { "core" } else { group.split('.').next().unwrap_or(group) }
}

#[cfg(test)]
mod tests;
