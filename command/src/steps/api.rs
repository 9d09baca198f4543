//! One request to the server and its answer, with nothing of either hidden by a client library.

use harness::status::NOT_IMITATED;
use http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::Value;
use uuid::Uuid;

use super::failure::{Outcome, StepFailure};

/// What the server answered.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The HTTP status.
    pub(crate) code: StatusCode,
    /// The object or the Status.
    pub(crate) body: Value,
    /// The texts of the `Warning` headers.
    pub(crate) warnings: Vec<String>,
    /// The Audit-ID that the request chose.
    pub(crate) audit_id: String,
}

/// Whose request it is, and whether it is a dry run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manner {
    /// Stored, or only admitted.
    pub(crate) effect: Effect,
    /// The user to impersonate; the client's own without.
    pub(crate) user: Option<String>,
    /// The groups of that user.
    pub(crate) groups: Vec<String>,
}

/// Whether the server stores what it admits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It does.
    #[default]
    Stored,
    /// It does not: `dryRun=All`.
    DryRun,
}

/// The format of a PATCH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchFormat {
    /// RFC 7396.
    Merge,
    /// RFC 6902.
    Json,
}

impl Answer {
    /// Whether the server did what it was asked to do.
    pub(crate) fn is_success(&self) -> bool {
        self.code.is_success()
    }

    /// `reason` of the Status, empty if there is none.
    pub(crate) fn reason(&self) -> &str {
        self.body.get("reason").and_then(Value::as_str).unwrap_or_default()
    }

    /// `message` of the Status, empty if there is none.
    pub(crate) fn message(&self) -> &str {
        self.body.get("message").and_then(Value::as_str).unwrap_or_default()
    }

    /// One line for people: `201 Created`, or `403 Forbidden: …`.
    pub(crate) fn decision(&self) -> String {
        if self.is_success() {
            return self.code.to_string();
        }
        let reason = match self.reason() {
            "" => self.code.canonical_reason().unwrap_or("without a reason"),
            reason => reason,
        };
        format!("{} {reason}: {}", self.code.as_u16(), self.message())
    }

    /// The answer, unless it is that admit does not imitate what was asked of it: that proves nothing about a webhook.
    ///
    /// # Errors
    /// What is not imitated.
    pub(crate) fn imitated(self) -> Outcome<Self> {
        if self.message().starts_with(NOT_IMITATED) {
            Err(StepFailure::new(self.message()))
        } else {
            Ok(self)
        }
    }

    /// The answer if it is a success.
    ///
    /// # Errors
    /// The server's refusal.
    pub(crate) fn successful(self) -> Outcome<Self> {
        if self.is_success() { Ok(self) } else { Err(StepFailure::new(self.decision())) }
    }

    /// The same, also if what was to be made is there already.
    ///
    /// # Errors
    /// Any other refusal of the server.
    pub(crate) fn successful_or_there(self) -> Outcome<Self> {
        if self.code == StatusCode::CONFLICT { Ok(self) } else { self.successful() }
    }
}

/// Sends a request that has no say in a scenario: as the client itself, stored.
pub(crate) async fn send(
    client: &kube::Client,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> Outcome<Answer> {
    send_as(client, &Manner::default(), method, path, body, None).await
}

/// Sends a request in a manner; `format` is that of `body` if `method` is PATCH.
pub(crate) async fn send_as(
    client: &kube::Client,
    manner: &Manner,
    method: Method,
    path: &str,
    body: Option<&Value>,
    format: Option<PatchFormat>,
) -> Outcome<Answer> {
    let audit_id = Uuid::new_v4().to_string();
    let uri = match manner.effect {
        Effect::Stored => path.to_owned(),
        Effect::DryRun if path.contains('?') => format!("{path}&dryRun=All"),
        Effect::DryRun => format!("{path}?dryRun=All"),
    };
    let content_type = match format {
        None => "application/json",
        Some(PatchFormat::Merge) => "application/merge-patch+json",
        Some(PatchFormat::Json) => "application/json-patch+json",
    };
    let mut request = Request::builder()
        .method(method)
        .uri(uri)
        .header(header::ACCEPT, "application/json")
        .header(header::CONTENT_TYPE, content_type)
        .header("Audit-ID", &audit_id);
    if let Some(user) = &manner.user {
        request = request.header("Impersonate-User", user);
    }
    for group in &manner.groups {
        request = request.header("Impersonate-Group", group);
    }
    let bytes = body.map(serde_json::to_vec).transpose()?.unwrap_or_default();
    let (client, request) = (client.clone(), request.body(Body::from(bytes))?);
    // All scenarios share one task. In process the server's own work is done by whoever sends the request.
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
