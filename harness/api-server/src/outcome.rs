//! The result of a request.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubernetes_admission::attributes::{Operation, UserInfo};
use kubernetes_admission::authorizer::AccessDecision;
use kubernetes_admission::event::Record;
use kubernetes_types::budget::Reservation;
use kubernetes_types::status::Status;
use serde_json::Value;
use tracing::Span;

use super::Server;
use super::accept::MediaType;
use super::answer::Answer;
use super::audit_log::Stage;
use super::authentication::Identity;

/// The parts of a request that are kept for the audit log, records, and observers.
#[derive(Clone, Copy, Debug)]
pub(super) enum BodyRetention {
    /// The body as sent and as decoded, and the response.
    Observed,
    /// The decoded body.
    Body,
    /// Nothing in addition to the data that the response needs.
    Nothing,
}

impl BodyRetention {
    /// Returns the retention for the audit log: `Nothing` if the server does not have an audit log.
    pub(super) fn for_audit(server: &Server) -> Self {
        if server.options.audit.is_some() { Self::Body } else { Self::Nothing }
    }
}

/// The result of a request with the data for the audit log.
pub(super) struct Outcome {
    pub(super) answered: Result<Answer, Box<Status>>,
    /// The encoding of a response that is not an error.
    pub(super) media_type: MediaType,
    pub(super) stage: Stage,
    /// The client; `None` if it could not be authenticated.
    pub(super) identity: Option<Identity>,
    /// The authorization decision; `None` if the request failed earlier.
    pub(super) decision: Option<AccessDecision>,
    /// Whether the resource is deprecated.
    pub(super) is_deprecated: bool,
    pub(super) decoded: Option<Value>,
    /// The object as the client sent it, if retained.
    pub(super) sent: Option<Value>,
    /// The operation of the first admission; `None` if the request did not reach admission.
    pub(super) admitted: Option<Operation>,
    /// The object in the response before content negotiation, if retained.
    pub(super) object: Option<Arc<Value>>,
    /// Warnings of the server that precede the warnings of webhooks.
    pub(super) early_warnings: Vec<String>,
    /// Warnings of the server that follow the warnings of webhooks.
    pub(super) warnings: Vec<String>,
    /// The audit annotations that admission did not add.
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) record: Record,
    /// The request's share of the memory budget.
    pub(super) reservation: Option<Reservation>,
    /// The span of the operation, which ends when the response is encoded.
    pub(super) operation: Span,
}

impl Outcome {
    /// Creates the result of a request that did not call webhooks.
    pub(super) fn new(answered: Result<Answer, Box<Status>>) -> Self {
        Self {
            // The response of a watch has only started.
            stage: match answered {
                Ok(Answer::Watch(_)) => Stage::ResponseStarted,
                Ok(_) | Err(_) => Stage::ResponseComplete,
            },
            media_type: MediaType::Json,
            identity: None,
            decision: None,
            is_deprecated: false,
            decoded: None,
            sent: None,
            admitted: None,
            object: None,
            early_warnings: Vec::new(),
            warnings: Vec::new(),
            annotations: BTreeMap::new(),
            record: Record::default(),
            reservation: None,
            operation: Span::none(),
            answered,
        }
    }

    /// Sets the encoding of the response, or of its events.
    pub(super) fn encode_as(&mut self, media_type: MediaType) {
        self.media_type = media_type;
        if let Ok(Answer::Watch(watch)) = &mut self.answered {
            watch.encode_as(media_type);
        }
    }

    /// Keeps the object of the response if `keep` requires it.
    pub(super) fn keep_object(&mut self, keep: BodyRetention) {
        if let BodyRetention::Observed = keep {
            self.object = match &self.answered {
                Ok(Answer::Object(_, object)) => Some(Arc::clone(object)),
                Ok(Answer::Stored(_, stored)) => Some(stored.object()),
                Ok(_) | Err(_) => return,
            };
        }
    }

    /// Creates the result of a request that failed because of its headers or query, with the user if known.
    pub(super) fn refused(status: Box<Status>, user: Option<UserInfo>) -> Self {
        let stage = if user.is_some() { Stage::ResponseComplete } else { Stage::ResponseStarted };
        Self { stage, identity: user.map(Identity::from_user), ..Self::new(Err(status)) }
    }
}
