//! Creates, updates, patches, deletes, gets, and lists objects of any kind, with admission.

pub(crate) mod admission;
pub(crate) mod apply;
pub(crate) mod authorization;
pub(crate) mod body;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod field_manager;
pub(crate) mod field_validation;
pub(crate) mod list_options;
pub(crate) mod patches;
pub(crate) mod preconditions;
pub(crate) mod read;
pub(crate) mod resource_versions;
pub(crate) mod selectors;
pub(crate) mod state;
pub(crate) mod undecodable;
pub(crate) mod unsafe_deletion;
pub(crate) mod update;
