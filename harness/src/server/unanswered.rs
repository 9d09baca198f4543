//! Requests that are cut off: the client goes away, or the server ends, before there is an answer.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use axum::extract::ConnectInfo;
use http::header::USER_AGENT;
use http::request::Parts;
use jiff::Timestamp;

use super::AuditSink;
use super::audit_log::{self, Answered, ObjectReference, Stage};
use super::authentication::{Claim, Identity};
use super::request_info::RequestInfo;

/// Tells the audit log of a request when it is dropped before it is [forgotten](Self::forget): the future that would
/// have answered is gone.
///
/// Source: apiserver pkg/apis/audit/v1/types.go, `StageRequestReceived`.
pub(super) struct Unanswered<'a> {
    pub(super) sink: &'a AuditSink,
    pub(super) parts: &'a Parts,
    pub(super) info: &'a RequestInfo,
    pub(super) audit_id: &'a str,
    pub(super) received: Timestamp,
}

impl Unanswered<'_> {
    /// There is an answer, of which there will be an event.
    pub(super) fn forget(self) {
        std::mem::forget(self);
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        let Self { sink, parts, info, audit_id, received } = self;
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip());
        let identity = parts.extensions.get::<Claim>().map(|claim| Identity::of(claim.user.clone()));
        let user_agent = parts.headers.get(USER_AGENT).and_then(|value| value.to_str().ok());
        sink(&audit_log::event(&Answered {
            audit_id,
            request_uri: parts.uri.path_and_query().map_or("", http::uri::PathAndQuery::as_str),
            verb: &info.verb,
            stage: Stage::RequestReceived,
            identity: identity.as_ref(),
            source_ips: &audit_log::source_ips(&parts.headers, peer),
            user_agent: user_agent.unwrap_or_default(),
            object: info.object.as_ref().map(|object| ObjectReference {
                resource: &object.resource,
                namespace: &object.namespace,
                name: &object.name,
                group: &object.group,
                version: &object.version,
                subresource: &object.subresource,
                uid: "",
                resource_version: "",
            }),
            code: 0,
            status: None,
            request_object: None,
            received: *received,
            completed: *received,
            decision: None,
            annotations: BTreeMap::new(),
        }));
    }
}
