//! Converts objects of one kind between versions for the field manager.

use std::cell::RefCell;

use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_admission::cluster_state::{Answers, ClusterState as _, ConversionError};
use kubernetes_managed_fields::{self as managed_fields, Type, Versions};
use kubernetes_types::schema;
use kubernetes_types::structural::AppliedType;
use serde_json::{Value, json};

use super::super::state::State;
use crate::kinds::discovery::Resources;

/// The versions of a kind, with the state that is required to convert objects between them.
///
/// Rule: APY-19.
pub(super) struct KindVersions<'a> {
    pub(super) state: &'a State,
    pub(super) resources: &'a Resources,
    pub(super) kind: &'a GroupVersionKind,
    pub(super) answers: &'a Answers,
    /// The error of the first conversion that could not be attempted. If it is set, the caller discards the result.
    pub(super) obstacle: RefCell<Option<ConversionError>>,
}

impl KindVersions<'_> {
    fn in_version(&self, api_version: &str) -> GroupVersionKind {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        GroupVersionKind::new(group, version, self.kind.kind.clone())
    }
}

impl<'a> Versions for KindVersions<'a> {
    type Schema = AppliedType<'a>;

    fn root(&self, api_version: &str) -> Option<Type<AppliedType<'a>>> {
        let kind = self.in_version(api_version);
        let resource = self.resources.of_kind(&kind);
        if let Some(custom) = resource.and_then(|resource| resource.custom.as_ref()) {
            return custom.schema.as_deref().ok().map(kubernetes_types::structural::Compiled::applied_type);
        }
        schema::is_known(&kind).then(|| AppliedType::for_kind(schema::Type::for_kind(&kind)))
    }

    /// Source: apiextensions-apiserver pkg/apiserver/conversion/converter.go, `ConvertToVersion`.
    /// Rule: APY-23.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, managed_fields::ConversionError> {
        use managed_fields::ConversionError::{Failed, UnknownVersion};

        let kind = self.in_version(api_version);
        let resource = self.resources.of_kind(self.kind);
        let is_custom = resource.is_some_and(|resource| resource.custom.is_some());
        if is_custom && kind.group != self.kind.group {
            let own = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
            let error = ConversionError::unsuitable(&self.in_version(own), &kind);
            return Err(Failed(error.to_string()));
        }
        if is_custom && self.resources.of_kind(&kind).is_none() {
            return Err(Failed(format!("request to convert CR to an invalid group/version: {api_version}")));
        }
        if self.root(api_version).is_none() {
            let why = format!("no kind \"{}\" is registered for version \"{api_version}\"", kind.kind);
            return Err(UnknownVersion(why));
        }
        let converted = self.state.convert(object, &kind).or_else(|error| self.answers.get(error));
        let mut converted = converted.map_err(|error| {
            let why = error.to_string();
            if !matches!(error, ConversionError::Refused(_)) {
                self.obstacle.borrow_mut().get_or_insert(error);
            }
            Failed(why)
        })?;
        // Restores removed fields that the Go type always has.
        drop(schema::normalize(&mut converted, &kind));
        Ok(converted)
    }

    fn empty(&self, api_version: &str) -> Value {
        let kind = self.in_version(api_version);
        let mut object = json!({"apiVersion": api_version, "kind": kind.kind});
        // Adds the fields that the Go type always has. A kind without a Go type does not have such fields.
        drop(schema::normalize(&mut object, &kind));
        object
    }
}
