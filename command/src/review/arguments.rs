//! The command line of `admit review`.

use std::path::PathBuf;

use harness::attributes::{Operation, UserInfo};
use harness::chain;
use harness::server::impersonated_user;

use super::record::RecordFlags;
use crate::admission_control::AdmissionControl;
use crate::admission_plugins::PluginFlags;
use crate::service_map::ServiceMapping;

/// Sends one request through the whole chain of webhooks, and shows what each of them did.
///
/// The request goes to an API server in this process, which calls the webhooks of the configurations as kube-apiserver
/// would. Nothing is stored outside of it; webhooks with side effects have them unless `--dry-run=server` is given.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Review {
    /// The objects under review: files of YAML or JSON, folders, `-` for standard input. Each is a request of its own,
    /// one after the other. An AdmissionReview is the request that it holds
    #[arg(short, long = "filename", value_name = "FILE", required_unless_present = "record")]
    pub(super) files: Vec<PathBuf>,
    /// Webhook configurations: files, folders, `-`. Other objects in them are left out
    #[arg(short, long, value_name = "FILE", required_unless_present_any = ["fakes", "admission_control_config_file", "record"])]
    pub(super) configurations: Vec<PathBuf>,
    /// Objects that exist in the cluster: namespaces with their labels, definitions of custom resources, limit ranges.
    /// They are not admitted
    #[arg(long = "with", value_name = "FILE")]
    pub(super) existing: Vec<PathBuf>,
    /// The objects as they were before an update or a deletion, or that a subresource belongs to
    #[arg(long, value_name = "FILE")]
    pub(super) old: Vec<PathBuf>,

    /// The namespace of objects that do not name one [default: default]. It is created if `--with` does not have it
    #[arg(short, long, value_name = "NAMESPACE", help_heading = "Request")]
    pub(super) namespace: Option<String>,
    /// The operation [default: create, or for a subresource the one that it supports]
    #[arg(long, value_enum, value_name = "OPERATION", help_heading = "Request")]
    pub(super) operation: Option<OperationName>,
    /// The subresource, such as `status`, `scale`, `eviction` or `exec`
    #[arg(long, value_name = "NAME", help_heading = "Request")]
    pub(super) subresource: Option<String>,
    /// An option of the request, such as `fieldManager=me`, or `command=sh` for `exec`
    #[arg(long, value_name = "KEY=VALUE", value_parser = option, help_heading = "Request")]
    pub(super) query: Vec<(String, String)>,
    /// The user who makes the request [default: kubernetes-admin]
    #[arg(long = "as", value_name = "USER", help_heading = "Request")]
    pub(super) user: Option<String>,
    /// A group of --as; may be given several times
    #[arg(long = "as-group", value_name = "GROUP", requires = "user", help_heading = "Request")]
    pub(super) groups: Vec<String>,
    /// `server` asks for a dry run, which webhooks see in the review
    #[arg(long, value_enum, value_name = "WHICH", default_value = "none", help_heading = "Request")]
    pub(super) dry_run: DryRun,

    /// Reach a service that a clientConfig names at this address; may be given several times
    #[arg(long, value_name = "NAMESPACE/NAME=HOST:PORT", help_heading = "Webhooks")]
    pub(super) service: Vec<ServiceMapping>,
    #[command(flatten)]
    pub(super) admission_control: AdmissionControl,
    #[command(flatten)]
    pub(super) plugins: PluginFlags,
    /// Start the fakes of this file (see `admit fakes`) and call them too. Namespaces that are created, and `default`,
    /// get the label admit-fakes=enabled, unless `--with` has them
    #[arg(long, value_name = "FILE", help_heading = "Webhooks")]
    pub(super) fakes: Option<PathBuf>,

    #[command(flatten)]
    pub(super) record: RecordFlags,

    /// Output format of the reports; the schema of json and yaml is in docs/guide/review.md
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value = "text", help_heading = "Output")]
    pub(super) output: Output,
    /// Show all details: defaults, audit annotations, the server's own changes
    #[arg(short, long, help_heading = "Output")]
    pub(super) verbose: bool,
    /// Show the values of Secrets, which are masked otherwise
    #[arg(long, help_heading = "Output")]
    pub(super) show_secrets: bool,
    /// For each webhook that was not called, show which test did not match and what it compared
    #[arg(long, help_heading = "Output")]
    pub(super) explain: bool,
}

const EXAMPLES: &str = "\
Examples:
  admit review -f pod.yaml -c injector.yaml --service demo/injector=127.0.0.1:8443
  admit review -f pod.yaml -c webhooks/ --with namespaces.yaml -n shop --as jane --dry-run=server
  admit review -f new.yaml --old old.yaml --operation update -c policy.yaml -o json
  admit review --record records/ --denied
  admit review --record records/ 17
  kubectl get pod web -o yaml | admit review -f - --operation delete -c policy.yaml

Exit status: 0 admitted, 1 denied, 3 a webhook gave no valid answer and that decided, 5 admit does not imitate it; of
several objects the worst: 1 before 3 before 5.";

/// `--operation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OperationName {
    Create,
    Update,
    Delete,
    Connect,
}

impl From<OperationName> for Operation {
    fn from(name: OperationName) -> Self {
        match name {
            OperationName::Create => Self::Create,
            OperationName::Update => Self::Update,
            OperationName::Delete => Self::Delete,
            OperationName::Connect => Self::Connect,
        }
    }
}

/// `--dry-run`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum DryRun {
    /// The request is meant
    None,
    /// The server is asked to store nothing
    Server,
}

/// `--output`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Output {
    /// Human-readable text
    Text,
    /// One report, or for several objects a list of them
    Json,
    /// One document per report
    Yaml,
}

impl Review {
    /// Who asks.
    pub(super) fn user(&self) -> UserInfo {
        match &self.user {
            Some(name) => impersonated_user(name, self.groups.clone()),
            None => chain::administrator(),
        }
    }
}

fn option(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}
