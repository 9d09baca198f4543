//! Defines how admission reads the server's state: namespaces, equivalent resources, and versions of kinds.

use std::fmt;
use std::sync::Arc;

use kubernetes_managed_fields as managed_fields;
use kubernetes_types::quoting::quote;
use kubernetes_types::schema;
use kubernetes_types::status::Unsupported;
use serde_json::Value;

pub use crate::attributes::{GroupVersionKind, GroupVersionResource};
use crate::config::ConversionWebhook;

/// The server's state that admission depends on. All methods read from memory and do not perform I/O.
pub trait ClusterState: Send + Sync {
    /// Returns a stored Namespace; `None` if it does not exist.
    fn namespace(&self, name: &str) -> Option<Arc<Value>>;

    /// Returns the resources that share the stored objects of `resource`, including itself.
    ///
    /// The resources are in the order in which their versions were installed, each with its kind for `subresource`.
    ///
    /// Source: apimachinery pkg/runtime/mapper.go, `EquivalentResourceRegistry`.
    fn equivalent_resources(
        &self,
        resource: &GroupVersionResource,
        subresource: &str,
    ) -> Arc<[EquivalentResource]>;

    /// Converts `object` to the version of `kind`, with `apiVersion` and `kind` set.
    ///
    /// # Errors
    /// Returns [`ConversionError`] if the server or admit cannot convert the object, or if only a webhook can.
    fn convert(&self, object: &Value, kind: &GroupVersionKind) -> Result<Value, ConversionError>;

    /// Normalizes an object as its Go type would, and sets the defaults for its version.
    ///
    /// The scheme or the definition of the custom resource specifies the defaults.
    fn set_defaults(&self, object: &mut Value);

    /// Returns whether converting a patched object of this kind to its internal type needs the object before the patch.
    ///
    /// Some internal types keep parts of their previous state. For these types, [`Self::pass_through_internal`]
    /// receives the object before the patch.
    fn preserves_unpatched(&self, _kind: &GroupVersionKind) -> bool {
        false
    }

    /// Converts a patched built-in object to the internal type and back, and returns whether it may have changed.
    ///
    /// For example, this moves the `stringData` of a Secret to its `data`. `before` is the object before the patch, or
    /// null if [`Self::preserves_unpatched`] returns false for its kind.
    fn pass_through_internal(&self, _object: &mut Value, _before: &Value) -> bool {
        false
    }

    /// Merges the fields of `configuration` into `live`, as an apply configuration of an admission policy.
    ///
    /// Both objects are of `kind`. By default, values do not have declared types.
    ///
    /// # Errors
    /// Returns [`MergeError`] if the objects do not match the type of `kind`, or if the configuration contains an atomic
    /// value.
    fn merge_configuration(
        &self,
        live: &Value,
        configuration: &Value,
        _kind: &GroupVersionKind,
    ) -> Result<Value, MergeError> {
        managed_fields::merge_configuration(
            live,
            configuration,
            managed_fields::Type::<schema::Type>::Deduced,
        )
        .map_err(MergeError::Refused)
    }

    /// Returns whether `kind` is a built-in type rather than a custom resource.
    ///
    /// For built-in types, an absent map or list equals an empty one.
    fn is_built_in(&self, kind: &GroupVersionKind) -> bool;

    /// Returns whether `kind` is namespaced; `None` if the server does not serve the kind.
    fn is_namespaced(&self, _kind: &GroupVersionKind) -> Option<bool> {
        None
    }

    /// Returns the stored objects of `kind`, sorted by name, each in the version in which it is stored.
    ///
    /// An empty namespace selects the objects of all namespaces; an empty name selects all objects.
    fn stored(&self, _kind: &GroupVersionKind, _namespace: &str, _name: &str) -> Vec<Arc<Value>> {
        Vec::new()
    }

    /// Returns a stored object as a client would read it in the version of `kind`.
    ///
    /// # Errors
    /// Returns [`ConversionError`] if the object cannot be converted, or if a webhook must convert it first.
    fn read_stored(
        &self,
        stored: &Arc<Value>,
        _kind: &GroupVersionKind,
    ) -> Result<Arc<Value>, ConversionError> {
        Ok(Arc::clone(stored))
    }
}

/// A resource that shares its stored objects with another resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EquivalentResource {
    /// The resource that shares the stored objects.
    pub resource: Arc<GroupVersionResource>,
    /// The kind of the resource's objects; `None` if the resource does not have the requested subresource.
    pub kind: Option<Arc<GroupVersionKind>>,
}

/// The reason why an apply configuration cannot be merged into an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(clippy::exhaustive_enums, reason = "a match that forgets one must not compile")]
pub enum MergeError {
    /// kube-apiserver does not merge it. Contains its error message.
    #[error("{0}")]
    Refused(String),
    /// kube-apiserver supports the schema of the kind; admit does not.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
}

/// The reason why an object cannot be converted to another version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(clippy::exhaustive_enums, reason = "a match that forgets one must not compile")]
pub enum ConversionError {
    /// kube-apiserver cannot convert the object. Contains its converter's error message.
    #[error("{0}")]
    Refused(String),
    /// kube-apiserver supports the conversion; admit does not.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// The conversion webhook of the definition must be called first.
    #[error("unsupported: {0}")]
    ByWebhook(Box<ByWebhook>),
    /// Other requests use the memory that the conversion needs.
    #[error("too many requests, please try again later")]
    TooManyRequests,
}

impl ConversionError {
    /// Returns the converter's error for a custom resource if its group in `found` is not the group of `kind`.
    ///
    /// Source: apiextensions-apiserver pkg/apiserver/conversion/converter.go, `ConvertToVersion`.
    pub fn unsuitable(found: &GroupVersionKind, kind: &GroupVersionKind) -> Self {
        let version = quote(&kind.api_version());
        Self::Refused(format!("{found} is unstructured and is not suitable for converting to {version}"))
    }
}

/// A conversion that requires a call to a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a conversion has these parts")]
pub struct ByWebhook {
    /// The conversion webhook to call.
    pub webhook: Arc<ConversionWebhook>,
    /// The object before the conversion.
    pub object: Value,
    /// The kind and version to convert to.
    pub kind: GroupVersionKind,
}

impl fmt::Display for ByWebhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from = GroupVersionKind::from_object(&self.object);
        write!(f, "conversion of {from} to {} by {}", self.kind, self.webhook)
    }
}

impl From<&ByWebhook> for Unsupported {
    fn from(asked: &ByWebhook) -> Self {
        Self { what: asked.to_string() }
    }
}

/// The results of conversion webhooks. After a result is added, the operation that needed it runs again.
#[derive(Debug, Default)]
pub struct Answers(Vec<(ByWebhook, Result<Value, ConversionError>)>);

impl Answers {
    /// Adds the result of a conversion webhook.
    pub fn add(&mut self, asked: ByWebhook, answer: Result<Value, ConversionError>) {
        self.0.push((asked, answer));
    }

    /// Returns the result of the conversion that an `error` from [`ClusterState::convert`] requires.
    ///
    /// # Errors
    /// Returns the error of a failed conversion. Returns `error` itself if it does not require a conversion webhook, or
    /// if the result is missing.
    pub fn get(&self, error: ConversionError) -> Result<Value, ConversionError> {
        let found = self.position(&error).and_then(|index| self.0.get(index));
        found.map_or(Err(error), |(_, answer)| answer.clone())
    }

    /// Returns the result that [`Self::get`] would return, and removes it if the conversion succeeded.
    ///
    /// The next conversion of the same object calls the webhook again. A failure is kept until
    /// [`Self::forget_failures`].
    pub(crate) fn take(&mut self, error: ConversionError) -> Result<Value, ConversionError> {
        match self.position(&error) {
            Some(index) if self.0.get(index).is_some_and(|(_, answer)| answer.is_ok()) => {
                self.0.swap_remove(index).1
            }
            _ => self.get(error),
        }
    }

    /// Removes the failed conversions.
    pub(crate) fn forget_failures(&mut self) {
        self.0.retain(|(_, answer)| answer.is_ok());
    }

    fn position(&self, error: &ConversionError) -> Option<usize> {
        let ConversionError::ByWebhook(asked) = error else { return None };
        self.0.iter().position(|(known, _)| *known == **asked)
    }
}
