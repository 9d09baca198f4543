//! Parses the command line of `admit review`.

use std::path::PathBuf;

use harness::attributes::{Operation, UserInfo};
use harness::chain;
use harness::server::impersonated_user;

use super::record::RecordFlags;
use crate::admission_control::AdmissionControl;
use crate::admission_plugins::PluginFlags;
use crate::service_map::ServiceMapping;

/// Send one request through all webhooks, and show what each of them did.
///
/// The request goes to an API server in this process, which calls the webhooks in the configurations as kube-apiserver
/// would and stores the object in memory. Side effects of the webhooks are real, unless you pass --dry-run=server.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
pub(crate) struct Review {
    /// Send these objects: YAML or JSON files, directories, or - for standard input. Each object is sent in a separate
    /// request, one after another. For an AdmissionReview, the request that it contains is sent
    #[arg(short, long = "filename", value_name = "FILE", required_unless_present = "record", num_args = 1..)]
    pub(super) files: Vec<PathBuf>,
    /// Read webhook configurations, admission policies with their bindings and params, custom resource definitions, and
    /// namespaces from these files or directories, or - for standard input. Other objects are ignored; an unknown kind or
    /// version of admissionregistration.k8s.io is an error
    #[arg(
        short,
        long = "configuration",
        alias = "configurations",
        value_name = "FILE",
        num_args = 1..,
        required_unless_present_any = ["existing", "cluster", "fakes", "admission_control_config_file", "record"]
    )]
    pub(super) configurations: Vec<PathBuf>,
    /// Read objects that exist in the cluster from these files: namespaces with their labels, custom resource
    /// definitions, limit ranges, webhook configurations, and admission policies with their bindings and params. They
    /// do not go through admission
    #[arg(long = "with", value_name = "FILE", num_args = 1..)]
    pub(super) existing: Vec<PathBuf>,
    /// Show what the cluster that `admit pull` copied to this directory would decide, without connecting to it. Objects in
    /// -c and --with replace objects of the same kind, namespace, and name. admit calls a webhook of the cluster only if
    /// --service has the address of its Service, or if -c or --with contains a copy of its configuration with a URL;
    /// otherwise its response is unknown
    #[arg(long, value_name = "DIR")]
    pub(super) cluster: Option<PathBuf>,
    /// Read the old objects of updates and deletions, or the parents of subresources, from these files
    #[arg(long, value_name = "FILE")]
    pub(super) old: Vec<PathBuf>,

    /// Use this namespace for objects that do not specify one [default: default]. Without --cluster, the
    /// namespace is created if --with does not contain it
    #[arg(short, long, value_name = "NAMESPACE", help_heading = "Request")]
    pub(super) namespace: Option<String>,
    /// Perform this operation [default: create, or the one that the subresource supports; with --cluster,
    /// update for an object in the directory]
    #[arg(long, value_enum, ignore_case = true, value_name = "OPERATION", help_heading = "Request")]
    pub(super) operation: Option<OperationName>,
    /// Send the request to this subresource, such as `status`, `scale`, `eviction`, or `exec`
    #[arg(long, value_name = "NAME", help_heading = "Request")]
    pub(super) subresource: Option<String>,
    /// Add this option to the request, such as `fieldManager=me`, or `command=sh` for `exec`; can be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = option, help_heading = "Request")]
    pub(super) query: Vec<(String, String)>,
    /// Make the request as this user [default: kubernetes-admin]
    #[arg(long = "as", value_name = "USER", help_heading = "Request")]
    pub(super) user: Option<String>,
    /// Make the request as a member of this group; can be repeated
    #[arg(long = "as-group", value_name = "GROUP", requires = "user", help_heading = "Request")]
    pub(super) groups: Vec<String>,
    /// Make a dry run if the value is `server`; webhooks see `dryRun: true` in the review
    #[arg(long, value_enum, value_name = "WHICH", default_value = "none", help_heading = "Request")]
    pub(super) dry_run: DryRun,

    /// Call the webhooks behind this Service at this address; can be repeated
    #[arg(long, value_name = "NAMESPACE/NAME=HOST:PORT", help_heading = "Webhooks")]
    pub(super) service: Vec<ServiceMapping>,
    #[command(flatten)]
    pub(super) admission_control: AdmissionControl,
    #[command(flatten)]
    pub(super) plugins: PluginFlags,
    /// Start the fakes in this file (see `admit fakes`) and call them, too. Namespaces that are created, and `default`,
    /// get the label admit-fakes=enabled, unless --with contains them
    #[arg(long, value_name = "FILE", help_heading = "Webhooks")]
    pub(super) fakes: Option<PathBuf>,

    #[command(flatten)]
    pub(super) record: RecordFlags,

    /// Print reports in this format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value = "text", help_heading = "Output")]
    pub(super) output: Output,
    /// Show all details: defaults, audit annotations, and changes by the server
    #[arg(short, long, help_heading = "Output")]
    pub(super) verbose: bool,
    /// Write the report as an HTML page, which includes what --explain and --show-reviews show
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(super) html: Option<PathBuf>,
    #[command(flatten)]
    pub(super) contents: Contents,
}

/// The options that choose what reports contain.
#[derive(Debug, clap::Args)]
pub(crate) struct Contents {
    /// Include the review that each webhook received and its response in JSON and YAML. The response is left out for
    /// Secrets and tokens, unless you pass --show-secrets
    #[arg(long, help_heading = "Output")]
    pub(super) show_reviews: bool,
    /// Show the values of Secrets instead of masking them
    #[arg(long, help_heading = "Output")]
    pub(super) show_secrets: bool,
    /// For each webhook that was not called, show the criteria that did not match and the values that were compared
    #[arg(long, help_heading = "Output")]
    pub(super) explain: bool,
}

const USAGE: &str = "\
admit review -f <FILE>... -c <FILE>... [OPTIONS]
       admit review -f <FILE>... --with <FILE>... [OPTIONS]
       admit review -f <FILE>... --cluster <DIR> [OPTIONS]
       admit review -f <FILE>... --fakes <FILE> [OPTIONS]
       admit review --record <DIR> [NUMBER]... [OPTIONS]";

const EXAMPLES: &str = "\
Examples:
  admit review -f pod.yaml -c injector.yaml --service demo/injector=127.0.0.1:8443
  admit review -f pod.yaml -c webhooks/ --with namespaces.yaml -n shop --as jane --dry-run=server
  admit review -f new.yaml --old old.yaml --operation update -c policy.yaml -o json
  admit review -f pod.yaml -c webhooks/ --html review.html
  admit review -f manifests/ --cluster cluster/
  admit review --record records/ --denied
  admit review --record records/ 17
  kubectl get pod web -o yaml | admit review -f - --operation delete -c policy.yaml

Exit status:
    0  every request was admitted
    1  a request was denied
    2  the command line or an input file is invalid
    3  a request was rejected because a webhook did not return a valid response
    5  the decision depends on a feature that admit does not support
    6  the decision depends on webhooks that --cluster does not call, or
       admit pull did not read all objects
If several of 1, 3, 5, and 6 apply, the exit status is the lowest.";

/// The values of `--operation`.
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

/// The values of `--dry-run`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum DryRun {
    /// Not a dry run
    None,
    /// Store nothing on the server
    Server,
}

/// The values of `--output`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Output {
    /// Human-readable text
    Text,
    /// One report, or a list for several objects
    Json,
    /// One document per report
    Yaml,
}

impl Review {
    /// Returns the user of the request: the user of `--as`, or an administrator by default.
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
