//! Creates the events of the audit log: `Event` objects of `audit.k8s.io/v1`.

use std::collections::BTreeMap;
use std::net::IpAddr;

use axum::body::Body;
use futures::StreamExt as _;
use http::HeaderMap;
use jiff::Timestamp;
use kubernetes_admission::authorizer::AccessDecision;
use kubernetes_types::json::set;
use kubernetes_types::status::Status;
use serde_json::{Map, Value, json};

use super::audit_policy::Level;
use super::authentication::Identity;
use super::options::AuditSink;

/// The stage of a request at which an audit event is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The request was received.
    RequestReceived,
    /// The response has started. Logged for failed authentication and for long-running requests.
    ///
    /// A long-running request gets a second event when it ends.
    ResponseStarted,
    /// The response is complete.
    ResponseComplete,
}

impl Stage {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::RequestReceived => "RequestReceived",
            Self::ResponseStarted => "ResponseStarted",
            Self::ResponseComplete => "ResponseComplete",
        }
    }
}

/// A request and its response, with the data for an audit event.
#[derive(Clone, Debug)]
pub(crate) struct AnsweredRequest<'a> {
    /// The audit level. It determines which of the following fields the event contains.
    pub(crate) level: Level,
    /// The ID that [`audit_id`] returned for the request.
    pub(crate) audit_id: &'a str,
    /// The path and the query of the request.
    pub(crate) request_uri: &'a str,
    /// The API verb, such as `create` or `deletecollection`; for a non-resource path, the HTTP method in lowercase.
    pub(crate) verb: &'a str,
    /// The stage of the request that the event describes.
    pub(crate) stage: Stage,
    /// The client; `None` if it could not be authenticated.
    pub(crate) identity: Option<&'a Identity>,
    /// The addresses that [`source_ips`] returned for the request.
    pub(crate) source_ips: &'a [IpAddr],
    /// The `User-Agent` header; may be empty.
    pub(crate) user_agent: &'a str,
    /// The object of the request; `None` for a non-resource path.
    pub(crate) object: Option<ObjectReference<'a>>,
    pub(crate) code: u16,
    /// The Status in the response, for a failure or a deletion; `None` for any other response.
    pub(crate) status: Option<&'a Status>,
    /// The decoded request body: an object with its defaults, a patch, or delete options.
    pub(crate) request_object: Option<&'a Value>,
    /// The response body, if it is an object.
    pub(crate) response_object: Option<Value>,
    /// The time when the request was received.
    pub(crate) received: Timestamp,
    /// The time when the response was sent.
    pub(crate) completed: Timestamp,
    /// The authorization decision; `None` if the request failed before authorization.
    pub(crate) decision: Option<&'a AccessDecision>,
    /// The annotations that admission added.
    pub(crate) annotations: BTreeMap<String, String>,
}

/// Returns a body that sends the final event when the body ends or the client stops reading.
pub(crate) fn with_final_event(body: Body, end: FinalEvent) -> Body {
    Body::from_stream(body.into_data_stream().map(move |piece| {
        let _held = &end;
        piece
    }))
}

/// Sends the final event of a request when dropped.
pub(crate) struct FinalEvent {
    sink: AuditSink,
    event: Value,
}

impl FinalEvent {
    /// Creates the final event of a response that has started.
    pub(crate) fn new(sink: AuditSink, event: Value) -> Self {
        Self { sink, event }
    }
}

impl Drop for FinalEvent {
    fn drop(&mut self) {
        set(&mut self.event, &["stage"], "ResponseComplete");
        set(&mut self.event, &["stageTimestamp"], micro_time(Timestamp::now()));
        (self.sink)(&self.event);
    }
}

/// The `objectRef` of an event; empty fields are omitted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ObjectReference<'a> {
    pub(crate) resource: &'a str,
    /// The namespace; for a Namespace, the name of the Namespace.
    pub(crate) namespace: &'a str,
    /// The name of the object; for a creation, the name in the body.
    pub(crate) name: &'a str,
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) subresource: &'a str,
    /// The UID in the body of a creation or an update.
    pub(crate) uid: &'a str,
    /// The resource version in the body of a creation or an update.
    pub(crate) resource_version: &'a str,
}

/// The prefix of the annotations with webhooks' patches. Events below the level `Request` omit these annotations.
///
/// Source: apiserver pkg/admission/plugin/webhook/mutating/dispatcher.go, `annotateApplied…`.
const PATCH: &str = "patch.webhook.admission.k8s.io/";

/// Returns the audit event of a request.
///
/// Source: apiserver pkg/apis/audit/v1/types.go, `Event`; pkg/audit/request.go, `LogRequestObject`; for unauthenticated
/// clients, pkg/endpoints/filters/`authn_audit.go`, `WithFailedAuthenticationAudit`.
/// Rule: AUD-05, RBAC-10, RBAC-24.
pub(crate) fn event(answered: &AnsweredRequest<'_>) -> Value {
    let mut event = json!({
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": answered.level.as_str(),
        "stage": answered.stage.as_str(),
        "auditID": answered.audit_id,
        "requestURI": answered.request_uri,
        "verb": answered.verb,
        "user": {},
        "requestReceivedTimestamp": micro_time(answered.received),
        "stageTimestamp": micro_time(answered.completed),
    });
    if answered.stage != Stage::RequestReceived {
        set(&mut event, &["responseStatus"], response_status(answered));
    }
    if let Some(identity) = answered.identity {
        set(&mut event, &["user"], json!(identity.user));
    }
    if let Some(impersonated) = answered.identity.and_then(|identity| identity.impersonated.as_ref()) {
        set(&mut event, &["impersonatedUser"], json!(impersonated.user));
        if !impersonated.constraint.is_empty() {
            let constraint = json!({"impersonationConstraint": impersonated.constraint});
            set(&mut event, &["authenticationMetadata"], constraint);
        }
    }
    if !answered.source_ips.is_empty() {
        set(&mut event, &["sourceIPs"], json!(answered.source_ips));
    }
    if !answered.user_agent.is_empty() {
        set(&mut event, &["userAgent"], truncated(answered.user_agent));
    }
    if let Some(object) = &answered.object {
        set(&mut event, &["objectRef"], object_reference(object));
    }
    if let Some(object) = answered.request_object
        && answered.level >= Level::Request
    {
        set(&mut event, &["requestObject"], object.clone());
    }
    if let Some(object) = &answered.response_object
        && answered.level >= Level::RequestResponse
    {
        set(&mut event, &["responseObject"], object.clone());
    }
    let mut annotations = answered.annotations.clone();
    annotations.retain(|key, _| answered.level >= Level::Request || !key.starts_with(PATCH));
    if let Some(decision) = answered.decision {
        let word = if decision.is_allowed() { "allow" } else { "forbid" };
        annotations.insert("authorization.k8s.io/decision".to_owned(), word.to_owned());
        annotations.insert("authorization.k8s.io/reason".to_owned(), decision.reason.clone());
    }
    if !annotations.is_empty() {
        set(&mut event, &["annotations"], json!(annotations));
    }
    event
}

/// Returns the `Audit-ID` header of the request, or a new ID. The response has the same header.
///
/// Source: apiserver pkg/endpoints/filters/`audit_init.go`.
pub(crate) fn audit_id(headers: &HeaderMap) -> String {
    let chosen = headers.get("audit-id").and_then(|value| value.to_str().ok()).unwrap_or_default();
    if chosen.is_empty() { uuid::Uuid::new_v4().to_string() } else { chosen.to_owned() }
}

/// Returns the source addresses of a request: the addresses in the proxy headers, then the peer.
///
/// The list is empty for a request that did not arrive over a socket and has no proxy headers.
///
/// Source: apimachinery pkg/util/net/http.go, `SourceIPs`.
pub(crate) fn source_ips(headers: &HeaderMap, peer: Option<IpAddr>) -> Vec<IpAddr> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut addresses: Vec<IpAddr> =
        text("x-forwarded-for").split(',').filter_map(|part| part.trim().parse().ok()).collect();
    if let Ok(address) = text("x-real-ip").parse()
        && !addresses.contains(&address)
    {
        addresses.push(address);
    }
    if let Some(peer) = peer
        && addresses.last() != Some(&peer)
    {
        addresses.push(peer);
    }
    addresses
}

/// Returns the `responseStatus` of an event. A successful response that is not a Status has only a code.
fn response_status(answered: &AnsweredRequest<'_>) -> Value {
    let mut status =
        answered.status.and_then(|status| serde_json::to_value(status).ok()).unwrap_or_else(|| json!({}));
    if let Some(members) = status.as_object_mut() {
        members.remove("kind");
        members.remove("apiVersion");
        members.insert("metadata".to_owned(), json!({}));
        members.insert("code".to_owned(), json!(answered.code));
    }
    status
}

fn object_reference(object: &ObjectReference<'_>) -> Value {
    let members = [
        ("resource", object.resource),
        ("namespace", object.namespace),
        ("name", object.name),
        ("apiGroup", object.group),
        ("apiVersion", object.version),
        ("subresource", object.subresource),
        ("uid", object.uid),
        ("resourceVersion", object.resource_version),
    ];
    let present = members.into_iter().filter(|(_, text)| !text.is_empty());
    Value::Object(present.map(|(name, text)| (name.to_owned(), json!(text))).collect::<Map<_, _>>())
}

/// Source: apimachinery pkg/apis/meta/v1/`micro_time.go`, `RFC3339Micro`.
fn micro_time(time: Timestamp) -> String {
    format!("{time:.6}")
}

/// Source: apiserver pkg/audit/request.go, `maybeTruncateUserAgent`.
fn truncated(user_agent: &str) -> String {
    const MAX_USER_AGENT_LENGTH: usize = 1024;
    if user_agent.len() <= MAX_USER_AGENT_LENGTH {
        return user_agent.to_owned();
    }
    let begin = (0..=MAX_USER_AGENT_LENGTH).rev().find_map(|end| user_agent.get(..end)).unwrap_or_default();
    format!("{begin}...TRUNCATED")
}

#[cfg(test)]
mod tests {
    use kubernetes_admission::attributes::UserInfo;
    use kubernetes_admission::authorizer::Decision;

    use super::super::authorization::impersonation::Impersonated;
    use super::*;

    fn user(name: &str, uid: &str) -> UserInfo {
        UserInfo {
            username: name.to_owned(),
            uid: uid.to_owned(),
            groups: vec!["system:masters".to_owned(), "system:authenticated".to_owned()],
            ..UserInfo::default()
        }
    }

    static ALLOWED: AccessDecision =
        AccessDecision { decision: Decision::Allow, reason: String::new(), error: None };

    fn identity() -> Identity {
        Identity::from_user(user("admin", "admin-uid"))
    }

    fn answered(identity: &Identity) -> AnsweredRequest<'_> {
        AnsweredRequest {
            audit_id: "7e262b57-4061-4eb4-ad36-7e528dd0b9f4",
            request_uri: "/version",
            verb: "get",
            stage: Stage::ResponseComplete,
            identity: Some(identity),
            source_ips: &[IpAddr::V4(std::net::Ipv4Addr::LOCALHOST)],
            user_agent: "Python-urllib/3.11",
            object: None,
            code: 200,
            status: None,
            request_object: None,
            response_object: None,
            level: Level::Request,
            received: "2026-11-21T04:27:03.348602Z".parse().unwrap(),
            completed: "2026-11-21T04:27:03.35Z".parse().unwrap(),
            decision: Some(&ALLOWED),
            annotations: BTreeMap::new(),
        }
    }

    #[test]
    fn impersonated_creation_is_logged_like_upstream() {
        let impersonated = Impersonated { user: user("bob", ""), constraint: String::new() };
        let identity = Identity { impersonated: Some(impersonated), ..identity() };
        let object =
            json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "x"}, "data": {"a": "b"}});
        let told = event(&AnsweredRequest {
            request_uri: "/api/v1/namespaces/ns/configmaps",
            verb: "create",
            object: Some(ObjectReference {
                resource: "configmaps",
                namespace: "ns",
                name: "x",
                version: "v1",
                ..ObjectReference::default()
            }),
            code: 201,
            request_object: Some(&object),
            ..answered(&identity)
        });
        let server = r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Request",
            "auditID":"7e262b57-4061-4eb4-ad36-7e528dd0b9f4","stage":"ResponseComplete",
            "requestURI":"/api/v1/namespaces/ns/configmaps","verb":"create",
            "user":{"username":"admin","uid":"admin-uid","groups":["system:masters","system:authenticated"]},
            "impersonatedUser":{"username":"bob","groups":["system:masters","system:authenticated"]},
            "sourceIPs":["127.0.0.1"],"userAgent":"Python-urllib/3.11",
            "objectRef":{"resource":"configmaps","namespace":"ns","name":"x","apiVersion":"v1"},
            "responseStatus":{"metadata":{},"code":201},
            "requestObject":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x"},"data":{"a":"b"}},
            "requestReceivedTimestamp":"2026-11-21T04:27:03.348602Z","stageTimestamp":"2026-11-21T04:27:03.350000Z",
            "annotations":{"authorization.k8s.io/decision":"allow","authorization.k8s.io/reason":""}}"#;
        assert_eq!(told, serde_json::from_str::<Value>(server).unwrap());
    }

    #[test]
    fn failure_is_logged_with_its_status() {
        let status = Status::not_found("apps", "deployments", "d");
        let identity = identity();
        let told = event(&AnsweredRequest {
            object: Some(ObjectReference {
                resource: "deployments",
                namespace: "ns",
                name: "d",
                group: "apps",
                version: "v1",
                subresource: "scale",
                uid: "u",
                resource_version: "5",
            }),
            code: 404,
            status: Some(&status),
            ..answered(&identity)
        });
        let server = r#"{"metadata":{},"status":"Failure","message":"deployments.apps \"d\" not found",
            "reason":"NotFound","details":{"name":"d","group":"apps","kind":"deployments"},"code":404}"#;
        assert_eq!(told["responseStatus"], serde_json::from_str::<Value>(server).unwrap());
        let server = r#"{"resource":"deployments","namespace":"ns","name":"d","apiGroup":"apps","apiVersion":"v1",
            "subresource":"scale","uid":"u","resourceVersion":"5"}"#;
        assert_eq!(told["objectRef"], serde_json::from_str::<Value>(server).unwrap());
    }

    #[test]
    fn absent_fields_are_omitted() {
        let identity = identity();
        let told = event(&AnsweredRequest { source_ips: &[], user_agent: "", ..answered(&identity) });
        for field in ["objectRef", "requestObject", "impersonatedUser", "sourceIPs", "userAgent"] {
            assert_eq!(told.get(field), None, "{field}");
        }
    }

    #[test]
    fn unauthenticated_request_is_logged_without_user_and_decision() {
        let identity = identity();
        let told = event(&AnsweredRequest {
            stage: Stage::ResponseStarted,
            identity: None,
            decision: None,
            code: 401,
            ..answered(&identity)
        });
        assert_eq!(told["stage"], "ResponseStarted");
        assert_eq!(told["user"], json!({}));
        assert_eq!(told.get("annotations"), None);
    }

    #[test]
    fn denial_reason_and_impersonation_constraint_are_logged() {
        let impersonated =
            Impersonated { user: user("bob", ""), constraint: "impersonate:user-info".to_owned() };
        let identity = Identity { impersonated: Some(impersonated), ..identity() };
        let decision =
            AccessDecision { decision: Decision::NoOpinion, reason: "why".to_owned(), error: None };
        let told = event(&AnsweredRequest { decision: Some(&decision), code: 403, ..answered(&identity) });
        let server = r#"{"authorization.k8s.io/decision":"forbid","authorization.k8s.io/reason":"why"}"#;
        assert_eq!(told["annotations"], serde_json::from_str::<Value>(server).unwrap());
        assert_eq!(
            told["authenticationMetadata"],
            json!({"impersonationConstraint": "impersonate:user-info"})
        );
    }

    #[test]
    fn long_user_agent_is_truncated() {
        let identity = identity();
        let long = format!("{}é", "x".repeat(1023));
        let told = event(&AnsweredRequest { user_agent: &long, ..answered(&identity) });
        assert_eq!(told["userAgent"], format!("{}...TRUNCATED", "x".repeat(1023)));
    }

    #[test]
    fn client_can_set_the_audit_id() {
        let mut headers = HeaderMap::new();
        assert_ne!(audit_id(&headers), audit_id(&headers));
        headers.insert("audit-id", "mine".parse().unwrap());
        assert_eq!(audit_id(&headers), "mine");
    }

    #[test]
    fn peer_address_follows_proxy_addresses() {
        let mut headers = HeaderMap::new();
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        assert!(source_ips(&headers, None).is_empty());
        assert_eq!(source_ips(&headers, Some(address("::1"))), [address("::1")]);
        headers.insert("x-forwarded-for", "1.1.1.1, nonsense,2.2.2.2".parse().unwrap());
        headers.insert("x-real-ip", "1.1.1.1".parse().unwrap());
        assert_eq!(source_ips(&headers, Some(address("::1"))), ["1.1.1.1", "2.2.2.2", "::1"].map(address));
        assert_eq!(source_ips(&headers, Some(address("2.2.2.2"))), ["1.1.1.1", "2.2.2.2"].map(address));
    }
}
