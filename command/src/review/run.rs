//! Reads files, starts fakes, sends requests, and prints reports.

use std::sync::Arc;

use fake_webhooks::{Fleet, Log};
use harness::attributes::{GroupVersionKind, GroupVersionResource, Operation};
use harness::chain::{Chain, Request, RequestError, Verdict};
use harness::config;
use harness::json::{at, set, text};
use harness::server::{ApiServer, Options};
use harness::verify::report::Location;
use serde_json::Value;
use tokio::time::Instant;

use super::arguments::{Output, Review};
use super::cluster::{OfflineCluster, callable};
use super::request::{self, Planned};
use crate::documents::{self, Document, DocumentLocation};
use crate::fakes::local;
use crate::html_report::HtmlFile;
use crate::pull::PulledCluster;
use crate::request_report::{self as report, Circumstances, Places, Report, Webhooks};
use crate::screen::Marks;
use crate::service_map;
use crate::unbound_policies::{Source, UnboundPolicy, unbound};
use crate::verify::locations::locations;
use crate::{ExitCode, Failure, admission_kinds, ca_bundle, screen, unknown_fields, v1beta1};

/// A note about a request after one whose decision is conditional.
const ASSUMED: &str = "this decision assumes that webhooks with unknown responses allowed the earlier requests and did not change the objects";

/// The webhooks and policies of the files, for the reports.
struct Known {
    webhooks: Webhooks,
    unbound: Vec<UnboundPolicy>,
    /// The cluster of `--cluster`.
    cluster: Option<PulledCluster>,
}

impl Known {
    /// Returns whether `namespace` and its objects were read from the cluster. It is empty for a cluster-scoped object.
    fn is_read(&self, namespace: &str) -> bool {
        self.cluster.as_ref().is_none_or(|cluster| cluster.covers(namespace))
    }
}

/// Returns the namespace of the object in a request; empty for a cluster-scoped object.
fn namespace(request: &Request, server: &ApiServer) -> String {
    let is_namespaced = server.resource(&request.resource).is_some_and(|served| served.namespaced);
    if is_namespaced { request.namespace.clone() } else { String::new() }
}

impl Review {
    pub(crate) async fn run(self) -> Result<ExitCode, Failure> {
        let is_text = self.output == Output::Text;
        let print = if is_text { screen::print } else { screen::print_document };
        self.run_printing(Marks::of_stdout(Marks::ASCII_DECISIONS), print).await
    }

    /// Runs the command and passes the text of each report to `print` as soon as it is available.
    pub(crate) async fn run_printing(
        mut self,
        marks: Marks,
        mut print: impl FnMut(&str) -> Result<(), Failure>,
    ) -> Result<ExitCode, Failure> {
        if let Some(path) = &self.record.record {
            return self.show_record(path, marks, print);
        }
        self.check_standard_input()?;
        let html = HtmlFile::create(self.html.as_deref())?;
        let cluster = self.cluster.as_deref().map(OfflineCluster::read).transpose()?;
        let under_review = documents::read(&self.files)?;
        let (with, mut existing): (Vec<_>, Vec<_>) =
            documents::read(&self.existing)?.into_iter().partition(|it| is_configuration(&it.object));
        let old = documents::read(&self.old)?;
        let (mut configurations, others) = self.read_configurations(&existing, cluster.as_ref())?;
        let (namespaces, policies): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|it| is_namespace(&it.object));
        existing.extend(policies);
        add_missing(&mut existing, namespaces);
        add_missing(&mut configurations, with);
        unknown_fields::warn(configurations.iter().chain(&existing));
        let fakes = match &self.fakes {
            Some(file) => Some(local::start(&[file], &(Arc::new(|_: &str| {}) as Log)).await?),
            None => None,
        };

        let selection = self.plugins.selection()?;
        let plugins = self.admission_control.read(&selection)?;
        let manifests = plugins.manifests.manifests;
        let services = service_map::by_service(std::mem::take(&mut self.service));
        let callable_webhooks = cluster.as_ref().map(|_| {
            let own = configurations.iter().chain(&existing).map(|document| &document.object);
            let of_fakes = fakes.iter().flat_map(Fleet::configurations);
            callable(&services, &manifests, own.chain(of_fakes))
        });
        let pulled = cluster.map(|cluster| add_cluster(cluster, &mut configurations, &mut existing));
        let places = Places {
            webhooks: locations(configurations.iter()),
            policies: existing.iter().filter_map(policy_place).collect(),
        };
        let chain = Chain::new(Options {
            services: services.clone(),
            callable_webhooks,
            credentials: plugins.credentials,
            manifests: manifests.clone(),
            plugins: selection,
            plugin_configuration: self.plugins.configuration(plugins.in_tree),
            ..Options::default()
        });
        let objects: Vec<&Value> = existing.iter().map(|document| &document.object).collect();
        let unbound_policies = unbound(&objects, Source::With);
        put_existing(&chain, existing, pulled.is_none())?;
        let mut put: Vec<Arc<Value>> = Vec::new();
        for document in configurations.drain(..) {
            put.push(put_configuration(&chain, document)?);
        }
        if let Some(fleet) = &fakes {
            put.extend(local::configure(fleet, chain.server())?);
        }
        let known = Known {
            webhooks: Webhooks::new(&manifests, &put).map_err(Failure::usage)?.at(services),
            unbound: unbound_policies,
            cluster: pulled,
        };

        let planned = request::plan(&self, under_review, &old, chain.server())?;
        let (mut reports, mut complete) = (Vec::new(), Vec::new());
        let mut definite = Vec::new();
        // The namespaces of stored objects with a conditional decision; empty for cluster-scoped objects.
        let mut open: Vec<String> = Vec::new();
        for mut planned in planned {
            let namespace = namespace(&planned.request, chain.server());
            let is_assumed = open.iter().any(|open| open.is_empty() || *open == namespace);
            if is_assumed {
                planned.notes.push(ASSUMED.to_owned());
            }
            definite.push(!is_assumed && known.is_read(&namespace));
            let is_stored = !planned.request.dry_run;
            let mut report = self.review(&chain, planned, &known).await?;
            if !self.contents.show_secrets {
                report.mask_secrets();
            }
            if html.is_some() {
                complete.push(report.clone());
            }
            self.hide_details(&mut report);
            if self.output == Output::Text {
                print(&report::people::text(&report, self.verbose, marks, &places))?;
            }
            if is_stored && report.verdict() == Verdict::Conditional {
                open.push(namespace);
            }
            reports.push(report);
        }
        if let Some(end) = self.end(&reports)? {
            print(&end)?;
        }
        if let Some(html) = html {
            html.write("admit review", &report::json::json(&complete).map_err(Failure::environment)?)?;
        }
        if let Some(fleet) = fakes {
            fleet.stop().await;
        }
        let is_complete = known.cluster.as_ref().is_none_or(PulledCluster::is_complete);
        Ok(exit_code(reports.iter().map(Report::verdict).zip(definite), is_complete))
    }

    /// Returns what is printed after all requests: their number by decision, or the document with all reports.
    fn end(&self, reports: &[Report]) -> Result<Option<String>, Failure> {
        Ok(match self.output {
            Output::Text => (reports.len() > 1).then(|| report::people::summary(reports)),
            Output::Json => Some(report::json::json(reports).map_err(Failure::environment)?),
            Output::Yaml => Some(report::json::yaml(reports)?),
        })
    }

    /// Removes the details of the report that only options show.
    fn hide_details(&self, report: &mut Report) {
        if !self.contents.explain {
            report.without_explanation();
        }
        if !self.contents.show_reviews {
            report.without_reviews();
        }
    }

    /// Reads the files of `-c`, in which policies of `--with` and of the cluster may also have params.
    fn read_configurations(
        &self,
        existing: &[Document],
        cluster: Option<&OfflineCluster>,
    ) -> Result<(Vec<Document>, Vec<Document>), Failure> {
        let of_cluster = cluster.map_or(&[][..], |cluster| &cluster.documents);
        configurations(documents::read(&self.configurations)?, existing.iter().chain(of_cluster))
    }

    /// Sends a request and returns a report about it.
    async fn review(&self, chain: &Chain, planned: Planned, known: &Known) -> Result<Report, Failure> {
        let Planned { place, mut request, before, before_place, mut notes } = planned;
        let served = chain.server().resource(&request.resource);
        if !known.is_read(&namespace(&request, chain.server())) {
            notes.push(format!(
                "admit pull did not read namespace \"{0}\": run `admit pull` again with the same options and -n {0}",
                request.namespace
            ));
        }
        let is_namespaced = served.as_ref().is_some_and(|served| served.namespaced);
        // A cluster does not create the namespace of an object, and objects cannot exist without it.
        let can_exist = !is_namespaced || known.cluster.is_none() || {
            let namespaces = GroupVersionResource::new("", "v1", "namespaces");
            chain.server().stored(&namespaces, "", &request.namespace).is_some()
        };
        if is_namespaced && known.cluster.is_none() {
            notes.extend(self.create_namespace(chain, &place, &request.namespace)?);
        }
        if let Some(mut before) = before.filter(|_| can_exist) {
            if is_namespaced && let Some(Value::Object(metadata)) = before.get_mut("metadata") {
                metadata.insert("namespace".to_owned(), request.namespace.clone().into());
            }
            let before_place = before_place.as_ref().unwrap_or(&place);
            let stored = chain.put(before).map_err(|status| refused(before_place, &status))?;
            // The resourceVersion comes from another server and is not valid here.
            if request.operation == Operation::Update
                && let Some(body) = &mut request.body
                && let Some(version) = body.pointer_mut("/metadata/resourceVersion")
            {
                *version = at(&stored, &["metadata", "resourceVersion"]).clone();
            }
        }
        let old = served.as_ref().and_then(|served| {
            let namespace = if served.namespaced { request.namespace.as_str() } else { "" };
            chain.server().stored(&served.name, namespace, &request.name)
        });
        if known.cluster.is_some()
            && let Some(body) = &mut request.body
        {
            // The files of a pull do not contain these fields, and an exported object has those of the cluster.
            for field in ["resourceVersion", "uid"] {
                if request.operation == Operation::Create {
                    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
                        metadata.remove(field);
                    }
                } else if let Some(old) = &old {
                    set(body, &["metadata", field], at(old, &["metadata", field]).clone());
                }
            }
        }
        let started = Instant::now();
        let sent = chain.send(&request).await.map_err(|error| {
            let hint = if let RequestError::UnknownKind(kind) = &error {
                match chain.server().version_of_kind(&kind.kind) {
                    Some(version) => format!(" (did you mean {version}?)"),
                    None if known.cluster.is_some() => {
                        ": the directory of --cluster does not contain its CustomResourceDefinition; pass it with --with FILE"
                            .to_owned()
                    }
                    None => ": pass its CustomResourceDefinition with --with FILE".to_owned(),
                }
            } else {
                String::new()
            };
            place.failure(format!("{error}{hint}"))
        })?;
        let circumstances = Circumstances {
            place: &place,
            request: &request,
            served: served.as_ref(),
            old,
            webhooks: &known.webhooks,
            cluster: known.cluster.clone(),
            unbound: &known.unbound,
            took: started.elapsed(),
            notes,
            explain: self.contents.explain || self.html.is_some(),
            reviews: self.contents.show_reviews || self.html.is_some(),
            recorded: None,
            patch: None,
        };
        Ok(Report::new(circumstances, &sent, chain.server()))
    }

    /// Creates a namespace if it does not exist. Returns a note about a new namespace.
    fn create_namespace(
        &self,
        chain: &Chain,
        place: &documents::DocumentLocation,
        namespace: &str,
    ) -> Result<Option<String>, Failure> {
        if !chain.ensure_namespace(namespace).map_err(|status| refused(place, &status))? {
            return Ok(None);
        }
        if self.fakes.is_some() {
            local::opt_in(chain.server(), namespace)?;
        }
        Ok(Some(format!("namespace \"{namespace}\" was created for this review")))
    }

    /// Rejects options that read standard input more than once.
    fn check_standard_input(&self) -> Result<(), Failure> {
        let all = [&self.files, &self.configurations, &self.existing, &self.old];
        let count = all.into_iter().flatten().filter(|path| path.as_os_str() == "-").count();
        if count > 1 {
            return Err(Failure::usage("`-` is used more than once: standard input can be read only once"));
        }
        Ok(())
    }
}

/// Returns the webhook configurations among `documents`, and the other objects that affect decisions: admission
/// policies, their bindings, objects of the kinds of their params, custom resource definitions, and namespaces.
///
/// `known` are the other objects, among which are policies.
fn configurations<'a>(
    documents: Vec<Document>,
    known: impl Iterator<Item = &'a Document>,
) -> Result<(Vec<Document>, Vec<Document>), Failure> {
    admission_kinds::reject_unknown(documents.iter().map(|it| (it.place.clone(), &it.object)))?;
    let file = documents.first().map(|document| document.place.file.clone());
    let (found, others): (Vec<_>, Vec<_>) =
        documents.into_iter().partition(|document| is_configuration(&document.object));
    let is_policy = |it: &Document| text(&it.object, &["kind"]).contains("AdmissionPolicy");
    let has_policies = others.iter().any(is_policy);
    let mut param_kinds: Vec<(String, String)> = known.filter_map(|it| param_kind(&it.object)).collect();
    param_kinds.extend(others.iter().filter_map(|it| param_kind(&it.object)));
    let is_used = |it: &Document| {
        is_policy(it) || is_namespace(&it.object) || is_definition_or_param(&it.object, &param_kinds)
    };
    match file {
        Some(file) if found.is_empty() && !has_policies => Err(Failure::usage(format!(
            "{file}: the files of -c do not contain a MutatingWebhookConfiguration, a \
             ValidatingWebhookConfiguration, or an admission policy"
        ))),
        _ => Ok((found, others.into_iter().filter(is_used).collect())),
    }
}

/// Returns an admission policy as `PHASE/NAME`, with its location.
fn policy_place(document: &Document) -> Option<(String, Location)> {
    let phase = match text(&document.object, &["kind"]) {
        "MutatingAdmissionPolicy" => "mutating",
        "ValidatingAdmissionPolicy" => "validating",
        _ => return None,
    };
    let DocumentLocation { file, line } = &document.place;
    let location = Location { file: file.clone(), line: *line };
    Some((format!("{phase}/{}", text(&document.object, &["metadata", "name"])), location))
}

/// Returns the API group and the kind in `spec.paramKind` of a policy.
fn param_kind(policy: &Value) -> Option<(String, String)> {
    let kind = policy.get("spec")?.get("paramKind")?;
    let kind = GroupVersionKind::from_object(kind);
    Some((kind.group, kind.kind))
}

/// Returns whether `object` is a custom resource definition or has one of the kinds in `param_kinds`.
fn is_definition_or_param(object: &Value, param_kinds: &[(String, String)]) -> bool {
    let own = GroupVersionKind::from_object(object);
    let (group, kind) = (&*own.group, &*own.kind);
    (group, kind) == ("apiextensions.k8s.io", "CustomResourceDefinition")
        || param_kinds.iter().any(|of_param| (of_param.0.as_str(), of_param.1.as_str()) == (group, kind))
}

fn is_namespace(object: &Value) -> bool {
    (text(object, &["apiVersion"]), text(object, &["kind"])) == ("v1", "Namespace")
}

fn is_configuration(object: &Value) -> bool {
    let kind = GroupVersionKind::from_object(object);
    kind.group == "admissionregistration.k8s.io" && kind.kind.ends_with("WebhookConfiguration")
}

/// Adds the objects of `others` that `documents` does not contain.
fn add_missing(documents: &mut Vec<Document>, others: Vec<Document>) {
    // The server stores an object without a namespace in `default`, unless it is cluster-scoped.
    let id = |object: &Value| {
        let kind = GroupVersionKind::from_object(object);
        let [namespace, name] =
            ["namespace", "name"].map(|field| text(object, &["metadata", field]).to_owned());
        let namespace = if namespace.is_empty() { "default".to_owned() } else { namespace };
        [kind.group, kind.kind, namespace, name]
    };
    let known: Vec<[String; 4]> = documents.iter().map(|it| id(&it.object)).collect();
    documents.extend(others.into_iter().filter(|document| !known.contains(&id(&document.object))));
}

/// Adds the objects of a pulled cluster. Objects that are in the other files replace them.
fn add_cluster(
    OfflineCluster { pulled, documents }: OfflineCluster,
    configurations: &mut Vec<Document>,
    existing: &mut Vec<Document>,
) -> PulledCluster {
    let (webhooks, others): (Vec<_>, Vec<_>) =
        documents.into_iter().partition(|it| is_configuration(&it.object));
    add_missing(configurations, webhooks);
    add_missing(existing, others);
    pulled
}

/// Stores a configuration. A v1beta1 configuration is stored as an upgraded API server would store it.
fn put_configuration(chain: &Chain, Document { place, object }: Document) -> Result<Arc<Value>, Failure> {
    v1beta1::warn(&place, &object);
    let advice = ca_bundle::advice(&object);
    let stored = match config::upgraded(&object) {
        Some(upgraded) => chain.server().put_stored(upgraded),
        None => chain.put(object),
    };
    stored.map_err(|mut status| {
        if let Some(advice) = advice {
            status.message = format!("{}: {advice}", status.message);
        }
        refused(&place, &status)
    })
}

/// Stores the existing objects: definitions, then namespaces, then all other objects, because they may depend on both.
///
/// With `creates_namespaces`, the namespaces of the objects are created if they do not exist.
fn put_existing(chain: &Chain, mut existing: Vec<Document>, creates_namespaces: bool) -> Result<(), Failure> {
    existing.sort_by_key(|document| match document.object.get("kind").and_then(Value::as_str) {
        Some("CustomResourceDefinition") => 0,
        Some("Namespace") => 1,
        _ => 2,
    });
    for Document { place, object } in existing {
        let stored = chain.put(object).map_err(|status| refused(&place, &status))?;
        if creates_namespaces
            && let Some(namespace) = stored.pointer("/metadata/namespace").and_then(Value::as_str)
        {
            chain.ensure_namespace(namespace).map_err(|status| refused(&place, &status))?;
        }
    }
    Ok(())
}

/// Returns a failure with the server's error for an object that the server rejected.
fn refused(place: &documents::DocumentLocation, status: &harness::status::Status) -> Failure {
    let failure = place.failure(&status.message);
    if status.code == 501 { Failure::unsupported(failure) } else { failure }
}

/// Returns the exit status for the verdicts, each with whether it is definite. A verdict is definite if it does not depend on
/// an assumed outcome of an earlier request and its namespace was read. `is_complete` is whether the whole cluster was read.
fn exit_code(verdicts: impl Iterator<Item = (Verdict, bool)>, is_complete: bool) -> ExitCode {
    let verdicts: Vec<(Verdict, bool)> = verdicts.collect();
    let any = |verdict: Verdict| verdicts.contains(&(verdict, true));
    if any(Verdict::Denied) {
        ExitCode::Failed
    } else if any(Verdict::Undecided) {
        ExitCode::Environment
    } else if any(Verdict::Unsupported) {
        ExitCode::Unsupported
    } else if any(Verdict::Conditional)
        || !is_complete
        || verdicts.iter().any(|(_, is_definite)| !is_definite)
    {
        ExitCode::NotChecked
    } else {
        ExitCode::Ok
    }
}
