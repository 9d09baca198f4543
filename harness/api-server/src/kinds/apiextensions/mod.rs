//! Implements `CustomResourceDefinition`s and the custom resources that they define.

pub(crate) mod approval_policy;
pub(crate) mod custom_resource_definition;
pub(crate) mod custom_resources;
pub(crate) mod custom_validation;
pub(crate) mod definition_conversion;
pub(crate) mod definition_deletion;
pub(crate) mod definition_status;
pub(crate) mod definition_update;
pub(crate) mod definitions;
pub(crate) mod selectable_fields;
