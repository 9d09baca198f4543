//! Subresources that are admitted and then do something that has no object: connections, evictions, tokens.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use super::answer::Answer;
use super::deletion::{self, Marked};
use super::request::ObjectRequest;
use super::storage::ObjectReader as _;
use super::{body, create, delete, metadata, options};
use crate::attributes::Operation;
use crate::json::set;
use crate::ownership::Times;
use crate::selector::{Labels, Selector};
use crate::status::{Status, Unsupported};

fn existing(request: &ObjectRequest<'_>) -> Result<Arc<Value>, Box<Status>> {
    let target = &request.target;
    let gvr = &target.resource.gvr;
    let stored = request.server.state.storage.at(&create::key(request, &target.name));
    stored.ok_or_else(|| Box::new(Status::not_found(&gvr.group, &gvr.resource, &target.name)))
}

/// A connection goes to a container, and to the node of its pod: there is none where no scheduler runs.
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

/// The deletion is a dry run if the eviction is.
///
/// Source: kubernetes pkg/registry/core/pod/storage/eviction.go, `propagateDryRun`.
fn propagate_dry_run(eviction: &mut Value, dry_run: bool) {
    let options = eviction.get_mut("deleteOptions").and_then(Value::as_object_mut);
    if let Some(options) = options.filter(|options| dry_run && is_wet(options.get("dryRun"))) {
        options.insert("dryRun".to_owned(), json!(["All"]));
    }
}

/// Whether `dryRun` of some options leaves the request a real one.
fn is_wet(dry_run: Option<&Value>) -> bool {
    dry_run.and_then(Value::as_array).is_none_or(Vec::is_empty)
}

/// A Pod that runs and has a budget may be evicted only if the budget allows it, which a controller says.
///
/// Source: kubernetes pkg/registry/core/pod/storage/eviction.go, `canIgnorePDB` and `getPodDisruptionBudgets`.
fn check_budgets(request: &ObjectRequest<'_>, pod: &Value) -> Result<(), Box<Status>> {
    let phase = pod.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default();
    if ["Succeeded", "Failed", "Pending"].contains(&phase) || metadata::is_deleting(pod) {
        return Ok(());
    }
    let namespace = &request.target.namespace;
    let budgets = request.server.state.storage.list("policy", "poddisruptionbudgets", namespace);
    let selects = |budget: &&Arc<Value>| {
        let selector = budget.pointer("/spec/selector").and_then(|selector| Selector::parse(selector).ok());
        selector.is_some_and(|selector| selector.matches(Labels::of(pod).unwrap_or_default()))
    };
    let Some(budget) = budgets.iter().find(selects) else { return Ok(()) };
    let what =
        format!("the eviction of a pod with a PodDisruptionBudget ({})", metadata::text(budget, "name"));
    Err(Box::new(Status::unsupported(&Unsupported { what })))
}

/// CONNECT: admission sees the options from the query; the connection itself is not imitated.
///
/// Source: apiserver pkg/endpoints/handlers/rest.go, `ConnectResource`.
pub(super) async fn connect(request: &mut ObjectRequest<'_>) -> Result<Answer, Box<Status>> {
    if !request.query.all("dryRun").is_empty() {
        return Err(Box::new(Status::bad_request("dryRun is not supported")));
    }
    let kind = request.target.kind().clone();
    let mut object = json!({"kind": kind.kind, "apiVersion": kind.api_version()});
    let flag = |name: &str| match request.query.first(name) {
        Some("" | "true" | "1" | "t" | "T" | "TRUE" | "True") => true,
        Some(_) | None => false,
    };
    for name in ["stdin", "stdout", "stderr", "tty"] {
        if matches!(kind.kind.as_str(), "PodExecOptions" | "PodAttachOptions") && flag(name) {
            set(&mut object, &[name], true);
        }
    }
    for name in ["container", "path"] {
        if let Some(value) = request.query.first(name).filter(|value| !value.is_empty()) {
            set(&mut object, &[name], value);
        }
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
    let mut run = request.admitting.begin(attributes, Times::Whole);
    request.admitting.mutate(&mut run).await?;
    request.admitting.validate(&mut run).await?;
    let stored = existing(request)?;
    check_location(&stored, &kind.kind, run.attributes().object.as_ref().unwrap_or(&Value::Null))?;
    let what = format!("{}/{}", request.target.resource.gvr.resource, request.target.subresource);
    Err(Box::new(Status::unsupported(&Unsupported { what: format!("the connection of {what}") })))
}

/// POST to a subresource: `pods/eviction`, `pods/binding`, `serviceaccounts/token` and others.
pub(super) async fn create_subresource(request: &mut ObjectRequest<'_>) -> Result<Answer, Box<Status>> {
    let resource = Arc::clone(&request.target.resource);
    let kind = request.target.kind().clone();
    let options = options::of_write("CreateOptions", &request.query)?;
    let mut object = body::object(request, &kind)?;
    body::set_defaults(request, &mut object)?;
    request.note_decoded(&object);
    create::fill_in_namespace(&mut object, request)?;
    let mut attributes = request.attributes(Operation::Create, &kind);
    attributes.object = Some(object);
    attributes.options = Some(options.document);
    attributes.dry_run = options.dry_run;
    let times = Times::of(&attributes, true);
    let mut run = request.admitting.begin(attributes, times);
    request.admitting.mutate(&mut run).await?;
    if let Some(object) = &mut run.attributes_mut().object {
        match request.target.subresource.as_str() {
            "binding" => check_name(object, &request.target.name, "Binding")?,
            "eviction" => {
                check_name(object, &request.target.name, "Eviction")?;
                propagate_dry_run(object, options.dry_run);
            }
            _ => {}
        }
    }
    request.admitting.validate(&mut run).await?;
    let object = run.attributes().object.as_ref();
    let stored = existing(request)?;
    let key = create::key(request, &request.target.name);
    let storage = &request.server.state.storage;
    let success = || {
        let status =
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
        Ok(Answer::Object(StatusCode::CREATED, Arc::new(status)))
    };
    let conflict = || {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Box::new(Status::conflict(&resource.gvr.group, &resource.gvr.resource, &key.name, why))
    };
    match request.target.subresource.as_str() {
        "binding" if options.dry_run => success(),
        // The deletion that an eviction causes is not admitted again.
        "eviction" => {
            let wanted = object.and_then(|eviction| eviction.get("deleteOptions"));
            let wanted = wanted.cloned().unwrap_or_else(|| json!({}));
            check_budgets(request, &stored)?;
            if options.dry_run || !is_wet(wanted.get("dryRun")) {
                return success();
            }
            if let Marked::Changed { object, gone } = deletion::mark(&stored, &wanted, "pods") {
                delete::remove(request, &key, &stored, object, gone)?.ok_or_else(conflict)?;
            }
            success()
        }
        "binding" => {
            let node = object.and_then(|binding| binding.pointer("/target/name")).cloned();
            let taken = stored.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default();
            if !taken.is_empty() {
                let name = &key.name;
                let why = format!("pod {name} is already assigned to node \"{taken}\"");
                return Err(Box::new(Status::conflict("", "pods/binding", name, &why)));
            }
            let mut bound = (*stored).clone();
            if let (Some(spec), Some(node)) = (bound.get_mut("spec").and_then(Value::as_object_mut), node) {
                spec.insert("nodeName".to_owned(), node);
            }
            storage.replace(&key, Some(&stored), bound, storage.owners(&key)).ok().ok_or_else(conflict)?;
            success()
        }
        other => {
            let what = format!("creating {}/{other}", resource.gvr.resource);
            Err(Box::new(Status::unsupported(&Unsupported { what })))
        }
    }
}
