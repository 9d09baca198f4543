//! Handles a POST to `serviceaccounts/NAME/token`.

use std::sync::Arc;

use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use kubernetes_admission::admission_run::AdmissionRun;
use kubernetes_types::json;
use kubernetes_types::quoting::quote;
use kubernetes_types::status::{FieldError, Status, Unsupported};
use serde_json::{Value, json};

use crate::apimachinery::metadata;
use crate::kinds::service_account_tokens::TokenIssuer;
use crate::kinds::service_account_tokens::authenticate::credential_id;
use crate::kinds::service_account_tokens::claims;
use crate::kinds::service_account_tokens::claims::{BoundObjects, Reference, Validity};
use crate::kinds::service_account_tokens::jwt;
use crate::registry::answer::Answer;
use crate::registry::request::ObjectRequest;
use crate::storage::ObjectReader as _;
use crate::subresources::connect;

const GROUP: &str = "authentication.k8s.io";
const KIND: &str = "TokenRequest";
/// The allowed lifetime of a token in seconds.
const EXPIRATION_SECONDS: std::ops::RangeInclusive<i64> = 600..=1 << 32;
/// The kinds to which tokens can be bound only with a feature gate that is off by default.
const WEBHOOK_CONFIGURATIONS: [&str; 2] = ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"];
/// The requested lifetime in seconds that identifies a Pod token. The server extends the lifetime of Pod tokens.
///
/// Source: kubernetes pkg/serviceaccount/claims.go, `WarnOnlyBoundTokenExpirationSeconds`.
const WARN_ONLY_BOUND_TOKEN_EXPIRATION_SECONDS: i64 = 3607;
/// The extended lifetime of a Pod token, in seconds.
const EXPIRATION_EXTENSION_SECONDS: i64 = 365 * 24 * 60 * 60;

/// Creates a token after mutating admission.
///
/// # Errors
/// Returns the Status that the client receives.
///
/// Source: kubernetes pkg/registry/core/serviceaccount/storage/token.go, `Create`.
/// Rule: TOK-01, TOK-02, TOK-03, TOK-04, TOK-05.
pub(crate) async fn create<'a>(
    request: &mut ObjectRequest<'a>,
    mut run: AdmissionRun<'a>,
) -> Result<Answer, Box<Status>> {
    let mut object = run.take_object().unwrap_or_default();
    let account = completed(&mut object, request)?;
    let now = Timestamp::now();
    metadata::set(&mut object, "creationTimestamp", api_time(now).into());
    json::set(&mut object, &["status"], json!({"token": "", "expirationTimestamp": null}));
    validate(&object)?;
    run.attributes_mut().object = Some(object);
    request.admitting.validate(&mut run).await?;
    let mut object = run.take_object().unwrap_or_default();

    let issuer = Arc::clone(&request.registry.tokens.issuer);
    let bound = bound(&object, request)?;
    let validity = validity(&mut object, &bound, request, &issuer, now);
    let audiences = json::at(&object, &["spec", "audiences"]);
    let id = uuid::Uuid::new_v4().to_string();
    let name = issuer.settings.issuers.first().map(String::as_str).unwrap_or_default();
    let claims = claims::claims(&account, &bound, name, audiences, validity, &id);
    let token = issuer.signing_key().and_then(|key| jwt::signed(&claims, key));
    let token = token
        .ok_or_else(|| Status::internal_error("failed to generate token: no random numbers available"))?;
    let asked = json::at(&object, &["spec", "expirationSeconds"]).as_i64().unwrap_or_default();
    let expires = now.checked_add(SignedDuration::from_secs(asked)).unwrap_or(Timestamp::MAX);
    json::set(&mut object, &["status"], json!({"token": token, "expirationTimestamp": api_time(expires)}));
    let annotation = "authentication.kubernetes.io/issued-credential-id".to_owned();
    request.annotations.insert(annotation, credential_id(&id));
    Ok(Answer::Object(StatusCode::CREATED, Arc::new(object)))
}

fn api_time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Checks the metadata of a token request and fills in omitted fields. Returns the service account.
///
/// Rule: TOK-01.
fn completed(object: &mut Value, request: &ObjectRequest<'_>) -> Result<Arc<Value>, Box<Status>> {
    let name = &request.target.name;
    for (field, expected) in [("name", name), ("namespace", &request.target.namespace)] {
        let found = metadata::text(object, field);
        if !found.is_empty() && found != expected {
            let why = format!("must match the service account {field} if specified");
            let error = FieldError::invalid(format!("metadata.{field}"), quote(found), why);
            return Err(Box::new(Status::invalid(GROUP, KIND, name, &[error])));
        }
    }
    let account = connect::existing(request)?;
    let (found, uid) = (metadata::text(object, "uid"), metadata::text(&account, "uid"));
    if !found.is_empty() && found != uid {
        let why = format!(
            "the UID in the token request ({found}) does not match the UID of the service account ({uid})"
        );
        return Err(Box::new(Status::conflict(GROUP, KIND, name, &why)));
    }
    if json::at(object, &["spec", "audiences"]).as_array().is_none_or(Vec::is_empty) {
        let audiences = request.registry.tokens.issuer.api_audiences();
        json::set(object, &["spec", "audiences"], json!(audiences));
    }
    for field in ["name", "namespace", "uid"] {
        metadata::set(object, field, metadata::text(&account, field).into());
    }
    Ok(account)
}

/// Validates a token request.
///
/// # Errors
/// Returns 422 for an invalid duration, or 501 for attestations.
///
/// Source: kubernetes pkg/apis/authentication/validation/validation.go, `ValidateTokenRequest`.
/// Rule: TOK-03.
pub(crate) fn validate(object: &Value) -> Result<(), Box<Status>> {
    let spec = json::at(object, &["spec"]);
    let kind = json::text(spec, &["boundObjectRef", "kind"]);
    let of_webhook = WEBHOOK_CONFIGURATIONS.contains(&kind)
        && json::text(spec, &["boundObjectRef", "apiVersion"]) == "admissionregistration.k8s.io/v1";
    if of_webhook || json::at(spec, &["attestations"]).as_object().is_some_and(|it| !it.is_empty()) {
        let what = "API server tokens for webhooks, with attestations".to_owned();
        return Err(Box::new(Status::unsupported(&Unsupported { what })));
    }
    let seconds = json::at(spec, &["expirationSeconds"]).as_i64().unwrap_or_default();
    let why = if seconds < *EXPIRATION_SECONDS.start() {
        "may not specify a duration less than 10 minutes"
    } else if seconds > *EXPIRATION_SECONDS.end() {
        "may not specify a duration larger than 2^32 seconds"
    } else {
        return Ok(());
    };
    let error = FieldError::invalid("spec.expirationSeconds", seconds, why);
    Err(Box::new(Status::invalid(GROUP, KIND, "", &[error])))
}

/// Returns the objects to which the token is bound.
///
/// Rule: TOK-04.
fn bound(object: &Value, request: &ObjectRequest<'_>) -> Result<BoundObjects, Box<Status>> {
    let reference = json::at(object, &["spec", "boundObjectRef"]);
    if !reference.is_object() {
        return Ok(BoundObjects::default());
    }
    let text = |field| json::text(reference, &[field]);
    let (group, version) = match text("apiVersion").split('/').collect::<Vec<_>>().as_slice() {
        [version] => ("", *version),
        [group, version] => (*group, *version),
        _ => ("", ""),
    };
    let (kind, name) = (text("kind"), text("name"));
    let storage = &request.registry.state.storage;
    let found = |resource: &str, namespace: &str| {
        if name.is_empty() {
            return Err(Box::new(Status::bad_request("Name parameter required.".to_owned())));
        }
        let stored = storage.get("", resource, namespace, name);
        stored.ok_or_else(|| Box::new(Status::not_found("", resource, name)))
    };
    let namespace = &request.target.namespace;
    let (bound, uid) = match (group, kind) {
        ("", "Pod") => {
            let pod = found("pods", namespace)?;
            let account = &request.target.name;
            if json::text(&pod, &["spec", "serviceAccountName"]) != account {
                return Err(Box::new(Status::bad_request(format!(
                    "cannot bind token for serviceaccount {} to pod running with different serviceaccount name.",
                    quote(account)
                ))));
            }
            let node = Some(json::text(&pod, &["spec", "nodeName"])).filter(|name| !name.is_empty());
            let node = node.map(|name| {
                let of_name = || Reference { name: name.to_owned(), uid: String::new() };
                storage.get("", "nodes", "", name).map_or_else(of_name, |node| Reference::from_object(&node))
            });
            let pod = Reference::from_object(&pod);
            let uid = pod.uid.clone();
            (BoundObjects { pod: Some(pod), node, ..BoundObjects::default() }, uid)
        }
        ("", "Node") => {
            let node = Reference::from_object(&*found("nodes", "")?);
            let uid = node.uid.clone();
            (BoundObjects { node: Some(node), ..BoundObjects::default() }, uid)
        }
        ("", "Secret") => {
            let secret = Reference::from_object(&*found("secrets", namespace)?);
            let uid = secret.uid.clone();
            (BoundObjects { secret: Some(secret), ..BoundObjects::default() }, uid)
        }
        _ => {
            let message = format!("cannot bind token to object of type {group}/{version}, Kind={kind}");
            return Err(Box::new(Status::bad_request(message)));
        }
    };
    if !text("uid").is_empty() && text("uid") != uid {
        let why = format!(
            "the UID in the bound object reference ({}) does not match the UID in record. The object might have been deleted and \
             then recreated",
            text("uid")
        );
        return Err(Box::new(Status::conflict(group, kind, name, &why)));
    }
    Ok(bound)
}

/// Returns the validity of the token. Shortens a lifetime above the maximum.
///
/// Rule: TOK-05.
fn validity(
    object: &mut Value,
    bound: &BoundObjects,
    request: &mut ObjectRequest<'_>,
    issuer: &TokenIssuer,
    now: Timestamp,
) -> Validity {
    let settings = &issuer.settings;
    let mut seconds = json::at(object, &["spec", "expirationSeconds"]).as_i64().unwrap_or_default();
    if let Some(most) = settings.max_expiration.filter(|most| seconds > *most) {
        let warning = format!("requested expiration of {seconds} seconds shortened to {most} seconds");
        request.warnings.push(warning);
        seconds = most;
        json::set(object, &["spec", "expirationSeconds"], most);
    }
    let audiences = json::at(object, &["spec", "audiences"]).as_array();
    let is_for_server = audiences.into_iter().flatten().all(|audience| {
        audience.as_str().is_some_and(|text| settings.api_audiences.iter().any(|known| known == text))
    });
    let is_extended = settings.extend_expiration
        && bound.pod.is_some()
        && seconds == WARN_ONLY_BOUND_TOKEN_EXPIRATION_SECONDS
        && is_for_server;
    if is_extended {
        return Validity { from: now, seconds: EXPIRATION_EXTENSION_SECONDS, warn_after: Some(seconds) };
    }
    Validity { from: now, seconds, warn_after: None }
}
