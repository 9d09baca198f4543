//! Executes a request for an object after its body has been read.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use kubernetes_admission::attributes::UserInfo;
use kubernetes_admission::authorizer::Authorizer;
use kubernetes_admission::event::Record;
use kubernetes_admission::trace_context::TraceContext;
use kubernetes_types::budget::Reservation;
use kubernetes_types::schema::EmptyFields;
use kubernetes_types::status::Status;
use tokio::time::Instant;

use super::answer::ResponseContent;
use super::context::Server;
use super::outcome::Outcome;
use crate::apimachinery::client_disconnect::ClientDisconnect;
use crate::apimachinery::query::Query;
use crate::endpoints::watch;
use crate::registry::admission::{RequestAdmission, SkipReasons};
use crate::registry::request::{BodyRetention, ObjectRequest};
use crate::registry::request::{Target, Verb};
use crate::registry::{create, delete, read, update};
use crate::subresources::{connect, reviews};

/// A complete request with all the state for executing it on any thread.
pub(crate) struct PreparedRequest {
    pub(crate) server: Arc<Server>,
    pub(crate) authorizer: Arc<dyn Authorizer>,
    pub(crate) verb: Verb,
    pub(crate) target: Target,
    pub(crate) query: Query,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) user: UserInfo,
    pub(crate) keep: BodyRetention,
    pub(crate) reservation: Reservation,
    pub(crate) started: Instant,
    pub(crate) deadline: Instant,
    pub(crate) client_disconnect: Option<Arc<ClientDisconnect>>,
}

impl PreparedRequest {
    pub(crate) async fn run(self) -> Outcome {
        let Self { server, verb, started, deadline, .. } = &self;
        let (server, verb) = (Arc::clone(server), *verb);
        let deprecation = self.target.resource.deprecation().map(str::to_owned);
        let admitting = RequestAdmission {
            admission: &server.registry.admission,
            started: *started,
            deadline: *deadline,
            trace: TraceContext::from_request(&self.headers).with_spans(server.options.spans.clone()),
            reasons: match (self.keep, &server.options.record) {
                (BodyRetention::Nothing, None) => SkipReasons::Omitted,
                (BodyRetention::Nothing, Some(_)) | (BodyRetention::Body | BodyRetention::Observed, _) => {
                    SkipReasons::Recorded
                }
            },
            record: Record::default(),
            operation: None,
            client_disconnect: self.client_disconnect,
        };
        let mut request = ObjectRequest {
            registry: &server.registry,
            target: self.target,
            query: self.query,
            headers: self.headers,
            body: self.body,
            user: self.user,
            authorizer: &*self.authorizer,
            keep: self.keep,
            reservation: self.reservation,
            decoded: None,
            sent: None,
            empty_fields: EmptyFields::default(),
            early_warnings: deprecation.iter().cloned().collect(),
            warnings: Vec::new(),
            annotations: BTreeMap::new(),
            admitting,
        };
        let answered = dispatch(verb, &server, &mut request).await;
        let ObjectRequest {
            decoded,
            sent,
            reservation,
            early_warnings,
            warnings,
            annotations,
            admitting,
            ..
        } = request;
        Outcome {
            is_deprecated: deprecation.is_some(),
            decoded,
            sent,
            admitted: admitting.operation,
            early_warnings,
            warnings,
            annotations,
            record: admitting.record,
            reservation: Some(reservation),
            ..Outcome::new(answered)
        }
    }
}

/// Calls the handler of a request for a built-in or a custom resource.
///
/// The future of each verb is boxed. Otherwise, every request would need as much stack as the largest verb, multiplied
/// by the depth of nested requests.
///
/// Rule: CHN-12.
async fn dispatch(
    verb: Verb,
    server: &Server,
    request: &mut ObjectRequest<'_>,
) -> Result<ResponseContent, Box<Status>> {
    let answer = match verb {
        Verb::List if read::is_watch(&request.query) => return watch::watch(server, request),
        Verb::Get => Box::pin(read::get(request)).await,
        Verb::List => Box::pin(read::list(request)).await,
        Verb::Create if !request.target.subresource.is_empty() => {
            Box::pin(connect::create_subresource(request)).await
        }
        Verb::Create if reviews::is_review(&request.target.resource) => {
            Box::pin(reviews::create(request)).await
        }
        Verb::Create => Box::pin(create::create(request)).await,
        Verb::Update => Box::pin(update::update(request)).await,
        Verb::Patch => Box::pin(update::patch(request)).await,
        Verb::Delete => Box::pin(delete::delete(request)).await,
        Verb::DeleteCollection => Box::pin(delete::delete_collection(request)).await,
        Verb::Connect => Box::pin(connect::connect(request)).await,
    };
    Ok(answer?.without_hidden_fields(&request.target).into())
}
