//! Handles subresource requests that do not store their object: connections, bindings, evictions, and tokens.

use std::sync::Arc;

use kubernetes_admission::attributes::Operation;
use kubernetes_admission::ownership::TimePrecision;
use kubernetes_types::json::set;
use kubernetes_types::status::{Status, Unsupported};
use serde_json::{Value, json};
use tracing::info;

use super::token;
use crate::apimachinery::{metadata, options};
use crate::registry::answer::Answer;
use crate::registry::authorization;
use crate::registry::field_manager;
use crate::registry::field_manager::ManagedObject;
use crate::registry::request::ObjectRequest;
use crate::registry::{body, create};
use crate::subresources::{binding, eviction};

/// Returns the object to which a subresource request refers.
///
/// # Errors
/// Returns 404 if the object does not exist.
pub(crate) fn existing(request: &ObjectRequest<'_>) -> Result<Arc<Value>, Box<Status>> {
    let target = &request.target;
    let gvr = &target.resource.gvr;
    let stored = request.registry.state.storage.at(&target.key(&target.name));
    stored.ok_or_else(|| Box::new(Status::not_found(&gvr.group, &gvr.resource, &target.name)))
}

/// Checks that the container of a connection exists and that the Pod is assigned to a node.
///
/// Source: kubernetes pkg/registry/core/pod/strategy.go, `streamLocation` and `PortForwardLocation`.
fn check_location(pod: &Value, kind: &str, options: &Value) -> Result<(), Box<Status>> {
    if matches!(kind, "PodExecOptions" | "PodAttachOptions") {
        let container = options.get("container").and_then(Value::as_str).unwrap_or_default();
        check_container(pod, container)?;
    }
    let node = pod.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default();
    if matches!(kind, "PodExecOptions" | "PodAttachOptions" | "PodPortForwardOptions") && node.is_empty() {
        let name = metadata::text(pod, "name");
        return Err(Box::new(Status::bad_request(format!("pod {name} does not have a host assigned"))));
    }
    Ok(())
}

/// Source: kubernetes pkg/registry/core/pod/strategy.go, `validateContainer`.
fn check_container(pod: &Value, container: &str) -> Result<(), Box<Status>> {
    let named = |list: &str| {
        let containers = pod.pointer(list).and_then(Value::as_array).into_iter().flatten();
        containers.filter_map(|container| container.get("name")?.as_str()).collect::<Vec<_>>()
    };
    let lists = ["/spec/initContainers", "/spec/containers", "/spec/ephemeralContainers"];
    let all: Vec<&str> = lists.into_iter().flat_map(named).collect();
    let name = metadata::text(pod, "name");
    let message = match named("/spec/containers").len() {
        _ if all.contains(&container) => return Ok(()),
        _ if !container.is_empty() => format!("container {container} is not valid for pod {name}"),
        1 => return Ok(()),
        0 => format!("a container name must be specified for pod {name}"),
        _ => {
            let all = all.join(" ");
            format!("a container name must be specified for pod {name}, choose one of: [{all}]")
        }
    };
    Err(Box::new(Status::bad_request(message)))
}

/// Source: kubernetes `pkg/registry/core/pod/storage/{storage,eviction}.go`, `BindingREST.Create` and `EvictionREST.Create`.
fn check_name(object: &Value, name: &str, kind: &str) -> Result<(), Box<Status>> {
    if metadata::text(object, "name") == name {
        return Ok(());
    }
    Err(Box::new(Status::bad_request(format!("name in URL does not match name in {kind} object"))))
}

/// Admits a CONNECT request. The connection itself is not supported.
///
/// Admission receives the options from the query and, for a proxy, the rest of the path.
///
/// Source: apiserver pkg/endpoints/handlers/rest.go, `ConnectResource`, and pkg/endpoints/handlers/get.go,
/// `getRequestOptions`.
/// Rule: CHN-08, REQ-09, REQ-18.
pub(crate) async fn connect(request: &mut ObjectRequest<'_>) -> Result<Answer, Box<Status>> {
    if !request.query.all("dryRun").is_empty() {
        return Err(Box::new(Status::bad_request("dryRun is not supported")));
    }
    let kind = request.target.kind().clone();
    let mut object = json!({"kind": kind.kind, "apiVersion": kind.api_version()});
    let flag = |name: &str| match request.query.first(name) {
        Some("" | "true" | "1" | "t" | "T" | "TRUE" | "True") => true,
        Some(_) | None => false,
    };
    if matches!(kind.kind.as_str(), "PodExecOptions" | "PodAttachOptions") {
        for name in ["stdin", "stdout", "stderr", "tty"] {
            if flag(name) {
                set(&mut object, &[name], true);
            }
        }
        if let Some(container) = request.query.first("container").filter(|name| !name.is_empty()) {
            set(&mut object, &["container"], container);
        }
    }
    if !request.target.subpath.is_empty() {
        set(&mut object, &["path"], request.target.subpath.as_str());
    }
    match kind.kind.as_str() {
        "PodExecOptions" => {
            set(&mut object, &["command"], json!(request.query.all("command")));
        }
        "PodPortForwardOptions" => {
            let ports: Vec<i32> =
                request.query.all("ports").iter().filter_map(|port| port.parse().ok()).collect();
            if !ports.is_empty() {
                set(&mut object, &["ports"], json!(ports));
            }
        }
        _ => {}
    }
    let mut attributes = request.attributes(Operation::Connect, &kind);
    attributes.object = Some(object);
    let mut run = request.admitting.begin(attributes, TimePrecision::Seconds);
    request.admitting.mutate(&mut run).await?;
    request.admitting.validate(&mut run).await?;
    if ["exec", "attach", "portforward"].contains(&request.target.subresource.as_str()) {
        authorization::check_stream(request)?;
    }
    let target = &request.target;
    // Source: kubernetes pkg/registry/core/service/storage/storage.go, `ResourceLocation`.
    let stored = existing(request).map_err(|status| match target.resource.gvr.group_resource().as_str() {
        "services" => {
            let message = format!("no endpoints available for service \"{}\"", target.name);
            Box::new(Status::failure(503, "ServiceUnavailable", message))
        }
        _ => status,
    })?;
    check_location(&stored, &kind.kind, run.attributes().object.as_ref().unwrap_or(&Value::Null))?;
    let what = format!("{}/{}", request.target.resource.gvr.resource, request.target.subresource);
    Err(Box::new(Status::unsupported(&Unsupported { what: format!("connecting to {what}") })))
}

/// Handles a POST to a subresource: `pods/eviction`, `pods/binding`, `serviceaccounts/token`, and others.
///
/// Rule: EXM-04.
pub(crate) async fn create_subresource(request: &mut ObjectRequest<'_>) -> Result<Answer, Box<Status>> {
    let resource = Arc::clone(&request.target.resource);
    let kind = request.target.kind().clone();
    let options = options::of_write("CreateOptions", &request.query)?;
    info!("About to convert to expected version");
    let mut object = body::object(request, &kind)?;
    body::set_defaults(request, &mut object)?;
    info!("Conversion done");
    request.note_decoded(&object);
    create::fill_in_namespace(&mut object, request)?;
    let ManagedObject { object, times } = field_manager::update(request, &kind, None, object).await?;
    let mut attributes = request.attributes(Operation::Create, &kind);
    attributes.object = Some(object);
    attributes.options = Some(options.document.clone());
    attributes.dry_run = options.dry_run;
    let mut run = request.admitting.begin(attributes, times);
    field_manager::mutate(request, &mut run).await?;
    if (resource.gvr.resource.as_str(), request.target.subresource.as_str()) == ("serviceaccounts", "token") {
        return token::create(request, run).await;
    }
    if let Some(object) = &mut run.attributes_mut().object {
        match request.target.subresource.as_str() {
            "binding" => {
                check_name(object, &request.target.name, "Binding")?;
                binding::check(object)?;
            }
            "eviction" => {
                check_name(object, &request.target.name, "Eviction")?;
                eviction::prepare(object, &options)?;
            }
            _ => {}
        }
    }
    request.admitting.validate(&mut run).await?;
    let object = run.take_object().unwrap_or_default();
    match request.target.subresource.as_str() {
        "eviction" => Box::pin(eviction::evict(request, &object, options.dry_run)).await,
        "binding" => binding::bind(request, &object, options.dry_run),
        other => {
            existing(request)?;
            let what = format!("creating {}/{other}", resource.gvr.resource);
            Err(Box::new(Status::unsupported(&Unsupported { what })))
        }
    }
}
