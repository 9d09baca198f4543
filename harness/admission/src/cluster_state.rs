//! What the server knows beside the request: namespaces, equivalent resources, versions of kinds.

use std::fmt;
use std::sync::Arc;

use kubernetes_types::quoting::quote;
use kubernetes_types::status::Unsupported;
use serde_json::Value;

pub use crate::attributes::{GroupVersionKind, GroupVersionResource};
use crate::config::ConversionWebhook;

/// What the server knows beside the request. All of it is in memory: nothing here does I/O.
pub trait ClusterState: Send + Sync {
    /// A stored Namespace; none if it does not exist.
    fn namespace(&self, name: &str) -> Option<Arc<Value>>;

    /// The resources that lead to the same stored objects as `resource`, itself included, in the order in
    /// which their versions were installed, and the kind that each has for `subresource`.
    ///
    /// Source: apimachinery pkg/runtime/mapper.go, `EquivalentResourceRegistry`.
    fn equivalent_resources(
        &self,
        resource: &GroupVersionResource,
        subresource: &str,
    ) -> Arc<[EquivalentResource]>;

    /// `object` in the version of `kind`, with `apiVersion` and `kind` set.
    ///
    /// # Errors
    /// [`ConversionError`] when the server cannot convert it, or admit cannot, or only a webhook can.
    fn convert(&self, object: &Value, kind: &GroupVersionKind) -> Result<Value, ConversionError>;

    /// Makes of an object of a type of the server what its Go type makes of it, and fills in what the scheme's or the
    /// custom resource's defaults say, in the version that `object` is in.
    fn set_defaults(&self, object: &mut Value);

    /// Whether the conversion of a patched object of `kind` into the server's internal object, which it replaces, leaves
    /// something of that as it was: [`Self::pass_through_internal`] needs that object then.
    fn keeps_what_was_there(&self, _kind: &GroupVersionKind) -> bool {
        false
    }

    /// Converts an object of a type of the server, which webhooks patched, into the server's internal object and back: the
    /// `stringData` of a Secret is in its `data` then. `before` is what was there, null unless
    /// [`Self::keeps_what_was_there`]. Whether the object may have changed.
    fn pass_through_internal(&self, _object: &mut Value, _before: &Value) -> bool {
        false
    }

    /// Whether `kind` is a type of the server, rather than a custom resource: only for those an absent and an
    /// empty map or list are the same.
    fn is_built_in(&self, kind: &GroupVersionKind) -> bool;
}

/// A resource that leads to the same stored objects as another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EquivalentResource {
    /// The resource.
    pub resource: Arc<GroupVersionResource>,
    /// The kind of its objects; none if the subresource has none there.
    pub kind: Option<Arc<GroupVersionKind>>,
}

/// Why an object cannot be had in another version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(clippy::exhaustive_enums, reason = "a match that forgets one must not compile")]
pub enum ConversionError {
    /// What kube-apiserver's converter says.
    #[error("{0}")]
    Refused(String),
    /// kube-apiserver can and admit cannot.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// The webhook of its definition converts it: who can call it has to ask it.
    #[error("unsupported: {0}")]
    ByWebhook(Box<ByWebhook>),
    /// Others have the memory that the conversion takes.
    #[error("too many requests, please try again later")]
    TooManyRequests,
}

impl ConversionError {
    /// What the converter of custom resources says of an object that is `found` to be of another group than `kind`.
    ///
    /// Source: apiextensions-apiserver pkg/apiserver/conversion/converter.go, `ConvertToVersion`.
    pub fn unsuitable(found: &GroupVersionKind, kind: &GroupVersionKind) -> Self {
        let version = quote(&kind.api_version());
        Self::Refused(format!("{found} is unstructured and is not suitable for converting to {version}"))
    }
}

/// A conversion for which a webhook has to be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a conversion has these parts")]
pub struct ByWebhook {
    /// Who converts it.
    pub webhook: Arc<ConversionWebhook>,
    /// The object as it is.
    pub object: Value,
    /// What it is to become.
    pub kind: GroupVersionKind,
}

impl fmt::Display for ByWebhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from = GroupVersionKind::of(&self.object);
        write!(f, "conversion of {from} to {} by {}", self.kind, self.webhook)
    }
}

impl From<&ByWebhook> for Unsupported {
    fn from(asked: &ByWebhook) -> Self {
        Self { what: asked.to_string() }
    }
}

/// What conversion webhooks answered: what needs a conversion is computed again once its answer is there.
#[derive(Debug, Default)]
pub struct Answers(Vec<(ByWebhook, Result<Value, ConversionError>)>);

impl Answers {
    /// Adds what the webhook made of an object, or why it made nothing of it.
    pub fn add(&mut self, asked: ByWebhook, answer: Result<Value, ConversionError>) {
        self.0.push((asked, answer));
    }

    /// The answer of the webhook that has to be asked, by what [`ClusterState::convert`] returned; `error` itself if that is
    /// something else or there is no such answer yet.
    ///
    /// # Errors
    /// As the answer, or `error`.
    pub fn get(&self, error: ConversionError) -> Result<Value, ConversionError> {
        let found = self.position(&error).and_then(|index| self.0.get(index));
        found.map_or(Err(error), |(_, answer)| answer.clone())
    }

    /// As [`Self::get`], of an answer that counts once: for the next conversion the webhook is asked again.
    pub(crate) fn take(&mut self, error: ConversionError) -> Result<Value, ConversionError> {
        match self.position(&error) {
            Some(index) => self.0.swap_remove(index).1,
            None => Err(error),
        }
    }

    fn position(&self, error: &ConversionError) -> Option<usize> {
        let ConversionError::ByWebhook(asked) = error else { return None };
        self.0.iter().position(|(known, _)| *known == **asked)
    }
}
