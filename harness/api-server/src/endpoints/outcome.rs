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

use super::accept::MediaType;
use super::answer::ResponseContent;
use super::audit_log::Stage;
use super::authentication::Identity;
use super::context::Server;
use crate::registry::request::BodyRetention;

/// Returns the bodies to keep for the audit log: `Nothing` if the server does not have an audit log.
pub(crate) fn retention_for_audit(server: &Server) -> BodyRetention {
    if server.options.audit.is_some() { BodyRetention::Body } else { BodyRetention::Nothing }
}

/// The details of a request that the response does not contain.
#[derive(Clone, Debug, Default)]
pub struct RequestTrace {
    /// The record of the admission plugins and webhooks that the server called.
    pub record: Record,
    /// The decoded body with the defaults of its version, as admission received it.
    ///
    /// `None` if the body is missing or could not be decoded.
    pub body: Option<Value>,
}

/// The result of a request, and the data for the audit log.
pub(crate) struct Outcome {
    pub(crate) answered: Result<ResponseContent, Box<Status>>,
    /// The encoding of a response that is not an error.
    pub(crate) media_type: MediaType,
    pub(crate) stage: Stage,
    /// The client; `None` if it could not be authenticated.
    pub(crate) identity: Option<Identity>,
    /// The authorization decision; `None` if the request failed earlier.
    pub(crate) decision: Option<AccessDecision>,
    /// Whether the resource is deprecated.
    pub(crate) is_deprecated: bool,
    pub(crate) decoded: Option<Value>,
    /// The object as the client sent it, if retained.
    pub(crate) sent: Option<Value>,
    /// The operation of the first admission run; `None` if the request did not reach admission.
    pub(crate) admitted: Option<Operation>,
    /// The object in the response before content negotiation, if retained.
    pub(crate) object: Option<Arc<Value>>,
    /// The server's warnings that precede the warnings from webhooks.
    pub(crate) early_warnings: Vec<String>,
    /// The server's warnings that follow the warnings from webhooks.
    pub(crate) warnings: Vec<String>,
    /// The audit annotations that admission did not add.
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) record: Record,
    /// The request's share of the memory budget.
    pub(crate) reservation: Option<Reservation>,
    /// The span of the operation. It ends when the response is encoded.
    pub(crate) operation: Span,
}

impl Outcome {
    /// Creates the result of a request that did not call webhooks.
    pub(crate) fn new(answered: Result<ResponseContent, Box<Status>>) -> Self {
        Self {
            // The response of a watch has only started.
            stage: match answered {
                Ok(ResponseContent::Watch(_)) => Stage::ResponseStarted,
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
    pub(crate) fn encode_as(&mut self, media_type: MediaType) {
        self.media_type = media_type;
        if let Ok(ResponseContent::Watch(watch)) = &mut self.answered {
            watch.encode_as(media_type);
        }
    }

    /// Keeps the object in the response if `keep` is [`BodyRetention::Observed`].
    pub(crate) fn keep_object(&mut self, keep: BodyRetention) {
        if let BodyRetention::Observed = keep {
            self.object = match &self.answered {
                Ok(ResponseContent::Object(_, object)) => Some(Arc::clone(object)),
                Ok(ResponseContent::Stored(_, stored)) => Some(stored.object()),
                Ok(_) | Err(_) => return,
            };
        }
    }

    /// Creates the result of a request with invalid headers or an invalid query; `user` is `None` if unknown.
    pub(crate) fn refused(status: Box<Status>, user: Option<UserInfo>) -> Self {
        let stage = if user.is_some() { Stage::ResponseComplete } else { Stage::ResponseStarted };
        Self { stage, identity: user.map(Identity::from_user), ..Self::new(Err(status)) }
    }
}
