//! Explains how to fix a request that the server rejected before admission.

use super::invalid_fields::unknown_fields;
use super::world::World;
use crate::yaml_types;

impl World {
    /// Explains how to fix the last request, if it failed for a known reason other than a webhook.
    pub(super) fn request_hint(&self) -> Option<String> {
        if let Some(name) = self.missing_namespace() {
            let create = format!(
                "create the namespace with the step `webhooks are also called in the namespace \"{name}\"`, or as \
                 an object that exists"
            );
            return Some(match self.similar_namespace(name) {
                Some(similar) => format!("did you mean the namespace \"{similar}\"? Otherwise, {create}"),
                None => create,
            });
        }
        self.last.as_ref().filter(|answer| !answer.is_success()).and_then(|answer| {
            // A webhook's patch with a wrong type is a 500.
            let wrong_type = yaml_types::help(answer.message(), None).filter(|_| answer.code == 400);
            wrong_type.or_else(|| unknown_fields(answer))
        })
    }
}
