//! The server: its initial objects, loopback requests, and controllers.

pub(crate) mod cluster_fixture;
pub(crate) mod controllers;
pub(crate) mod definition_controllers;
pub(crate) mod in_process;
pub(crate) mod initial_objects;
pub(crate) mod loopback_requests;
pub(crate) mod manifests;
