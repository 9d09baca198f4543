//! Defines the options of `admit review` that show recorded requests.

use std::path::PathBuf;

/// The options that select recorded requests.
#[derive(Debug, clap::Args)]
pub(in crate::review) struct RecordFlags {
    /// List the requests that `admit serve --record` recorded in this directory or file, or show those with the given
    /// numbers. Filter them with --namespace, --operation, --subresource, --as, and the options below
    #[arg(
        long,
        value_name = "DIR",
        help_heading = "Record",
        conflicts_with_all = [
            "files", "configurations", "existing", "cluster", "old", "query", "groups", "dry_run", "service", "fakes",
            "admission_control_config_file", "enable", "disable", "policy_order", "show_secrets",
        ]
    )]
    pub(in crate::review) record: Option<PathBuf>,
    /// Show the requests that have these numbers in the list
    #[arg(value_name = "NUMBER", requires = "record", help_heading = "Record")]
    pub(super) numbers: Vec<usize>,
    /// Show only requests for this resource, such as `pods` or `deployments.apps`
    #[arg(long, value_name = "RESOURCE", requires = "record", help_heading = "Record")]
    pub(super) resource: Option<String>,
    /// Show only requests that were not admitted
    #[arg(long, requires = "record", help_heading = "Record")]
    pub(super) denied: bool,
    /// Show only requests for which this webhook was called
    #[arg(long, value_name = "NAME", requires = "record", help_heading = "Record")]
    pub(super) webhook: Option<String>,
}
