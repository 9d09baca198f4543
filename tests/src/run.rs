//! Runs a case on a server and collects the results.

use admit_command::target::AuditEvent;
use serde_json::{Value, json};

use crate::annotations;
use crate::answered::{Answered, fill_in, referred};
use crate::case::{Case, Kind, Request, Verb};
use crate::concurrent_requests::ConcurrentRequests;
use crate::converters::Converters;
use crate::definitions::{Definitions, Moment};
use crate::fault::Fault;
use crate::mask::{ManagedFields, Mask};
use crate::metrics::{self, Scope};
use crate::names::Names;
use crate::objects::{self, title};
use crate::policies;
use crate::requestors::Requestors;
use crate::run_error::RunError;
use crate::server::{Server, configurations, kind_of_configurations};
use crate::server_error::ServerError;
use crate::transport::{Answer, SendError, send};
use crate::webhooks::{Call, Webhooks, sent};
use crate::websocket::converse;

/// The prefix of the message that the server returns when a request times out.
const TIMED_OUT: &str = "Timeout: request did not complete";

/// The options of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manner<'a> {
    /// The webhook of a race that answers first.
    pub first: Option<&'a str>,
    /// The deliberate fault of the run.
    pub fault: Option<Fault>,
}

type Samples = std::collections::BTreeMap<String, f64>;

/// The results of a run before masking. They do not yet contain the server's counters.
#[derive(Debug)]
pub struct RunResult {
    names: Names,
    ports: Vec<(u16, String)>,
    /// The `generateName`s of the requests.
    prefixes: Vec<String>,
    requests: Vec<Value>,
    before: Samples,
    /// The counters at the end of a case that ran alone on a shared server.
    after: Option<Samples>,
    is_alone: bool,
    managed_fields: ManagedFields,
    fault: Option<Fault>,
}

/// Runs the case in `text`, and removes the objects that it created.
///
/// # Errors
/// Returns an error if the case cannot be parsed or run. Rejected requests are results, not errors.
pub async fn run(text: &str, server: &Server, manner: Manner<'_>) -> Result<RunResult, RunError> {
    let names = Names::random();
    let mut case = Case::parse(&names.expand(text)).map_err(Box::new)?;
    if let Some(fault) = manner.fault {
        fault.spoil_case(&mut case);
    }
    let mut made = Vec::new();
    let outcome = run_case(&case, &names, server, manner, &mut made).await;
    server.reset_webhooks();
    if server.is_shared() {
        server.remove(&made).await;
    }
    outcome
}

#[expect(clippy::too_many_lines, reason = "the order of the waits of a run is visible in one place")]
async fn run_case(
    case: &Case,
    names: &Names,
    server: &Server,
    manner: Manner<'_>,
    made: &mut Vec<String>,
) -> Result<RunResult, RunError> {
    let mut converters = Converters::start(case, &server.authority).await?;
    prepare(case, names, server, &converters, made).await?;
    // Runs before any webhooks exist that would be called for these objects.
    if case.cluster.iter().any(is_of_rbac) {
        made.extend(server.settle_roles(names).await?);
    }
    let mut has_new_policies = case.cluster.iter().any(policies::is_policy);
    let concurrent_requests = ConcurrentRequests::start(case, names, server).await?;
    let mut webhooks = Webhooks::start(case, server, manner.first, concurrent_requests.as_ref()).await?;
    configure(case, names, server, &webhooks, made).await?;
    let kinds = webhooks.kinds();
    made.extend(server.settle(names, &kinds, 0).await?);
    webhooks.start_anew();
    let before = counters(case, names, server).await?.unwrap_or_default();
    let order = webhooks.dispatch_order(names);
    let mut requestors = Requestors::default();
    let mut definitions = Definitions::for_case(case);
    let mut requests = Vec::new();
    let (mut answered, mut asked_ids) = (Vec::new(), Vec::new());
    converters.begin();
    for (number, request) in case.requests.iter().enumerate() {
        let asked = &request.value;
        let request = &converters.named_in(as_sent(asked, &answered)?);
        if has_new_policies && !policies::is_about_policies(request) {
            made.extend(policies::settle(case, server).await?);
            has_new_policies = false;
        }
        let client = match &request.by {
            Some(requestor) => requestors.client(requestor, server, names).await?,
            None => server.client().clone(),
        };
        let message = objects::message(request, names);
        let mut answer = match &request.websocket {
            Some(websocket) => converse(&server.target().connecting_client, message, websocket).await?,
            None => server.ask_by(&client, message).await?,
        };
        if request.verb == Verb::Watch && answer.is_success() {
            answer.body = events(&answer.body);
        }
        answered.push(Answered::from_body(&answer.body));
        // Writes of the controllers are recorded with the request that caused them, although they follow the answer.
        made.extend(definitions.settle(Moment::BeforeCalls, server, names, request, &answer).await?);
        let mut seen = json!({"request": title(request)});
        if let Some(version) = version_of_page(asked, &answered) {
            seen["listedAs"] = version;
        }
        asked_ids.push(answer.audit_id.clone());
        let audited = if answer.status == 0 || server.audit_events().is_some() {
            AuditEvent::default()
        } else {
            let found = server.target().audit.event(&answer.audit_id).await;
            found.ok_or(RunError::NoAuditEvent(number + 1))?
        };
        // How the administrator may impersonate depends on what other cases did.
        if request.by.is_some() && !audited.impersonation_constraint.is_empty() {
            seen["impersonationConstraint"] = json!(audited.impersonation_constraint);
        }
        let is_relative = server.is_shared() && !case.serial;
        let annotations = annotations::judged(&audited.annotations, &order, is_relative);
        // When a request times out, it is random which webhooks already have annotations.
        if !annotations.is_empty() && !has_timed_out(&answer) {
            seen["audit"] = Value::Object(annotations);
        }
        seen["answer"] = answer.shown(request.show);
        let calls = webhooks.new_calls(request.unordered);
        seen["calls"] = calls.iter().map(recorded).collect();
        let answers = concurrent_requests.as_ref().map(ConcurrentRequests::answers).unwrap_or_default();
        if !answers.is_empty() {
            seen["meanwhile"] = Value::Array(answers);
        }
        converters.add_first_calls(number, &mut seen);
        requests.push(seen);
        if server.is_shared() {
            catch_up(case, server, names, request, &answer).await?;
            made.extend(definitions.settle(Moment::AfterCalls, server, names, request, &answer).await?);
            let writes_roles = request.resource.starts_with("rbac.authorization.k8s.io/");
            let is_read = matches!(request.verb, Verb::Get | Verb::Watch);
            let has_written = !is_read && answer.is_success() && !request.dry_run;
            if writes_roles && has_written {
                made.extend(server.settle_roles(names).await?);
            }
            if has_written && policies::affects_policies(case, request) {
                has_new_policies = true;
                if request.verb == Verb::Create && policies::is_about_policies(request) {
                    let name = text(&answer.body, "/metadata/name");
                    made.push(format!("/apis/{}/{name}", request.resource));
                }
            }
            if let Some(kind) = kind_of_configurations(&request.resource).filter(|_| has_written) {
                if request.verb == Verb::Create {
                    made.push(format!("{}/{}", configurations(kind), text(&answer.body, "/metadata/name")));
                }
                made.extend(server.settle(names, &[kind], number + 1).await?);
            }
        }
    }
    add_events(case, server, &asked_ids, &order, &mut requests).await?;
    let prefixes = case.requests.iter().filter_map(|request| {
        Some(request.value.body.as_ref()?.pointer("/metadata/generateName")?.as_str()?.to_owned())
    });
    let prefixes = prefixes.collect();
    let after = counters(case, names, server).await?;
    Ok(RunResult {
        names: names.clone(),
        ports: [webhooks.ports(), converters.ports()].concat(),
        prefixes,
        requests: server.without_folder(requests),
        before,
        after,
        is_alone: case.serial,
        managed_fields: if case.managed_fields { ManagedFields::Compared } else { ManagedFields::LeftOut },
        fault: manner.fault,
    })
}

/// Adds the audit events of each request, if the case has an audit policy.
async fn add_events(
    case: &Case,
    server: &Server,
    asked_ids: &[String],
    order: &[(String, String)],
    requests: &mut [Value],
) -> Result<(), RunError> {
    let Some(audit) = server.audit_events() else { return Ok(()) };
    audit.catch_up(server.client()).await?;
    for ((seen, id), request) in requests.iter_mut().zip(asked_ids).zip(&case.requests) {
        seen["events"] = audit.events(id, &request.value, order).into();
    }
    Ok(())
}

/// Returns the counters of a shared server; `None` if the server is not shared or runs other cases concurrently.
async fn counters(case: &Case, names: &Names, server: &Server) -> Result<Option<Samples>, RunError> {
    if !case.serial || !server.is_shared() {
        return Ok(None);
    }
    Ok(Some(metrics::samples(&server.metrics().await?, scope(names, case.serial))))
}

/// Creates the configurations of the webhooks, through the API or directly in the storage.
async fn configure(
    case: &Case,
    names: &Names,
    server: &Server,
    webhooks: &Webhooks,
    made: &mut Vec<String>,
) -> Result<(), ServerError> {
    for (kind, mut object) in webhooks.configurations(names) {
        let collection = configurations(kind);
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        made.push(format!("{collection}/{name}"));
        if case.stored.iter().any(|short| names.configuration(short) == name) {
            object["apiVersion"] = json!(format!("admissionregistration.k8s.io/{}", case.stored_version));
            for entry in object["webhooks"].as_array_mut().into_iter().flatten() {
                entry
                    .as_object_mut()
                    .into_iter()
                    .for_each(|fields| fields.retain(|_, value| !value.is_null()));
            }
            server.store(kind, object).await?;
        } else {
            server.make(&collection, object).await?;
        }
    }
    Ok(())
}

/// Replaces the placeholders in a request with values from the answers so far.
///
/// A watch is limited to one second. This is enough, because the server sends earlier events immediately.
fn as_sent(request: &Request, answered: &[Answered]) -> Result<Request, RunError> {
    let mut request = request.clone();
    if let Some(body) = &mut request.body {
        fill_in(body, answered);
    }
    for value in request.query.values_mut() {
        if let Some(found) = referred(value, answered) {
            *value = found.to_owned();
        }
    }
    if request.verb != Verb::Watch {
        return Ok(request);
    }
    request.query.insert("watch".to_owned(), "true".to_owned());
    request.query.entry("timeoutSeconds".to_owned()).or_insert_with(|| "1".to_owned());
    if let Some(number) = request.since {
        let earlier = number.checked_sub(1).and_then(|index| answered.get(index));
        let version = earlier.map(|answered| &answered.version).filter(|version| !version.is_empty());
        let version = version.ok_or_else(|| {
            let why = earlier.map_or("", |answered| answered.message.as_str());
            RunError::Ended(format!("request {number} has no resourceVersion to watch from: {why}"))
        })?;
        request.query.insert("resourceVersion".to_owned(), version.clone());
    }
    Ok(request)
}

/// Describes the `resourceVersion` of a page of a list: it is equal to that of the earlier answer, or different.
///
/// Returns `None` for other requests. The `resourceVersion` of other lists is random, because other clients write to a
/// shared server.
fn version_of_page(request: &Request, answered: &[Answered]) -> Option<Value> {
    let query = |name: &str| request.query.get(name).map(String::as_str).unwrap_or_default();
    let limit: i64 = query("limit").parse().unwrap_or_default();
    let is_exact =
        query("resourceVersionMatch") == "Exact" || (query("resourceVersionMatch").is_empty() && limit > 0);
    let answer_of = |reference: &str| {
        let number: usize = reference.strip_suffix('>')?.rsplit_once(' ')?.1.parse().ok()?;
        answered.get(number.checked_sub(1)?)
    };
    let last = answered.last().filter(|last| !last.version.is_empty())?;
    let page = answer_of(query("continue")).filter(|answered| !answered.page.is_empty());
    let earlier = page.or_else(|| answer_of(query("resourceVersion")).filter(|_| is_exact))?;
    Some(json!(if earlier.version == last.version { "that of the request" } else { "another" }))
}

/// Returns the events of a watch. A single JSON event and protobuf events are already parsed.
fn events(body: &Value) -> Value {
    let event = |line| serde_json::from_str(line).unwrap_or_else(|_| Value::from(line));
    let lines = body.as_str().map(|lines| lines.lines().map(event).collect());
    let Some(events) = lines.or_else(|| body.as_array().cloned()) else { return json!([body]) };
    events.into_iter().filter(|event| !is_chance(event)).collect()
}

/// Returns whether an event is a bookmark other than the bookmark after the initial events.
///
/// A server sends such bookmarks occasionally. In a Table without objects, both types look the same.
fn is_chance(event: &Value) -> bool {
    let is_bookmark = event["type"] == "BOOKMARK";
    let metadata = event.pointer("/object/rows/0/object/metadata").or_else(|| {
        let is_table = event["object"]["kind"] == "Table";
        event.pointer("/object/metadata").filter(|_| !is_table)
    });
    is_bookmark
        && metadata.is_some_and(|metadata| metadata["annotations"]["k8s.io/initial-events-end"] != "true")
}

/// Returns the samples that the case compares.
fn scope(names: &Names, is_alone: bool) -> Scope<'_> {
    if is_alone { Scope::Alone(names.id()) } else { Scope::Shared(names.id()) }
}

/// Returns whether an object is in the RBAC API group: a role or a binding.
fn is_of_rbac(object: &Value) -> bool {
    object["apiVersion"] == "rbac.authorization.k8s.io/v1"
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Waits until the server's caches contain what the request wrote.
///
/// An update that begins with a stale object runs admission twice, so the result would vary between runs. Each version of
/// a custom resource has its own cache.
///
/// Source: apiserver pkg/storage/cacher/cacher.go, `GuaranteedUpdate`; a read "not older than" waits for the cache, and so
/// does a list without a version.
async fn catch_up(
    case: &Case,
    server: &Server,
    names: &Names,
    request: &Request,
    answer: &Answer,
) -> Result<(), SendError> {
    let (name, version) =
        (text(&answer.body, "/metadata/name"), text(&answer.body, "/metadata/resourceVersion"));
    let is_deletion = matches!(request.verb, Verb::Delete | Verb::DeleteCollection);
    let has_object = !name.is_empty() && !version.is_empty();
    if !answer.is_success() || request.dry_run || !(is_deletion || has_object) {
        return Ok(());
    }
    for resource in objects::in_all_versions(&request.resource, &case.cluster) {
        let namespace = request.namespace.clone();
        let mut read = Request { verb: Verb::Get, resource, namespace, ..Request::default() };
        if !is_deletion {
            name.clone_into(&mut read.name);
            read.query.insert("resourceVersion".to_owned(), version.to_owned());
        }
        send(server.client(), objects::message(&read, names)).await?;
    }
    Ok(())
}

/// Creates the objects that must exist before the webhooks are registered.
async fn prepare(
    case: &Case,
    names: &Names,
    server: &Server,
    converters: &Converters,
    made: &mut Vec<String>,
) -> Result<(), ServerError> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": names.namespace()}});
    let own = case.cluster.iter().any(|object| {
        object["kind"] == "Namespace" && object["metadata"]["name"] == names.namespace().as_str()
    });
    let first = if own { None } else { Some(&namespace) };
    for object in first.into_iter().chain(&case.cluster) {
        let (collection, object) = objects::placed(&converters.filled(object), &case.cluster, names);
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        server.make(&collection, object.clone()).await?;
        // Namespaces are kept: no controller would empty them, and webhooks whose deleted configurations the server
        // still uses would be counted for the deletion. Custom resources are deleted with their definition.
        let is_custom = case.cluster.iter().any(|it| it.pointer("/spec/names/kind") == Some(&object["kind"]));
        let stays = collection.contains("/namespaces/") && !collection.contains("/namespaces/default/");
        if !stays && object["kind"] != "Namespace" && !is_custom {
            made.push(format!("{collection}/{name}"));
        }
        if object["kind"] == "CustomResourceDefinition" {
            for version in object["spec"]["versions"].as_array().into_iter().flatten() {
                if version["served"] == true {
                    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                    let (group, plural) =
                        (text(&object["spec"]["group"]), text(&object["spec"]["names"]["plural"]));
                    server.wait_for(&format!("/apis/{group}/{}/{plural}", text(&version["name"]))).await?;
                }
            }
        }
    }
    Ok(())
}

impl RunResult {
    /// Returns the results in the format of recordings, with the counters in the server's `exposition`.
    pub fn masked(&self, exposition: &str) -> Value {
        let after = match &self.after {
            Some(after) => after.clone(),
            None => metrics::samples(exposition, scope(&self.names, self.is_alone)),
        };
        let counted = metrics::delta(&self.before, &after);
        let mut document = json!({"requests": self.requests, "metrics": counted});
        if let Some(fault) = self.fault {
            fault.spoil_result(&mut document);
        }
        let mask = Mask::new(&self.names, self.ports.clone()).of_generated_names(self.prefixes.clone());
        mask.with_managed_fields(self.managed_fields).apply(&document)
    }
}

/// Runs a case on its own in-process server.
///
/// # Errors
/// Returns the same errors as [`run`].
pub async fn run_in_process(
    text: &str,
    authority: std::sync::Arc<certs::CertificateAuthority>,
    manner: Manner<'_>,
) -> Result<Value, RunError> {
    // An unreadable case has no plugins: its run reports the error.
    let plugins = Case::parse(&Names::random().expand(text)).map(|case| case.plugins).unwrap_or_default();
    let server = Server::in_process(authority, &plugins).await?;
    let seen = run(text, &server, manner).await?;
    let exposition = server.metrics().await?;
    Ok(seen.masked(&exposition))
}

/// Returns whether the server timed out the request. If so, it answered while webhooks were still being called.
///
/// Source: apiserver pkg/server/filters/timeout.go and pkg/endpoints/handlers/finisher/finisher.go.
fn has_timed_out(answer: &Answer) -> bool {
    answer.status == 504 && text(&answer.body, "/message").starts_with(TIMED_OUT)
}

/// Returns a webhook call in the format of recordings, without `content-length` headers.
fn recorded(call: &Call) -> Value {
    let kind = match call.kind {
        Kind::Mutating => "mutating",
        Kind::Validating => "validating",
    };
    let mut recorded = sent(&call.entry);
    if let Some(name) = &call.entry.certificate {
        recorded["certificate"] = json!(name);
    }
    recorded["webhook"] = json!(call.webhook);
    recorded["type"] = json!(kind);
    recorded
}
