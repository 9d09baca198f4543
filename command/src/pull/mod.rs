//! `admit pull`: copies a cluster's admission configuration to files. It only sends GET requests.

mod folder;
mod object_file;
mod pulled_cluster;
mod read;
mod reader;
mod references;
mod report;
mod resources;

use std::path::PathBuf;

use self::folder::Folder;
pub(crate) use self::pulled_cluster::PulledCluster;
use self::read::Pulled;
use self::report::{Origin, Report};
use crate::cluster_client::ClusterArguments;
use crate::progress::ProgressReporter;
use crate::{ExitCode, Failure, machine_readable, screen};

/// Copy a cluster's admission configuration to files.
///
/// The command reads webhook configurations, admission policies with their bindings and params, namespaces, custom resource
/// definitions, RBAC, limit ranges, quotas, and the names of service accounts. It also reads priority, storage, runtime, and
/// ingress classes, and the Services of webhooks with their endpoints. It never reads Secrets and never writes to the cluster.
/// Each object has its own file without fields that the server sets, so that the directory can be kept in git.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Pull {
    /// Write to this directory, which must be new, empty, or from a previous pull. Files of objects that no longer exist
    /// are removed; other files are not changed
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// Read namespaced objects only from this namespace, except for Services and params in other namespaces that webhooks
    /// and bindings name; can be repeated [default: all namespaces]
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Vec<String>,

    #[command(flatten)]
    cluster: ClusterArguments,

    /// Print the report in this format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value = "text", help_heading = "Output")]
    output: Output,
}

/// The values of `--output`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    /// Human-readable text
    Text,
    Json,
    Yaml,
}

const EXAMPLES: &str = "\
Examples:
  admit pull --out cluster/
  admit pull --out cluster/ --context staging -n shop -n payments
  admit pull --out cluster/ -o json

Exit status:
    0  everything was read and written
    2  the command line is invalid, or the directory is not from a pull
    3  the cluster does not respond, or a file cannot be written
    6  the directory was written, but a part of the cluster could not be read";

impl Pull {
    pub(crate) async fn run(self) -> Result<ExitCode, Failure> {
        let mut folder = Folder::open(&self.out)?;
        let (client, server_version) = self.cluster.connect_with_version().await?;
        let mut namespaces = self.namespace;
        namespaces.sort();
        namespaces.dedup();
        let origin = Origin { context: self.cluster.context_name(), server_version, namespaces };
        folder.prepare()?;
        let progress = ProgressReporter::new(!screen::redraws());
        let mut pulled = Pulled::new(client, &mut folder, &origin.namespaces, &progress);
        pulled.read().await?;
        let (objects, mut unread) = pulled.into_parts();
        progress.finish();
        unread.sort();
        let files = folder.publish(&origin, &unread)?;
        let is_complete = unread.is_empty();
        let report = Report::new(self.out.display().to_string(), origin, objects, files, unread);
        match self.output {
            Output::Text => screen::print(&report.text())?,
            Output::Json => screen::print_document(&machine_readable::json(&report)?)?,
            Output::Yaml => screen::print_document(&machine_readable::yaml(&report)?)?,
        }
        Ok(if is_complete { ExitCode::Ok } else { ExitCode::NotChecked })
    }
}
