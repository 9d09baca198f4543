//! Webhooks that use kube and axum, based on kube's example `admission_controller.rs`.
//!
//! Usage: `webhook PORT FOLDER`; the directory contains `tls.crt` and `tls.key`.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use axum::routing::post;
use axum::{Json, Router};
use axum_server::tls_rustls::RustlsConfig;
use k8s_openapi::api::core::v1::{ConfigMap, Container, Pod};
use kube::core::admission::{AdmissionRequest, AdmissionResponse, AdmissionReview};
use kube::core::{DynamicObject, Resource};

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let [port, folder] =
        std::env::args().skip(1).collect::<Vec<_>>().try_into().map_err(|_| "PORT FOLDER")?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port.parse()?));
    let folder = PathBuf::from(folder);
    rustls::crypto::ring::default_provider().install_default().map_err(|_| "there is a provider already")?;
    let tls = RustlsConfig::from_pem_file(folder.join("tls.crt"), folder.join("tls.key")).await?;
    let app = Router::new()
        .route("/inject", post(async |Json(review)| answer(review, inject)))
        .route("/tags", post(async |Json(review)| answer(review, refuse_latest)))
        .route("/protect", post(async |Json(review)| answer(review, protect)));
    axum_server::bind_rustls(address, tls).serve(app.into_make_service()).await?;
    Ok(())
}

/// Answers a review. `decide` receives a response that allows the request, and may change it.
fn answer<T: Resource>(
    review: AdmissionReview<T>,
    decide: fn(&AdmissionRequest<T>, AdmissionResponse) -> Result<AdmissionResponse, Failure>,
) -> Json<AdmissionReview<DynamicObject>> {
    let request: AdmissionRequest<T> = match review.try_into() {
        Ok(request) => request,
        Err(error) => return Json(AdmissionResponse::invalid(error).into_review()),
    };
    let response = AdmissionResponse::from(&request);
    let response = decide(&request, response.clone()).unwrap_or_else(|error| response.deny(error));
    Json(response.into_review())
}

/// Adds a sidecar and an identifying label to the Pods that request the sidecar.
fn inject(
    request: &AdmissionRequest<Pod>,
    response: AdmissionResponse,
) -> Result<AdmissionResponse, Failure> {
    let Some(pod) = &request.object else { return Ok(response) };
    if !is_annotated(pod.metadata.annotations.as_ref(), "proxy.example/inject") {
        return Ok(response);
    }
    let mut injected = pod.clone();
    let labels = injected.metadata.labels.get_or_insert_default();
    labels.insert("proxy.example/injected".to_owned(), "true".to_owned());
    let containers = &mut injected.spec.get_or_insert_default().containers;
    if containers.iter().all(|container| container.name != "proxy") {
        containers.push(Container {
            name: "proxy".to_owned(),
            image: Some("registry.example/proxy:1.4".to_owned()),
            ..Container::default()
        });
    }
    let patch = json_patch::diff(&serde_json::to_value(pod)?, &serde_json::to_value(&injected)?);
    Ok(response.with_patch(patch)?)
}

/// Rejects images with a mutable tag.
fn refuse_latest(
    request: &AdmissionRequest<Pod>,
    response: AdmissionResponse,
) -> Result<AdmissionResponse, Failure> {
    let spec = request.object.iter().filter_map(|pod| pod.spec.as_ref());
    let mut containers = spec.flat_map(|spec| spec.init_containers.iter().flatten().chain(&spec.containers));
    let latest = containers
        .find(|container| container.image.as_deref().is_some_and(|image| image.ends_with(":latest")));
    Ok(match latest {
        Some(container) => {
            response.deny(format!("{}: the image needs a tag other than latest", container.name))
        }
        None => response,
    })
}

/// Protects the `ConfigMap`s that request it.
fn protect(
    request: &AdmissionRequest<ConfigMap>,
    response: AdmissionResponse,
) -> Result<AdmissionResponse, Failure> {
    let annotations = request.old_object.as_ref().and_then(|object| object.metadata.annotations.as_ref());
    Ok(if is_annotated(annotations, "proxy.example/keep") {
        response.deny("remove the annotation proxy.example/keep first")
    } else {
        response
    })
}

fn is_annotated(annotations: Option<&std::collections::BTreeMap<String, String>>, key: &str) -> bool {
    annotations.is_some_and(|annotations| annotations.get(key).is_some_and(|value| value == "true"))
}
