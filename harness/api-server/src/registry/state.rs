//! The server state that the dispatcher uses.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use admission_webhook_client::{HttpsCaller, NoServices};
use kubernetes_admission::attributes::{GroupVersionKind, GroupVersionResource};
use kubernetes_admission::authorizer::{AlwaysAllow, Authorizer};
use kubernetes_admission::cluster_state::{
    ByWebhook, ClusterState, ConversionError, EquivalentResource, MergeError,
};
use kubernetes_admission::converter::Converter;
use kubernetes_admission::metrics::Metrics;
use kubernetes_managed_fields as managed_fields;
use kubernetes_types::schema;
use kubernetes_types::status::{FieldError, Unsupported};
use kubernetes_types::structural::Compiled;
use serde_json::Value;

use crate::apimachinery::metadata;
use crate::kinds::apiextensions::custom_resources;
use crate::kinds::conversion;
use crate::kinds::conversion::Strategy;
use crate::kinds::core::service::reading as service_reading;
use crate::kinds::defaulting;
use crate::kinds::defaulting::internal;
use crate::kinds::discovery::custom;
use crate::kinds::discovery::custom::CustomResourceInfo;
use crate::kinds::discovery::{Resource, Resources, api_services};
use crate::kinds::rbac::AuthorizationMode;
use crate::kinds::rbac::policies::StoredPolicies;
use crate::storage::{ObjectReader, Storage, StoredObject};

/// Stored objects and served resources.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) storage: Arc<Storage>,
    /// Calls the conversion webhooks.
    converter: Arc<Converter<HttpsCaller>>,
    /// Authorizes the actions of users.
    pub(crate) authorizer: Arc<dyn Authorizer>,
    /// The stored roles and bindings, whether or not the authorizer uses them.
    pub(crate) policies: Arc<StoredPolicies>,
    resources: RwLock<Arc<Resources>>,
    /// The custom resource definitions with their resources.
    definitions: Mutex<Vec<DefinedResources>>,
}

/// A definition and its resources.
type DefinedResources = (Arc<Value>, Vec<Arc<Resource>>);

impl State {
    pub(crate) fn new(
        storage: Arc<Storage>,
        mode: AuthorizationMode,
        converter: Arc<Converter<HttpsCaller>>,
    ) -> Self {
        let policies = Arc::new(StoredPolicies::new(Arc::clone(&storage)));
        let authorizer: Arc<dyn Authorizer> = match mode {
            AuthorizationMode::Rbac => Arc::clone(&policies) as Arc<dyn Authorizer>,
            AuthorizationMode::AlwaysAllow => Arc::new(AlwaysAllow),
        };
        Self {
            storage,
            converter,
            authorizer,
            policies,
            resources: RwLock::new(Arc::new(Resources::built_in())),
            definitions: Mutex::default(),
        }
    }

    /// Creates a state in which conversion webhooks cannot refer to Services.
    pub(crate) fn alone(storage: Arc<Storage>, mode: AuthorizationMode) -> Self {
        let caller = Arc::new(HttpsCaller::new(Arc::new(NoServices)));
        Self::new(storage, mode, Arc::new(Converter::new(caller, Metrics::default().conversions())))
    }

    /// Returns the currently served resources.
    pub(crate) fn resources(&self) -> Arc<Resources> {
        Arc::clone(&self.resources.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the conversion strategy for objects of this kind in any version.
    fn strategy(&self, kind: &GroupVersionKind) -> Strategy {
        let resources = self.resources();
        let of_kind = |resource: &&Arc<Resource>| {
            (&resource.kind.group, &resource.kind.kind) == (&kind.group, &kind.kind)
        };
        let custom = resources.all().iter().find(of_kind).and_then(|resource| resource.custom.as_ref());
        custom.map_or(Strategy::None, |custom| custom.conversion.clone())
    }

    /// Serves the resources of the stored custom resource definitions. Unchanged definitions are not parsed again.
    pub(crate) fn reload_resources(&self) {
        let mut known = self.definitions.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::take(&mut *known);
        let stored = self.storage.list(custom::GROUP, custom::RESOURCE, "");
        *known = stored.into_iter().map(|definition| defined(definition, &before)).collect();
        let custom = known.iter().flat_map(|(_, resources)| resources).cloned();
        let resources = Arc::new(Resources::new(custom, api_services::stored(&self.storage)));
        *self.resources.write().unwrap_or_else(PoisonError::into_inner) = resources;
        // Watches of custom resources end if their definitions changed.
        self.storage.tell();
    }

    /// Returns whether the server still serves `resource` from the same specification of its definition.
    pub(crate) fn still_serves(&self, resource: &Resource) -> bool {
        let Some(custom) = &resource.custom else { return true };
        let resources = self.resources();
        let now = resources.get(&resource.gvr).and_then(|resource| resource.custom.as_ref());
        now.is_some_and(|now| now.served_since == custom.served_since)
    }

    /// Returns the custom resource definitions whose names are accepted.
    pub(crate) fn served_definitions(&self) -> Vec<Arc<Value>> {
        let known = self.definitions.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().filter(|(_, resources)| !resources.is_empty()).map(|(it, _)| Arc::clone(it)).collect()
    }

    /// Converts an object of `resource` to its storage version.
    ///
    /// # Errors
    /// Returns [`ConversionError`] if the versions differ and the conversion fails.
    pub(crate) async fn to_storage(
        &self,
        mut object: Value,
        resource: &Resource,
    ) -> Result<Value, ConversionError> {
        match self.kind_to_store(&mut object, resource) {
            Some(kind) => self.convert_and_coerce(&object, &kind).await,
            None => Ok(object),
        }
    }

    /// Converts an object as [`Self::to_storage`] does, but without calling a webhook.
    ///
    /// # Errors
    /// Returns [`ConversionError::ByWebhook`] if a webhook must convert the object, and the errors of
    /// [`Self::to_storage`].
    pub(crate) fn to_storage_at_once(
        &self,
        mut object: Value,
        resource: &Resource,
    ) -> Result<Value, ConversionError> {
        match self.kind_to_store(&mut object, resource) {
            Some(kind) => self.coerced(self.convert(&object, &kind)?, &kind),
            None => Ok(object),
        }
    }

    /// Normalizes `object` and returns the kind to which it must be converted before it is stored.
    fn kind_to_store(&self, object: &mut Value, resource: &Resource) -> Option<GroupVersionKind> {
        normalize_stored(object, resource);
        let kind = self.resources().storage_kind(resource);
        (GroupVersionKind::from_object(object) != kind).then_some(kind)
    }

    /// Returns whether a webhook converts objects from other versions to the version of `resource`.
    pub(crate) fn may_ask_webhook(resource: &Resource) -> bool {
        let by_webhook = |custom: &CustomResourceInfo| matches!(custom.conversion, Strategy::Webhook(_));
        resource.custom.as_ref().is_some_and(by_webhook)
    }

    /// Returns whether a webhook converts this object to the version of `resource`.
    pub(crate) fn asks_webhook(object: &Value, resource: &Resource) -> bool {
        Self::may_ask_webhook(resource) && GroupVersionKind::from_object(object) != resource.kind
    }

    /// Returns whether a webhook converts this stored object to the version of `resource`.
    pub(crate) fn asks_webhook_of_stored(stored: &StoredObject, resource: &Resource) -> bool {
        Self::may_ask_webhook(resource) && !stored.encoded().is_of(&resource.kind)
    }

    /// Calls the conversion webhook of a definition.
    ///
    /// # Errors
    /// Returns kube-apiserver's error for a failed conversion, or an error for a configuration that admit does not
    /// support.
    pub(crate) async fn ask_webhook(&self, asked: &ByWebhook) -> Result<Value, ConversionError> {
        self.converter.convert(asked).await
    }

    /// Converts an object to or from its storage version.
    ///
    /// Removes the fields of a custom resource that are not in the schema of the target version.
    ///
    /// Source: apiextensions-apiserver `pkg/apiserver/customresource_handler.go`, `schemaCoercingConverter`.
    /// Rule: CNV-08, SCH-03.
    async fn convert_and_coerce(
        &self,
        object: &Value,
        kind: &GroupVersionKind,
    ) -> Result<Value, ConversionError> {
        let converted = match self.convert(object, kind) {
            Err(ConversionError::ByWebhook(asked)) => self.ask_webhook(&asked).await?,
            done => done?,
        };
        self.coerced(converted, kind)
    }

    fn coerced(&self, mut converted: Value, kind: &GroupVersionKind) -> Result<Value, ConversionError> {
        if let Some(custom) = self.resources().of_kind(kind).and_then(|resource| resource.custom.as_ref()) {
            let refused = |error: FieldError| ConversionError::Refused(error.to_string());
            custom.schema()?.decode(&mut converted, false).map_err(refused)?;
        }
        Ok(converted)
    }

    /// Completes a stored object, so that it equals the object that clients read.
    ///
    /// Removes fields of custom resources that are not in the schema, and sets the defaults of the version.
    ///
    /// # Errors
    /// Returns an error if admit does not support a part of the schema.
    ///
    /// Source: apiextensions-apiserver `pkg/apiserver/customresource_handler.go`, `crdConversionRESTOptionsGetter`.
    pub(crate) fn complete_stored(&self, object: &mut Value) -> Result<(), Unsupported> {
        let resources = self.resources();
        let resource = resources.of_kind(&GroupVersionKind::from_object(object));
        if let Some(custom) = resource.and_then(|resource| resource.custom.as_ref()) {
            // Invalid metadata was dropped earlier.
            let _ = custom.schema()?.decode(object, true);
        }
        self.complete(object)
    }

    /// Applies [`Self::complete_stored`] to an object of `resource` from [`Self::to_storage`].
    ///
    /// Returns whether the object changed. A custom resource can change if it was written in a version other than the
    /// storage version or converted for mutating webhooks, because the result may have fields that are not in the
    /// schema.
    ///
    /// # Errors
    /// Returns an error if admit does not support a part of the schema.
    pub(crate) fn complete_written(
        &self,
        object: &mut Value,
        resource: &Resource,
    ) -> Result<bool, Unsupported> {
        let is_converted = GroupVersionKind::from_object(object) != resource.kind;
        // Normalization has already set the defaults.
        if is_stored_as_protobuf(resource) && !is_converted {
            return Ok(false);
        }
        let may_change = resource.custom.is_some() && (is_converted || Self::may_ask_webhook(resource));
        let before = may_change.then(|| object.clone());
        self.complete_stored(object)?;
        Ok(before.is_some_and(|before| before != *object))
    }

    /// Sets the defaults that the conversion through the internal type sets.
    ///
    /// # Errors
    /// Returns an error if admit does not support a part of the schema.
    pub(crate) fn complete(&self, object: &mut Value) -> Result<(), Unsupported> {
        self.complete_version(object)?;
        internal::through_internal(object);
        Ok(())
    }

    /// Applies [`Self::complete`] and ignores its error.
    ///
    /// The server later rejects an object with an unsupported schema, before storing it.
    pub(crate) fn complete_or_keep(&self, object: &mut Value) {
        let _ = self.complete(object);
    }

    /// Sets the defaults of the version of an object.
    fn complete_version(&self, object: &mut Value) -> Result<(), Unsupported> {
        let kind = GroupVersionKind::from_object(object);
        let resources = self.resources();
        if let Some(custom) = resources.of_kind(&kind).and_then(|resource| resource.custom.as_ref()) {
            return custom.schema()?.set_defaults(object);
        }
        defaulting::set_own_defaults(object);
        if kind.group == custom::GROUP && kind.kind == "CustomResourceDefinition" {
            custom_resources::set_defaults(object);
        }
        Ok(())
    }

    /// Converts a stored object in any version to the version of `resource`.
    ///
    /// Rule: CNV-15.
    ///
    /// # Errors
    /// Returns [`ConversionError`] if the versions differ and the conversion fails.
    pub(crate) async fn in_version_of(
        &self,
        stored: &Arc<Value>,
        resource: &Resource,
    ) -> Result<Arc<Value>, ConversionError> {
        match self.in_version_of_at_once(stored, resource) {
            Err(ConversionError::ByWebhook(asked)) => {
                let converted = self.ask_webhook(&asked).await?;
                self.coerced(converted, &resource.kind).map(Arc::new)
            }
            done => done,
        }
    }

    /// Returns whether a stored object is in the version of `resource` and complete, so that its text can be returned.
    pub(crate) fn is_served_as_stored(stored: &StoredObject, resource: &Resource) -> bool {
        let has_all = |custom: &CustomResourceInfo| {
            let lacks_status = || custom.schema().is_ok_and(Compiled::has_default_status);
            stored.version() >= custom.schema_since && !lacks_status()
        };
        stored.encoded().is_of(&resource.kind)
            && resource.custom.as_ref().is_none_or(has_all)
            && !service_reading::may_omit_fields(stored, resource)
    }

    /// Converts an object as [`Self::in_version_of`] does, but without calling a webhook.
    ///
    /// # Errors
    /// Returns [`ConversionError::ByWebhook`] if a webhook must convert the object, and the errors of
    /// [`Self::in_version_of`].
    pub(crate) fn in_version_of_at_once(
        &self,
        stored: &Arc<Value>,
        resource: &Resource,
    ) -> Result<Arc<Value>, ConversionError> {
        let is_same = GroupVersionKind::from_object(stored) == resource.kind;
        let Some(custom) = &resource.custom else {
            return if is_same {
                Ok(Arc::clone(stored))
            } else {
                self.convert(stored, &resource.kind).map(Arc::new)
            };
        };
        // An object stored with the current schema needs no changes.
        let stored_at: u64 = metadata::text(stored, "resourceVersion").parse().unwrap_or(u64::MAX);
        let mut read = Arc::clone(stored);
        let lacks_status =
            || stored.get("status").is_none() && custom.schema().is_ok_and(Compiled::has_default_status);
        // Decoding from storage sets the defaults of the stored version.
        let is_outdated = || {
            let resources = self.resources();
            let of_stored = resources.of_kind(&GroupVersionKind::from_object(stored));
            let of_stored = of_stored.and_then(|resource| resource.custom.as_ref());
            of_stored.is_some_and(|custom| stored_at < custom.schema_since)
        };
        if stored_at < custom.schema_since || lacks_status() || (!is_same && is_outdated()) {
            self.complete_stored(Arc::make_mut(&mut read))?;
        }
        if is_same {
            return Ok(read);
        }
        self.coerced(self.convert(&read, &resource.kind)?, &resource.kind).map(Arc::new)
    }
}

fn defined(definition: Arc<Value>, before: &[DefinedResources]) -> DefinedResources {
    let name = metadata::text(&definition, "name");
    let known = before.iter().find(|(known, _)| metadata::text(known, "name") == name);
    let resources = match known {
        Some((known, resources)) if Arc::ptr_eq(known, &definition) => resources.clone(),
        known => {
            let before = known.map(|(known, resources)| (&**known, resources.as_slice()));
            custom_resources::resources(&definition, before).into_iter().map(Arc::new).collect()
        }
    };
    (definition, resources)
}

/// Removes the fields of `object` that etcd does not store.
///
/// kube-apiserver stores custom resource definitions, API services, and custom resources as JSON, and all other objects
/// as protobuf.
///
/// Source: apiserver `pkg/server/storage/storage_codec.go`; apiextensions-apiserver and kube-aggregator `pkg/apiserver`.
/// Rule: KND-06.
pub(crate) fn normalize_stored(object: &mut Value, resource: &Resource) {
    if is_stored_as_protobuf(resource) {
        schema::normalize_stored(object);
        // Decoding sets the defaults of the version.
        defaulting::set_defaults(object);
    }
}

fn is_stored_as_protobuf(resource: &Resource) -> bool {
    let is_json = [custom::GROUP, "apiregistration.k8s.io"].contains(&resource.gvr.group.as_str());
    resource.custom.is_none() && !is_json
}

impl ClusterState for State {
    fn namespace(&self, name: &str) -> Option<Arc<Value>> {
        self.storage.get("", "namespaces", "", name)
    }

    /// Returns the resources that are equivalent to a resource, such as its other versions.
    ///
    /// Source: apimachinery pkg/runtime/mapper.go, `EquivalentResourcesFor`.
    /// Rule: SEL-11.
    fn equivalent_resources(
        &self,
        resource: &GroupVersionResource,
        subresource: &str,
    ) -> Arc<[EquivalentResource]> {
        self.resources().equivalent_resources(resource, subresource)
    }

    fn convert(&self, object: &Value, kind: &GroupVersionKind) -> Result<Value, ConversionError> {
        let from = GroupVersionKind::from_object(object);
        let resources = self.resources();
        let is_custom = |kind| resources.of_kind(kind).is_some_and(|resource| resource.custom.is_some());
        // Source: apiextensions-apiserver pkg/apiserver/conversion/converter.go, `Convert`.
        if (&from.group, &from.kind) == (&kind.group, &kind.kind) && is_custom(kind) && !is_custom(&from) {
            let version = from.api_version();
            let why = format!("request to convert CR from an invalid group/version: {version}");
            return Err(ConversionError::Refused(why));
        }
        let strategy = if self.is_built_in(&from) { Strategy::Scheme } else { self.strategy(&from) };
        conversion::convert(object, kind, strategy)
    }

    fn set_defaults(&self, object: &mut Value) {
        // If this fails, the server rejects the object later, before it is stored.
        let _ = self.complete_version(object);
    }

    /// Merges a configuration by the schema of a kind, as the OpenAPI document of its group and version declares it.
    ///
    /// The document does not declare the kinds of some subresources, such as `Scale` and `Eviction`.
    ///
    /// Source: apiserver pkg/admission/plugin/policy/mutating/patch/typeconverter.go; apimachinery
    /// pkg/util/managedfields/internal/typeconverter.go.
    /// Rule: MAP-04, MAP-14.
    fn merge_configuration(
        &self,
        live: &Value,
        configuration: &Value,
        kind: &GroupVersionKind,
    ) -> Result<Value, MergeError> {
        let resources = self.resources();
        let refused = |text: String| MergeError::Refused(text);
        if let Some(custom) = resources.of_kind(kind).and_then(|resource| resource.custom.as_ref()) {
            let of = custom.schema()?.applied_type();
            return managed_fields::merge_configuration(live, configuration, of).map_err(refused);
        }
        if !resources.documents(kind) {
            let why =
                format!("failed to convert patch object to typed object: no corresponding type for {kind}");
            return Err(MergeError::Refused(why));
        }
        let of = schema::applied(schema::Type::for_kind(kind));
        managed_fields::merge_configuration(live, configuration, of).map_err(refused)
    }

    fn preserves_unpatched(&self, kind: &GroupVersionKind) -> bool {
        internal::preserves_unpatched_fields(kind)
    }

    fn pass_through_internal(&self, object: &mut Value, before: &Value) -> bool {
        internal::into_internal(object, before)
    }

    fn is_built_in(&self, kind: &GroupVersionKind) -> bool {
        let resources = self.resources();
        let of_subresource = || {
            resources.all().iter().any(|r| r.subresources.iter().any(|subresource| subresource.kind == *kind))
        };
        match resources.of_kind(kind) {
            Some(resource) => resource.custom.is_none(),
            None => of_subresource(),
        }
    }

    fn is_namespaced(&self, kind: &GroupVersionKind) -> Option<bool> {
        let resources = self.resources();
        let resource = resources.of_kind(kind).filter(|resource| resource.is_established())?;
        Some(resource.namespaced)
    }

    fn stored(&self, kind: &GroupVersionKind, namespace: &str, name: &str) -> Vec<Arc<Value>> {
        let resources = self.resources();
        let Some(resource) = resources.of_kind(kind) else { return Vec::new() };
        let (group, plural) = (resource.storage_group(), resource.gvr.resource.as_str());
        if name.is_empty() {
            self.storage.list(group, plural, namespace)
        } else {
            self.storage.get(group, plural, namespace, name).into_iter().collect()
        }
    }

    fn read_stored(
        &self,
        stored: &Arc<Value>,
        kind: &GroupVersionKind,
    ) -> Result<Arc<Value>, ConversionError> {
        let resources = self.resources();
        match resources.of_kind(kind) {
            Some(resource) => self.in_version_of_at_once(stored, resource),
            None => Ok(Arc::clone(stored)),
        }
    }
}
