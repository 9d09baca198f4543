//! Creates, updates, patches, deletes, gets, and lists objects of any kind, with admission.

pub(crate) mod admission;
pub(crate) mod answer;
pub(crate) mod apply;
pub(crate) mod authorization;
pub(crate) mod body;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod field_manager;
pub(crate) mod field_validation;
pub(crate) mod list_options;
mod object_types;
pub(crate) mod patches;
pub(crate) mod policies;
pub(crate) mod preconditions;
pub(crate) mod read;
pub(crate) mod request;
pub(crate) mod resource_versions;
pub(crate) mod selectors;
pub(crate) mod services;
pub(crate) mod spans;
pub(crate) mod state;
pub(crate) mod undecodable;
pub(crate) mod unknown_fields;
pub(crate) mod unsafe_deletion;
pub(crate) mod update;

use std::sync::{Arc, OnceLock};

use kubernetes_admission::authorizer::RBAC_GROUP;
use kubernetes_types::status::Status;

use self::admission::Admission;
use self::state::State;
use crate::apimachinery::limits::InFlightRequests;
use crate::kinds::apiextensions::{custom_resources, definition_deletion, definition_status};
use crate::kinds::core::service::allocation::ServiceAllocator;
use crate::kinds::discovery::custom;
use crate::kinds::discovery::{Resource, api_services};
use crate::kinds::rbac::aggregation;
use crate::kinds::service_account_tokens::authenticator::TokenAuthenticator;
use crate::kinds::{flow_control, webhook_configurations};
use crate::plugins::ObjectWriter;

/// The objects of a server and the state that requests for them share.
#[derive(Debug)]
pub(crate) struct Registry {
    pub(crate) state: Arc<State>,
    pub(crate) admission: Admission,
    pub(crate) services: ServiceAllocator,
    pub(crate) tokens: Arc<TokenAuthenticator>,
    pub(crate) in_flight: InFlightRequests,
    /// The server to which this registry belongs. Unset until the server has been created.
    pub(crate) own_server: OnceLock<Box<dyn OwnServer>>,
}

/// The server to which a registry belongs.
pub(crate) trait OwnServer: ObjectWriter {
    /// Starts the definition controllers if webhooks match their writes. Returns whether they run.
    ///
    /// If they do not run, the registry updates the definitions itself.
    fn starts_definition_controllers(&self) -> bool;
}

impl Registry {
    /// Updates the state of the server after a write of an object of this resource.
    pub(crate) fn has_changed(&self, resource: &Resource) -> Result<(), Box<Status>> {
        match (resource.gvr.group.as_str(), resource.gvr.resource.as_str()) {
            (
                webhook_configurations::GROUP,
                webhook_configurations::MUTATING | webhook_configurations::VALIDATING,
            ) => self.admission.reload_webhooks(),
            (
                webhook_configurations::GROUP,
                policies::VALIDATING
                | policies::VALIDATING_BINDINGS
                | policies::MUTATING
                | policies::MUTATING_BINDINGS,
            ) => self.admission.reload_policies(),
            (custom::GROUP, custom::RESOURCE) => {
                if !self.starts_definition_controllers() {
                    definition_status::reconcile(&self.state.storage);
                }
                api_services::reconcile(&self.state.storage);
                self.state.reload_resources();
                Ok(())
            }
            (api_services::GROUP, _) => {
                api_services::reconcile(&self.state.storage);
                self.state.reload_resources();
                Ok(())
            }
            ("", "services") | ("discovery.k8s.io", "endpointslices") => {
                if self.state.resources().has_remote_groups() && api_services::reconcile(&self.state.storage)
                {
                    self.state.reload_resources();
                }
                Ok(())
            }
            (flow_control::GROUP, _) => {
                flow_control::reconcile(&self.state.storage);
                Ok(())
            }
            (RBAC_GROUP, "clusterroles") => {
                aggregation::reconcile(&self.state.storage);
                Ok(())
            }
            _ => {
                let resources = self.state.resources();
                if resources
                    .get(&resource.gvr)
                    .is_some_and(|resource| custom_resources::is_terminating(resource))
                {
                    self.finish_definitions();
                }
                Ok(())
            }
        }
    }

    /// Deletes the objects of terminating definitions, then the definitions without objects.
    pub(crate) fn finish_definitions(&self) {
        if !self.starts_definition_controllers() {
            definition_deletion::finish(&self.state.storage);
            definition_status::reconcile(&self.state.storage);
        }
        api_services::reconcile(&self.state.storage);
        self.state.reload_resources();
    }

    fn starts_definition_controllers(&self) -> bool {
        self.own_server.get().is_some_and(|server| server.starts_definition_controllers())
    }
}
