//! Answers requests that create an object without storing it: access reviews, token reviews, and bindings.

use std::sync::Arc;

use http::StatusCode;
use kubernetes_admission::admission_run::AdmissionRun;
use kubernetes_types::status::{Status, Unsupported};
use serde_json::{Value, json};

use super::{access_review, binding, token_review};
use crate::apimachinery::metadata;
use crate::kinds::discovery::Resource;
use crate::registry::answer::Answer;
use crate::registry::request::ObjectRequest;
use crate::registry::{create, spans};

/// Returns whether the server answers a POST of this resource without storing the object.
pub(crate) fn is_review(resource: &Resource) -> bool {
    !resource.verbs.iter().any(|verb| verb == "get")
}

/// Admits and answers a review.
///
/// # Errors
/// Returns the Status that the client receives.
///
/// Source: kubernetes pkg/registry/authorization and pkg/registry/authentication.
pub(crate) async fn create(request: &mut ObjectRequest<'_>) -> Result<Answer, Box<Status>> {
    let new = create::decode(request).await?;
    let body_bytes = request.body.len();
    let answered = async {
        let (run, review) = create::mutate(request, new).await?;
        answer(request, run, review).await
    };
    let answered = answered.await;
    spans::wrote(body_bytes, &answered);
    answered
}

async fn answer<'a>(
    request: &mut ObjectRequest<'a>,
    mut run: AdmissionRun<'a>,
    review: Value,
) -> Result<Answer, Box<Status>> {
    let resource = run.attributes().resource.resource.clone();
    let is_of_access = run.attributes().resource.group == "authorization.k8s.io";
    if is_of_access {
        access_review::check(&resource, &review)?;
    } else if resource == "bindings" {
        binding::check(&review)?;
    } else if resource == "tokenreviews" {
        token_review::check(&review)?;
    }
    run.attributes_mut().object = Some(review);
    request.admitting.validate(&mut run).await?;
    let review = run.take_object().unwrap_or_default();
    if resource == "bindings" {
        return binding::bind(request, &review, run.attributes().dry_run);
    }
    let answer = if is_of_access {
        access_review::answer(&resource, review, &request.user, &*request.registry.state.authorizer)?
    } else if resource == "tokenreviews" {
        token_review::answer(review, &request.registry.tokens)?
    } else if resource == "selfsubjectreviews" {
        json!({
            "kind": review.get("kind"),
            "apiVersion": review.get("apiVersion"),
            "metadata": {"creationTimestamp": metadata::now()},
            "status": {"userInfo": request.user},
        })
    } else {
        let what = format!("creating {resource}");
        return Err(Box::new(Status::unsupported(&Unsupported { what })));
    };
    Ok(Answer::Object(StatusCode::CREATED, Arc::new(answer)))
}
