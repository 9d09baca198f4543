//! Answers which webhooks the server would call for a request that the user describes, without calling them.

use harness::attributes::{GroupVersionKind, Operation};
use harness::chain;
use harness::server::{ApiServer, impersonated_user};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::documents;
use crate::request_report::{WebhookReport, question};

/// The kinds of the configurations that the page shows.
const KINDS: [&str; 6] = [
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
];

/// Returns the stored webhook configurations and policies, without the fields that only the server uses.
pub(super) fn configurations(server: &ApiServer) -> Vec<Value> {
    let stored = KINDS.iter().flat_map(|kind| {
        server.stored_of_kind(&GroupVersionKind::new("admissionregistration.k8s.io", "v1", *kind))
    });
    stored
        .map(|object| {
            let mut object = (*object).clone();
            if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
                metadata.remove("managedFields");
            }
            object
        })
        .collect()
}

/// A request that was not sent.
#[derive(Debug, Deserialize)]
pub(super) struct Question {
    operation: Operation,
    /// The object as YAML or JSON.
    object: String,
    /// The user name; empty for an administrator.
    #[serde(default)]
    user: String,
    #[serde(default)]
    groups: Vec<String>,
}

/// The server's decision about each webhook.
#[derive(Debug, Serialize)]
pub(super) struct Answer {
    /// The webhooks in dispatch order. Those that the server would call are `called`.
    webhooks: Vec<WebhookReport>,
}

impl Question {
    /// Answers the question.
    ///
    /// # Errors
    /// Returns a message if the object is invalid, or the server does not serve its kind.
    pub(super) fn answer(self, server: &ApiServer) -> Result<Answer, String> {
        let documents =
            documents::of_text(self.object, "the object").map_err(|failure| failure.to_string())?;
        let Ok([document]) = <[_; 1]>::try_from(documents) else {
            return Err("the text contains more than one object".to_owned());
        };
        let user = match self.user.as_str() {
            "" => chain::administrator(),
            name => impersonated_user(name, self.groups),
        };
        let matches =
            server.match_webhooks(self.operation, document.object, user).map_err(|status| status.message)?;
        Ok(Answer { webhooks: question::webhooks(matches, server) })
    }
}
