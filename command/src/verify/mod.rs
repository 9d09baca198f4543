//! `admit verify`: checks third-party webhooks.

mod api_server;
mod baseline;
pub(crate) mod chosen;
mod cluster;
mod complete;
mod configurations;
mod control;
mod interventions;
mod list;
pub(crate) mod locations;
mod merge;
mod objects;
pub(crate) mod output;
mod progress;
mod proof;
mod readiness;
mod shard;

mod target;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use harness::attributes::UserInfo;
use harness::json::text;
use harness::server::{AdmissionPlugins, ClusterFixture};
use harness::verify::{Check, Converter, Environment, Plan, Recorder, Settings, Subject, checks, corpus};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use url::Url;

use self::api_server::RecordingServer;
pub(crate) use self::baseline::VERIFY;
use self::chosen::Skip;
use self::configurations::Configurations;
use self::control::Control;
use self::interventions::Interventions;
use self::merge::Merge;
use self::objects::Objects;
use self::output::Outputs;
use self::proof::Proofs;
use self::readiness::Deadline;
use self::target::Services;
use crate::admission_control::AdmissionControl;
use crate::progress::ProgressReporter;
use crate::serve::shell_word;
use crate::service_map::{self, ServiceMapping};
use crate::static_manifests::Loaded;
use crate::{
    ExitCode, Failure, admission_kinds, check_help, documents, exit_code, screen, unknown_fields, v1beta1,
};

/// Check whether webhooks are idempotent, safe to reinvoke, and honest about dry runs.
///
/// Calls webhooks with a corpus of objects, as kube-apiserver would, and reports each problem with the smallest object
/// that shows it. `admit verify --list` prints the checks.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Verify {
    /// Read webhook configurations, and the namespaces and custom resource definitions that they need, from these files
    /// or directories, or - for standard input. Other objects in them are stored only in the API server of
    /// --api-server-out. Configurations in the directories that --admission-control-config-file names are verified as
    /// well
    #[arg(short, long, value_name = "PATH", aliases = ["configurations", "with"], required_unless_present_any = ["context", "list", "explain", "admission_control_config_file"], num_args = 1..)]
    configuration: Vec<PathBuf>,

    /// Read the configurations from the cluster of this kubeconfig context; nothing is written to the cluster
    #[arg(long, value_name = "NAME")]
    context: Option<String>,

    #[command(flatten)]
    objects: Objects,

    /// List all checks, or only those that --check selects, without running them. Prints one check per line (with
    /// details if -v is set), or uses the format that --output specifies
    #[arg(long, help_heading = "Selection")]
    list: bool,

    /// Print the documentation of this check, such as V01, without running it
    #[arg(long, value_name = "ID", value_parser = check_help::known, help_heading = "Selection")]
    explain: Option<&'static Check>,

    /// Run only these checks, such as V01,V02; can be repeated
    #[arg(long, value_name = "IDS", value_delimiter = ',', value_parser = known_check, help_heading = "Selection")]
    check: Vec<&'static Check>,

    /// Skip this check, and show the reason in the report; can be repeated
    #[arg(long, value_name = "ID=REASON", value_parser = skip, help_heading = "Selection")]
    skip: Vec<Skip>,

    /// Call the webhooks behind this Service at this address; can be repeated
    #[arg(long, value_name = "NAMESPACE/NAME=HOST:PORT", help_heading = "Target")]
    service: Vec<ServiceMapping>,

    #[command(flatten)]
    admission_control: AdmissionControl,

    /// Call all other webhooks at this URL. For a Service, only the host and port are used, and TLS still verifies the
    /// name of the Service. A webhook's URL is replaced; its path is kept if this URL does not have one
    #[arg(long, value_name = "URL", value_parser = target::endpoint, help_heading = "Target")]
    endpoint: Option<Url>,

    /// Trust the CA certificates in this PEM file instead of the caBundle. Use it for configurations whose caBundle is
    /// injected later
    #[arg(long, value_name = "FILE", help_heading = "Target")]
    ca_file: Option<PathBuf>,

    /// Call webhooks on other machines without asking, and follow redirects to other hosts
    #[arg(long, help_heading = "Target")]
    yes: bool,

    /// Wait up to this many seconds for the webhooks to start
    #[arg(long, value_name = "SECONDS", default_value_t = 0, help_heading = "Target")]
    wait: u32,

    /// Repeat this shell command until it succeeds, for at most --wait seconds. Use it for webhooks that listen before
    /// they are ready: `curl -fs http://127.0.0.1:9090/readyz`
    #[arg(long, value_name = "COMMAND", requires = "wait", help_heading = "Target")]
    ready_command: Option<String>,

    /// Start an API server that contains the other objects of -c, and write its kubeconfig to this file. Start the
    /// webhooks with this kubeconfig, and pass --wait. V39, V40, and the writes of V38 and V42 are checked only with
    /// this option, because the server records what the webhooks write
    #[arg(long, value_name = "FILE", help_heading = "Target")]
    api_server_out: Option<PathBuf>,

    /// Serve the API server of --api-server-out on this address; port 0 uses a free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0", help_heading = "Target")]
    api_server_listen: SocketAddr,

    #[command(flatten)]
    interventions: Interventions,

    /// Use this namespace for objects that do not specify one
    #[arg(short, long, value_name = "NAMESPACE", default_value = "default", help_heading = "Target")]
    namespace: String,

    /// Check this many objects in parallel
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..), help_heading = "Pace")]
    jobs: u16,

    /// Make this many concurrent requests in the latency checks
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..), help_heading = "Pace")]
    concurrency: u16,

    /// Make this many concurrent requests in the overload checks
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..), help_heading = "Pace")]
    overload: u16,

    /// Report certificates that expire within this many days [default: 30, or a third of their lifetime if that is
    /// shorter]
    #[arg(long, value_name = "DAYS", help_heading = "Target")]
    horizon: Option<u32>,

    /// Create a subdirectory of this directory for each finding, with the smallest object, the reviews, and commands
    /// that send them again
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    proofs: Option<PathBuf>,

    /// Suppress progress and notes on standard error
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,

    #[command(flatten)]
    outputs: Outputs,

    #[command(subcommand)]
    command: Option<Subcommand>,
}

#[derive(Debug, clap::Subcommand)]
enum Subcommand {
    Merge(Merge),
}

/// The IDs of the checks that `--quick` runs.
const QUICK: [&str; 11] = ["V01", "V02", "V03", "V05", "V07", "V08", "V11", "V15", "V38", "V39", "V40"];

/// The number of times that `--quick` repeats the request for each object of the built-in corpus, to see whether the
/// response varies. The corpus has several objects of most kinds, so requests for each of these kinds are repeated more
/// often in total.
const QUICK_REPETITIONS: usize = 4;

/// The reason why `--quick` skips a check.
const SKIPPED_BY_QUICK: &str = "skipped by --quick";

const AFTER_HELP: &str = "\
Examples:
  Check in seconds whether a webhook is idempotent, safe to reinvoke, and
  honest about dry runs:
    admit verify -c injector.yaml --endpoint https://127.0.0.1:8443 --quick
  Before a release, run every check with all objects of the built-in corpus:
    admit verify -c injector.yaml --endpoint https://127.0.0.1:8443 --thorough
  Verify a webhook that listens on this machine, and write a proof of each finding:
    admit verify -c injector.yaml --service injector/webhook=127.0.0.1:8443 --proofs proofs
  Run one check with your own objects:
    admit verify -c injector.yaml -f deployments/ --check V01
  Check only the configurations, without calling anything:
    admit lint -c injector.yaml

Exit status:
    0  no findings of at least the severity of --fail-on, apart from those
       that --baseline accepts
    1  there are such findings
    2  the command line or an input file is invalid
    3  environment error, such as an unavailable port or cluster, or a failed --ready-command
    4  nothing was checked, or a webhook was never called
    6  no such findings, but a webhook did not return a valid response that
       a check needs, never used the API server of --api-server-out, or a check
       selected with --check could not run, usually because it requires another option
  130  stopped by SIGINT
  143  stopped by SIGTERM";

/// The kinds of objects that affect whether a webhook is called for other objects.
const MATTER_TO_MATCHING: [&str; 6] =
    ["Namespace", "CustomResourceDefinition", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"];

fn known_check(id: &str) -> Result<&'static Check, String> {
    VERIFY.check(id.trim())
}

fn skip(text: &str) -> Result<Skip, String> {
    Skip::parse(text, known_check)
}

/// The state for handling a signal that ends the run.
#[derive(Debug, Default)]
struct Interruption {
    /// Whether the checks have started. If so, an interrupted run still has a report.
    is_running: AtomicBool,
    /// The token that stops the checks.
    stop: CancellationToken,
}

impl Interruption {
    fn has_report(&self) -> bool {
        self.is_running.load(Ordering::Relaxed)
    }
}

impl Verify {
    pub(crate) async fn run(self) -> Result<ExitCode, Failure> {
        if let Some(Subcommand::Merge(merge)) = &self.command {
            return merge.run();
        }
        if let Some(check) = self.explain {
            screen::print(&check_help::explanation(check))?;
            return Ok(ExitCode::Ok);
        }
        if self.list {
            let checks: Vec<&Check> = self.checks().into_iter().map(|(check, _)| check).collect();
            list::print(&checks, self.outputs.output, self.outputs.verbose)?;
            return Ok(ExitCode::Ok);
        }
        let mut signals = exit_code::install_signal_handlers(1)?;
        let interruption = Interruption::default();
        let verification = self.verify(&interruption);
        tokio::pin!(verification);
        let signal = tokio::select! {
            outcome = &mut verification => return outcome,
            signal = signals.next() => signal,
        };
        if interruption.has_report() {
            interruption.stop.cancel();
            // The exit status is that of the signal, regardless of the findings.
            verification.await?;
        } else {
            screen::print_status("interrupted before the first check ran");
        }
        Ok(signal.into())
    }

    async fn verify(&self, interruption: &Interruption) -> Result<ExitCode, Failure> {
        let plugins = self.admission_control.read(&AdmissionPlugins::default())?;
        let configurations = self.configurations(&plugins.manifests).await?;
        let subjects = configurations.subjects()?;
        let converters = self.converters(&configurations.around)?;
        if subjects.is_empty() && converters.is_empty() {
            return Err(Failure::nothing_run("the configurations do not contain a webhook"));
        }
        let called = subjects.iter().chain(converters.iter().map(|converter| &converter.subject));
        let called: Vec<Subject> = called.cloned().collect();
        let files = self.outputs.create()?;
        let services = self.services();
        target::warn_about_unused(&services, &called);
        let redirects = target::consent(&called, &services, self.yes)?;

        let mut own_namespaces = corpus::namespaces(&subjects);
        own_namespaces.extend(self.objects.namespaces());
        let around = || configurations.around.iter().chain(&own_namespaces);
        let mut environment =
            Environment::new(Arc::new(services.clone()), ClusterFixture::new(around()), user())
                .with_redirects(redirects)
                .with_credentials(plugins.credentials);
        environment.namespace.clone_from(&self.namespace);
        if self.objects.quick && !self.objects.has_files() {
            environment.repetitions = QUICK_REPETITIONS;
            environment.removes_optional_fields = false;
        }
        let api_server = match &self.api_server_out {
            None => None,
            Some(kubeconfig) => {
                // Other input can be read only once. Unreadable objects are reported when the checks read the corpus.
                let objects = if self.objects.are_rereadable() {
                    Some(self.objects.corpus(&subjects, &configurations.around, &environment, true)?.objects)
                } else {
                    None
                };
                let objects = objects.into_iter().flatten().filter_map(Result::ok);
                let required = api_server::required(objects, around(), &self.namespace);
                Some(self.api_server(kubeconfig, around().chain(&required))?)
            }
        };
        let until = Deadline::after(Duration::from_secs(self.wait.into()));
        let reporter = Arc::new(ProgressReporter::new(self.quiet));
        if self.wait > 0 {
            reporter.report("waiting for the webhooks to start", 0, None, "");
        }
        let unreached = readiness::wait(&called, &environment, &services, until).await;
        if let Some(shell) = self.ready_command.as_ref().filter(|_| unreached.is_empty()) {
            readiness::run_until_success(shell, until).await.map_err(Failure::environment)?;
        }
        let corpus = self.objects.corpus(&subjects, &configurations.around, &environment, self.quiet)?;
        let checks = self.checks();
        let control = Control::for_checks(&checks).await?;
        let mut settings = self.settings(api_server.as_ref().map(|server| server.recorder.clone()));
        settings.control = control.as_ref().map(|control| Arc::clone(&control.webhook));
        let plan = Plan {
            environment,
            subjects: subjects.clone(),
            converters,
            checks,
            settings,
            objects: corpus.count,
            jobs: self.jobs.into(),
            progress: progress::observer(&reporter),
        };
        let left_out = corpus.left_out;
        interruption.is_running.store(true, Ordering::Relaxed);
        let stop = interruption.stop.cancelled();
        let report = harness::verify::run_until(plan, corpus.objects, stop).await;
        reporter.finish();
        let mut report = report?;
        if left_out > 0 && !report.webhooks.is_empty() {
            report.left_out.insert(objects::NOT_REPRESENTATIVE.to_owned(), left_out);
        }
        self.complete(&mut report, configurations.locations);
        report.addresses = target::addresses(&called, &services);
        report.note_unreached(unreached);
        report.unserved = api_server.as_ref().map(|server| server.recorder.unserved()).unwrap_or_default();
        self.outputs.mask(&mut report);
        if let Some(folder) = &self.proofs {
            let mut around = configurations.around;
            around.retain(|object| MATTER_TO_MATCHING.iter().any(|kind| object["kind"] == *kind));
            around.extend(own_namespaces);
            let has_called_api_server =
                api_server.as_ref().is_some_and(|server| server.recorder.was_contacted());
            let folder = folder.clone();
            Proofs { folder, subjects, services, around, has_called_api_server }.write(&mut report)?;
        }
        self.outputs.write(files, &mut report)
    }

    fn settings(&self, recorder: Option<Recorder>) -> Settings {
        Settings {
            concurrency: self.concurrency.into(),
            overload: self.overload.into(),
            control: None,
            horizon: self.horizon.map(|days| Duration::from_secs(u64::from(days) * 24 * 3600)),
            recorder,
            rotation: self.interventions.rotation(),
            stop: self.interventions.stop(),
        }
    }

    async fn configurations(&self, manifests: &Loaded) -> Result<Configurations, Failure> {
        let documents = documents::read_in_background(self.configuration.clone()).await?;
        admission_kinds::reject_unknown(documents.iter().map(|it| (it.place.clone(), &it.object)))?;
        unknown_fields::warn(documents.iter().filter(|document| is_configuration(&document.object)));
        let locations =
            locations::locations(documents.iter().filter(|document| is_configuration(&document.object)));
        let mut objects: Vec<(String, Value)> = documents
            .into_iter()
            .map(|document| (format!("{}: ", document.place), document.object))
            .collect();
        if let Some(context) = &self.context {
            objects.extend(cluster::read(context).await?.into_iter().map(|object| (String::new(), object)));
        }
        let mut found = Configurations { locations, ..Configurations::default() };
        for mut manifest in manifests.configurations().cloned() {
            target::redirect(&mut manifest, self.ca_file.as_deref(), self.endpoint.as_ref())?;
            found.manifests.push(manifest);
        }
        for (place, mut object) in objects {
            if is_configuration(&object) {
                v1beta1::warn(place.trim_end_matches(": "), &object);
                target::redirect(&mut object, self.ca_file.as_deref(), self.endpoint.as_ref())?;
                found.webhooks.push(object);
                found.places.push(place);
            } else {
                found.around.push(object);
            }
        }
        Ok(found)
    }

    /// Returns the conversion webhooks of the custom resource definitions among `objects`.
    fn converters(&self, objects: &[Value]) -> Result<Vec<Converter>, Failure> {
        let mut converters = Vec::new();
        for definition in objects {
            let Some(mut called) = Converter::configuration(definition) else { continue };
            target::redirect(&mut called, self.ca_file.as_deref(), self.endpoint.as_ref())?;
            let converter = Converter::new(definition, &called).map_err(|error| {
                let name = text(definition, &["metadata", "name"]);
                Failure::usage(format!("the conversion webhook of {name}: {error}"))
            })?;
            converters.extend(converter);
        }
        Ok(converters)
    }

    fn api_server<'a>(
        &self,
        kubeconfig: &Path,
        objects: impl IntoIterator<Item = &'a Value>,
    ) -> Result<RecordingServer, Failure> {
        if !self.api_server_listen.ip().is_loopback() {
            let message = "--api-server-listen: expected a loopback address";
            return Err(Failure::usage(message));
        }
        let server = RecordingServer::start(self.api_server_listen, kubeconfig, objects)?;
        let absolute = std::path::absolute(kubeconfig).unwrap_or_else(|_| kubeconfig.to_owned());
        let word = shell_word(&absolute.to_string_lossy());
        crate::screen::status!("start the webhooks with: export KUBECONFIG={word}");
        Ok(server)
    }

    fn services(&self) -> Services {
        let endpoint = self.endpoint.as_ref().map(|url| {
            let host = url.host_str().unwrap_or_default();
            let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
            (host, url.port_or_known_default().unwrap_or(443))
        });
        Services { known: service_map::by_service(self.service.clone()), endpoint }
    }

    fn checks(&self) -> Vec<(&'static Check, Option<String>)> {
        let chosen: BTreeSet<&str> = self.check.iter().map(|check| check.id).collect();
        let skipped: BTreeMap<&str, &String> =
            self.skip.iter().map(|skip| (skip.check.id, &skip.reason)).collect();
        let mut active = Vec::new();
        for check in checks::ALL {
            if self.objects.quick && !QUICK.contains(&check.id) {
                active.push((*check, Some(SKIPPED_BY_QUICK.to_owned())));
            } else if chosen.is_empty() || chosen.contains(check.id) {
                active.push((*check, skipped.get(check.id).map(|reason| (*reason).clone())));
            }
        }
        active
    }
}

fn is_configuration(object: &Value) -> bool {
    ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]
        .iter()
        .any(|kind| object["kind"] == *kind)
}

/// Returns the user who makes the requests.
fn user() -> UserInfo {
    UserInfo {
        username: "admit-verify".to_owned(),
        groups: vec!["system:authenticated".to_owned()],
        ..UserInfo::default()
    }
}
