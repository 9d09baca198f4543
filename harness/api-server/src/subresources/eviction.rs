//! Evicts Pods: the server deletes a Pod if its `PodDisruptionBudget` allows the eviction.
//!
//! Before the server deletes the Pod, it sets a condition in the status of the Pod. Both writes skip admission. The
//! update of the budget's status runs admission.
//!
//! Source: kubernetes pkg/registry/core/pod/storage/eviction.go.

use std::sync::Arc;

use http::StatusCode;
use kubernetes_types::json::set;
use kubernetes_types::selector::{Labels, Selector};
use kubernetes_types::status::{FieldError, Status, StatusCause};
use serde_json::{Map, Value, json};

use super::connect::existing;
use crate::apimachinery::options::RequestOptions;
use crate::apimachinery::query::Query;
use crate::apimachinery::{metadata, options, status_conditions, time_limit};
use crate::registry::answer::Answer;
use crate::registry::delete;
use crate::registry::delete::DeletePath;
use crate::registry::preconditions;
use crate::registry::request::ObjectRequest;
use crate::storage::ObjectReader as _;

const DENIED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

/// The `Retry-After` value, in seconds, if the disruption controller has not processed the budget yet.
const RETRY_AFTER: i32 = 10;

/// The maximum number of disrupted Pods in a budget.
const MAX_DISRUPTED_POD_SIZE: usize = 2000;

/// The maximum number of attempts to write the status of a budget.
///
/// kube-apiserver waits half a second before each retry.
///
/// Source: `EvictionsRetry`.
const EVICTIONS_RETRY_STEPS: usize = 20;

/// Checks the delete options in an `Eviction` and adds the `dryRun` option of the request.
///
/// The server calls this function between mutating and validating admission.
///
/// # Errors
/// Returns 422 for an option that an eviction does not support, or 500 if the `dryRun` options of the eviction and the
/// request differ.
///
/// Source: `EvictionREST.Create` and `propagateDryRun`.
pub(crate) fn prepare(eviction: &mut Value, request: &RequestOptions) -> Result<(), Box<Status>> {
    let name = metadata::text(eviction, "name").to_owned();
    let Some(options) = eviction.get_mut("deleteOptions").and_then(Value::as_object_mut) else {
        return Ok(());
    };
    let unsafe_option = "ignoreStoreReadErrorWithClusterBreakingPotential";
    if options.get(unsafe_option) == Some(&Value::Bool(true)) {
        let field = format!("deleteOptions.{unsafe_option}");
        let why = "can not be set for pod eviction, try after removing the option";
        let error = FieldError::invalid(field, true, why);
        return Err(Box::new(Status::invalid("policy", "Eviction", &name, &[error])));
    }
    let Some(wanted) = request.document.get("dryRun").filter(|dry_run| !is_empty(dry_run)) else {
        return Ok(());
    };
    match options.get("dryRun").filter(|dry_run| !is_empty(dry_run)) {
        None => {
            options.insert("dryRun".to_owned(), wanted.clone());
            Ok(())
        }
        Some(found) if found == wanted => Ok(()),
        Some(found) => {
            let (wanted, found) = (go_list(wanted), go_list(found));
            let message =
                format!("Non-matching dry-run options in request and content: {wanted} and {found}");
            Err(Box::new(Status::failure(500, "", message)))
        }
    }
}

fn is_empty(list: &Value) -> bool {
    list.as_array().is_none_or(Vec::is_empty)
}

/// Formats a list of strings as Go's `%v` does.
fn go_list(list: &Value) -> String {
    let texts = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    format!("[{}]", texts.collect::<Vec<_>>().join(" "))
}

/// Performs an admitted eviction.
///
/// # Errors
/// Returns 429 or 403 if the budget does not allow the eviction, 404 if the Pod does not exist, or 409 if the
/// preconditions do not hold. Also returns the admission errors of the update of the budget's status.
pub(crate) async fn evict(
    request: &mut ObjectRequest<'_>,
    eviction: &Value,
    dry_run: bool,
) -> Result<Answer, Box<Status>> {
    let mut options = eviction.get("deleteOptions").cloned().unwrap_or_default();
    if !options.is_object() {
        let dry_run: &[&str] = if dry_run { &["All"] } else { &[] };
        options = json!({"dryRun": dry_run});
    }
    let is_dry_run = options.get("dryRun").is_some_and(|dry_run| !is_empty(dry_run));
    let has_version = options.pointer(VERSION).is_some_and(|version| !version.is_null());
    let pod = loop {
        let pod = existing(request)?;
        if !can_ignore_budgets(&pod) {
            break pod;
        }
        let may_be_late = has_to_stay_as_it_is(&pod) && !has_version;
        let done = if may_be_late {
            mark_and_delete(request, of_version(&options, &pod)).await
        } else {
            mark_and_delete(request, options.clone()).await
        };
        match done {
            Err(status) if may_be_late && status.code == 409 && has_changed(request, &pod) => {}
            done => return done.map(|()| success()),
        }
    };
    let budget = match budget_of(request, &pod) {
        None => return mark_and_delete(request, options).await.map(|()| success()),
        Some(Budgets::One(budget)) => budget,
        Some(Budgets::Several) => {
            let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "code": 500,
            });
            return Ok(Answer::Object(StatusCode::INTERNAL_SERVER_ERROR, Arc::new(status)));
        }
    };
    if may_go_unhealthy(&pod, &budget) {
        let done = mark_and_delete(request, of_version(&options, &pod)).await;
        return match done {
            Err(status) if status.code == 409 && !has_version => Err(still_processed(&budget)),
            done => done.map(|()| success()),
        };
    }
    take_from(request, &budget, &pod, is_dry_run).await?;
    mark_and_delete(request, options).await.map(|()| success())
}

/// The JSON pointer to the `resourceVersion` precondition in delete options.
const VERSION: &str = "/preconditions/resourceVersion";

/// Returns the delete options with the Pod's `resourceVersion` as a precondition.
fn of_version(options: &Value, pod: &Value) -> Value {
    let mut options = options.clone();
    set(&mut options, &["preconditions", "resourceVersion"], metadata::text(pod, "resourceVersion"));
    options
}

/// Returns whether the `resourceVersion` of the stored Pod differs from that of `pod`.
fn has_changed(request: &ObjectRequest<'_>, pod: &Value) -> bool {
    let version = |pod: &Value| metadata::text(pod, "resourceVersion").to_owned();
    existing(request).is_ok_and(|now| version(&now) != version(pod))
}

/// Sets the eviction condition in the Pod's status and deletes the Pod, both without admission.
///
/// Source: `addConditionAndDeletePod`.
/// Rule: EXM-04.
async fn mark_and_delete(request: &mut ObjectRequest<'_>, mut options: Value) -> Result<(), Box<Status>> {
    let name = request.target.name.clone();
    let key = request.target.key(&name);
    if options.get("dryRun").is_none_or(is_empty) {
        loop {
            let stored = existing(request)?;
            preconditions::check_delete(&stored, &without_empty_preconditions(&options), "", "Pod", &name)?;
            let marked = with_condition(&stored);
            let storage = &request.registry.state.storage;
            let after = if marked == *stored {
                stored
            } else {
                match storage.replace(&key, Some(&stored), marked) {
                    Ok(after) => after,
                    Err(_raced) => continue,
                }
            };
            if let Some(version) = options.pointer_mut(VERSION).filter(|version| !version.is_null()) {
                *version = metadata::text(&after, "resourceVersion").into();
            }
            break;
        }
    }
    if let Some(members) = options.as_object_mut() {
        members.remove("kind");
    }
    let options = options::of_delete(Some(options), &Query::parse(""))?;
    delete::delete_one(request, &name, &options, DeletePath::WithoutAdmission).await?;
    Ok(())
}

/// Returns the options without empty preconditions. The first step of an eviction ignores them.
///
/// Source: kubernetes pkg/registry/core/pod/storage/eviction.go, `addConditionAndDeletePod`.
fn without_empty_preconditions(options: &Value) -> Value {
    let mut options = options.clone();
    if let Some(preconditions) = options.get_mut("preconditions").and_then(Value::as_object_mut) {
        preconditions.retain(|_, wanted| wanted != "");
    }
    options
}

/// Returns the Pod with the condition `DisruptionTarget`.
fn with_condition(pod: &Value) -> Value {
    let mut pod = pod.clone();
    let condition = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting", "lastProbeTime": null,
    });
    status_conditions::set(&mut pod, condition);
    pod
}

fn phase(pod: &Value) -> &str {
    pod.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default()
}

/// Source: `canIgnorePDB`.
fn can_ignore_budgets(pod: &Value) -> bool {
    ["Succeeded", "Failed", "Pending"].contains(&phase(pod)) || metadata::is_deleting(pod)
}

/// Source: `shouldEnforceResourceVersion`.
fn has_to_stay_as_it_is(pod: &Value) -> bool {
    !["Succeeded", "Failed"].contains(&phase(pod)) && !metadata::is_deleting(pod)
}

/// The budgets that select a Pod.
enum Budgets {
    One(Arc<Value>),
    Several,
}

/// Source: `getPodDisruptionBudgets`.
fn budget_of(request: &ObjectRequest<'_>, pod: &Value) -> Option<Budgets> {
    let namespace = &request.target.namespace;
    let budgets = request.registry.state.storage.list("policy", "poddisruptionbudgets", namespace);
    let selects = |budget: &Arc<Value>| {
        let selector = budget.pointer("/spec/selector").and_then(|selector| Selector::parse(selector).ok());
        selector.is_some_and(|selector| selector.matches(Labels::from_object(pod).unwrap_or_default()))
    };
    let mut selecting = budgets.into_iter().filter(selects);
    match (selecting.next(), selecting.next()) {
        (None, _) => None,
        (Some(budget), None) => Some(Budgets::One(budget)),
        (Some(_), Some(_)) => Some(Budgets::Several),
    }
}

/// Returns an integer field of a budget's status; 0 if the field is absent.
fn number(budget: &Value, field: &str) -> i64 {
    budget.get("status").and_then(|status| status.get(field)).and_then(Value::as_i64).unwrap_or(0)
}

/// Returns whether a Pod that is not ready can be evicted without using one of the budget's disruptions.
fn may_go_unhealthy(pod: &Value, budget: &Value) -> bool {
    let is_ready = status_conditions::all(pod).any(|condition| {
        status_conditions::is(condition, "Ready")
            && condition.get("status").and_then(Value::as_str) == Some("True")
    });
    let policy = budget.pointer("/spec/unhealthyPodEvictionPolicy").and_then(Value::as_str);
    let desired = number(budget, "desiredHealthy");
    !is_ready && (policy == Some("AlwaysAllow") || number(budget, "currentHealthy") >= desired && desired > 0)
}

/// Checks that the budget allows the eviction and counts the Pod as disrupted in the budget's status.
///
/// The update of the status is a loopback request.
///
/// Source: `checkAndDecrement`.
async fn take_from(
    request: &ObjectRequest<'_>,
    budget: &Arc<Value>,
    pod: &Value,
    dry_run: bool,
) -> Result<(), Box<Status>> {
    let mut budget = Arc::clone(budget);
    let mut tries = 0;
    loop {
        check(&budget)?;
        if dry_run {
            return Ok(());
        }
        let changed = with_one_disruption_less(&budget, metadata::text(pod, "name"));
        tries += 1;
        match update_status(request, &changed).await {
            // Another write may have come first, or a webhook may return a conflict each time.
            Err(status) if status.code == 409 && tries < EVICTIONS_RETRY_STEPS => {}
            done => return done,
        }
        if request.admitting.is_out_of_time() {
            return Err(time_limit::exceeded());
        }
        let (namespace, name) = (metadata::text(&budget, "namespace"), metadata::text(&budget, "name"));
        let fresh = request.registry.state.storage.get("policy", "poddisruptionbudgets", namespace, name);
        budget = fresh.ok_or_else(|| Box::new(Status::not_found("policy", "poddisruptionbudgets", name)))?;
    }
}

fn check(budget: &Value) -> Result<(), Box<Status>> {
    let name = metadata::text(budget, "name");
    let generation = budget.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(0);
    if number(budget, "observedGeneration") < generation {
        return Err(still_processed(budget));
    }
    let forbidden = |why: &str, cause: &str| {
        let mut status = Box::new(Status::forbidden("policy", "poddisruptionbudget", name, why));
        let message = format!("The disruption budget {name} does not allow evicting pods currently: {cause}");
        add_cause(&mut status, message);
        Err(status)
    };
    let allowed = number(budget, "disruptionsAllowed");
    if allowed < 0 {
        let why = "pdb disruptions allowed is negative";
        return forbidden(why, why);
    }
    let disrupted = budget.pointer("/status/disruptedPods").and_then(Value::as_object).map_or(0, Map::len);
    if disrupted > MAX_DISRUPTED_POD_SIZE {
        return forbidden(
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
            "too many pending evictions not confirmed by PDB controller",
        );
    }
    if allowed > 0 {
        return Ok(());
    }
    let text = |condition: &Value, field: &str| {
        condition.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let refusing = status_conditions::all(budget)
        .find(|condition| status_conditions::is(condition, "DisruptionAllowed"));
    let refusing = refusing
        .filter(|condition| text(condition, "status") == "False" && !text(condition, "message").is_empty())
        .map(|condition| (text(condition, "reason"), text(condition, "message")));
    let (desired, current) = (number(budget, "desiredHealthy"), number(budget, "currentHealthy"));
    let is_not_allowed = format!("The disruption budget {name} does not allow evicting pods currently");
    let why = match refusing {
        Some((reason, message)) if reason == "SyncFailed" => {
            format!("{is_not_allowed} because it failed sync: {message}")
        }
        _ if current <= desired => {
            format!("The disruption budget {name} needs {desired} healthy pods and has {current} currently")
        }
        Some((reason, message)) => format!("{is_not_allowed} ({reason}): {message}"),
        None => is_not_allowed,
    };
    Err(too_many_requests(0, why))
}

/// Source: `createTooManyRequestsError`.
fn still_processed(budget: &Value) -> Box<Status> {
    let name = metadata::text(budget, "name");
    let why = format!("The disruption budget {name} is still being processed by the server.");
    too_many_requests(RETRY_AFTER, why)
}

/// Source: apimachinery pkg/api/errors/errors.go, `NewTooManyRequests`.
fn too_many_requests(retry_after: i32, why: String) -> Box<Status> {
    let mut status =
        Box::new(Status { message: DENIED.to_owned(), ..Status::too_many_requests(retry_after) });
    add_cause(&mut status, why);
    status
}

fn add_cause(status: &mut Status, message: String) {
    let cause = StatusCause { reason: "DisruptionBudget".to_owned(), message, ..StatusCause::default() };
    status.details.get_or_insert_default().causes.push(cause);
}

/// Returns the budget with one fewer allowed disruption, and with the name of the evicted Pod in its status.
///
/// Source: also component-helpers apps/poddisruptionbudget/helpers.go, `UpdateDisruptionAllowedCondition`.
fn with_one_disruption_less(budget: &Value, pod: &str) -> Value {
    let mut budget = budget.clone();
    let left = number(&budget, "disruptionsAllowed") - 1;
    let observed = number(&budget, "observedGeneration");
    if let Some(status) = status_conditions::status_mut(&mut budget) {
        status.insert("disruptionsAllowed".to_owned(), left.into());
        let disrupted = status.entry("disruptedPods").or_insert_with(|| json!({}));
        if let Some(disrupted) = disrupted.as_object_mut() {
            disrupted.insert(pod.to_owned(), metadata::now().into());
        }
    }
    if left == 0 {
        let condition = json!({
            "type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": "",
            "observedGeneration": observed,
        });
        status_conditions::set(&mut budget, condition);
    }
    budget
}

/// Updates the status of a budget with a loopback request of the server.
async fn update_status(request: &ObjectRequest<'_>, budget: &Value) -> Result<(), Box<Status>> {
    let (namespace, name) = (metadata::text(budget, "namespace"), metadata::text(budget, "name"));
    let path = format!("/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets/{name}/status");
    let server = request.registry.own_server.get();
    let server = server.ok_or_else(|| Box::new(Status::internal_error("the server has not started")))?;
    server.put(path, budget).await
}

/// Returns the response to a completed eviction or binding.
pub(crate) fn success() -> Answer {
    let status =
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    Answer::Object(StatusCode::CREATED, Arc::new(status))
}
