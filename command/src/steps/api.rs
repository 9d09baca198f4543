//! Sends requests to the server and reads the responses, without the abstractions of a client library.

use harness::status::UNSUPPORTED_PREFIX;
use http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::Value;
use uuid::Uuid;

use super::failure::{Outcome, StepFailure};
use super::invalid_fields;
use crate::yaml_types;

/// A response from the API server.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The HTTP status.
    pub(crate) code: StatusCode,
    /// The object or the `Status`.
    pub(crate) body: Value,
    /// The text of each `Warning` header.
    pub(crate) warnings: Vec<String>,
    /// The audit ID that was sent with the request.
    pub(crate) audit_id: String,
}

/// The impersonated user of a request, and whether the request is a dry run.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestOptions {
    /// Whether the server stores the object.
    pub(crate) effect: Effect,
    /// The user to impersonate; if `None`, the client's own user sends the request.
    pub(crate) user: Option<String>,
    /// The groups of the impersonated user.
    pub(crate) groups: Vec<String>,
}

/// Whether the server stores an object after admission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The object is stored.
    #[default]
    Stored,
    /// The object is not stored, because the request has `dryRun=All`.
    DryRun,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchFormat {
    /// A JSON Merge Patch (RFC 7396).
    Merge,
    /// A JSON Patch (RFC 6902).
    Json,
    /// A strategic merge patch.
    Strategic,
    /// A server-side apply.
    Apply,
}

impl PatchFormat {
    /// Returns [`Self::Json`] for a list and [`Self::Merge`] for any other patch.
    pub(crate) fn detect(patch: Option<&Value>) -> Self {
        if patch.is_some_and(Value::is_array) { Self::Json } else { Self::Merge }
    }

    /// Returns the media type for a request with this patch format.
    ///
    /// Source: apimachinery pkg/types/patch.go
    fn media_type(self) -> &'static str {
        match self {
            Self::Merge => "application/merge-patch+json",
            Self::Json => "application/json-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
            Self::Apply => "application/apply-patch+yaml",
        }
    }
}

impl Answer {
    /// Returns whether the request succeeded.
    pub(crate) fn is_success(&self) -> bool {
        self.code.is_success()
    }

    /// Returns the `reason` of the `Status`, or an empty string if the response does not have one.
    pub(crate) fn reason(&self) -> &str {
        self.body.get("reason").and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the `message` of the `Status`, or an empty string if the response does not have one.
    pub(crate) fn message(&self) -> &str {
        self.body.get("message").and_then(Value::as_str).unwrap_or_default()
    }

    /// Formats the decision on one line, such as `201 Created` or `403 Forbidden: …`.
    ///
    /// The word after the code of a rejection is the `reason` of the `Status`, not the text of the HTTP status.
    pub(crate) fn decision(&self) -> String {
        if self.is_success() {
            return self.code.to_string();
        }
        let reason = match self.reason() {
            "" => "(no reason)",
            reason => reason,
        };
        format!("{} {reason}: {}", self.code.as_u16(), self.message())
    }

    /// Returns the response unless it states that admit does not support the request.
    ///
    /// # Errors
    /// Returns an error if the request uses a feature that admit does not support, so the response proves nothing about
    /// a webhook.
    pub(crate) fn supported(self) -> Outcome<Self> {
        if self.message().starts_with(UNSUPPORTED_PREFIX) {
            Err(StepFailure::new(self.message()))
        } else {
            Ok(self)
        }
    }

    /// Returns the response if the request succeeded.
    ///
    /// # Errors
    /// Returns an error if the server rejected the request.
    pub(crate) fn successful(self) -> Outcome<Self> {
        if self.is_success() {
            return Ok(self);
        }
        let help = yaml_types::help(self.message(), None).or_else(|| invalid_fields::unknown_fields(&self));
        Err(StepFailure::new(self.decision()).with_help(help))
    }

    /// Returns the response if the request succeeded, or if the object already exists.
    ///
    /// # Errors
    /// Returns an error if the server rejected the request for another reason.
    pub(crate) fn successful_or_exists(self) -> Outcome<Self> {
        if self.code == StatusCode::CONFLICT { Ok(self) } else { self.successful() }
    }
}

/// Sends an auxiliary request as the client's own user.
pub(crate) async fn send(
    client: &kube::Client,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> Outcome<Answer> {
    send_as(client, &RequestOptions::default(), method, path, body, None).await
}

/// Sends a request with the given options; `format` is the patch format of `body`.
pub(crate) async fn send_as(
    client: &kube::Client,
    options: &RequestOptions,
    method: Method,
    path: &str,
    body: Option<&Value>,
    format: Option<PatchFormat>,
) -> Outcome<Answer> {
    let audit_id = Uuid::new_v4().to_string();
    let uri = match options.effect {
        Effect::Stored => path.to_owned(),
        Effect::DryRun if path.contains('?') => format!("{path}&dryRun=All"),
        Effect::DryRun => format!("{path}?dryRun=All"),
    };
    let content_type = format.map_or("application/json", PatchFormat::media_type);
    let mut request = Request::builder()
        .method(method)
        .uri(uri)
        .header(header::ACCEPT, "application/json")
        .header(header::CONTENT_TYPE, content_type)
        .header("Audit-ID", &audit_id);
    if let Some(user) = &options.user {
        request = request.header("Impersonate-User", user);
    }
    for group in &options.groups {
        request = request.header("Impersonate-Group", group);
    }
    let bytes = body.map(serde_json::to_vec).transpose()?.unwrap_or_default();
    let (client, request) = (client.clone(), request.body(Body::from(bytes))?);
    // All scenarios share one task, and in process the server runs in the task of its client.
    let (parts, bytes) = tokio::spawn(async move {
        let (parts, body) = client.send(request).await?.into_parts();
        let bytes = body.collect().await?.to_bytes();
        Ok::<_, kube::Error>((parts, bytes))
    })
    .await??;
    let warnings = parts.headers.get_all(header::WARNING);
    let warnings = warnings.iter().filter_map(|value| std::str::from_utf8(value.as_bytes()).ok());
    Ok(Answer {
        code: parts.status,
        body: serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned())),
        warnings: warnings.filter_map(harness::warnings::decode).collect(),
        audit_id,
    })
}
