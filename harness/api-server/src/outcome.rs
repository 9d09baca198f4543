//! What a request came to.

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
use super::answer::Answer;
use super::audit_log::Stage;
use super::authentication::Identity;

/// What of a request is kept for whoever is told of it.
#[derive(Clone, Copy, Debug)]
pub(super) enum BodyRetention {
    /// The body, as it was sent and as it was read, and the answer.
    Observed,
    /// The body, as it was read.
    Body,
    /// No more than the answer needs.
    Nothing,
}

impl BodyRetention {
    /// What the audit log of a server needs, if it has one.
    pub(super) fn for_audit(server: &Server) -> Self {
        if server.options.audit.is_some() { Self::Body } else { Self::Nothing }
    }
}

/// What a request came to, and what is told of it.
pub(super) struct Outcome {
    pub(super) answered: Result<Answer, Box<Status>>,
    pub(super) stage: Stage,
    /// Who asks; none if that is not known.
    pub(super) identity: Option<Identity>,
    /// Whether the user may do it; none if it did not get as far as that.
    pub(super) decision: Option<AccessDecision>,
    /// Whether the resource is one that clients should not use any more.
    pub(super) is_deprecated: bool,
    pub(super) decoded: Option<Value>,
    /// The object as it was sent, if that is kept.
    pub(super) sent: Option<Value>,
    /// What admission was asked first.
    pub(super) admitted: Option<Operation>,
    /// The object of the answer, whatever form of it the client wants, if that is kept.
    pub(super) object: Option<Arc<Value>>,
    /// What the server itself warns of before webhooks do.
    pub(super) early_warnings: Vec<String>,
    /// What it warns of later.
    pub(super) warnings: Vec<String>,
    /// What the audit log says beside what admission does.
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) record: Record,
    /// What the request takes of the bytes that all requests share.
    pub(super) reservation: Option<Reservation>,
    /// The span of the operation, which lasts until the response is encoded.
    pub(super) operation: Span,
}

impl Outcome {
    /// Of a request that has met no webhook.
    pub(super) fn of(answered: Result<Answer, Box<Status>>) -> Self {
        Self {
            // What a watch answers has only begun.
            stage: match answered {
                Ok(Answer::Watch(_)) => Stage::ResponseStarted,
                Ok(_) | Err(_) => Stage::ResponseComplete,
            },
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

    /// Keeps the object of the answer, if somebody wants it.
    pub(super) fn keep_object(&mut self, keep: BodyRetention) {
        if let BodyRetention::Observed = keep {
            self.object = match &self.answered {
                Ok(Answer::Object(_, object)) => Some(Arc::clone(object)),
                Ok(Answer::Stored(_, stored)) => Some(stored.object()),
                Ok(_) | Err(_) => return,
            };
        }
    }

    /// Of a request that is refused for what its headers or its query say, by somebody or by nobody known.
    pub(super) fn refused(status: Box<Status>, user: Option<UserInfo>) -> Self {
        let stage = if user.is_some() { Stage::ResponseComplete } else { Stage::ResponseStarted };
        Self { stage, identity: user.map(Identity::of), ..Self::of(Err(status)) }
    }
}
