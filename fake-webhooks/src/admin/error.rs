//! Creates the error responses of the admin endpoint.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde_json::json;

use crate::FileError;
use crate::running::{BehaviorError, PutError, UnknownFake};
use crate::socket::TlsError;

/// An error response: a status and the body `{"error": MESSAGE}`.
#[derive(Debug)]
pub(super) struct ApiError {
    status: StatusCode,
    message: String,
}

impl ApiError {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        (self.status, Json(json!({"error": self.message}))).into_response()
    }
}

impl From<UnknownFake> for ApiError {
    fn from(unknown: UnknownFake) -> Self {
        Self::new(StatusCode::NOT_FOUND, unknown.to_string())
    }
}

impl From<BehaviorError> for ApiError {
    fn from(error: BehaviorError) -> Self {
        match error {
            BehaviorError::Unknown(unknown) => unknown.into(),
            BehaviorError::NeedsHttp1(_) | BehaviorError::NeedsClientCertificates(_) => {
                Self::bad_request(error.to_string())
            }
        }
    }
}

impl From<PutError> for ApiError {
    fn from(error: PutError) -> Self {
        let status = match &error {
            PutError::PathTaken(_) => StatusCode::CONFLICT,
            PutError::NoPort | PutError::Start(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.to_string())
    }
}

impl From<FileError> for ApiError {
    fn from(error: FileError) -> Self {
        Self::bad_request(error.to_string())
    }
}

impl From<TlsError> for ApiError {
    fn from(error: TlsError) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
    }
}

impl From<QueryRejection> for ApiError {
    fn from(rejection: QueryRejection) -> Self {
        Self::new(rejection.status(), rejection.body_text())
    }
}
