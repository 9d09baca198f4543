//! The options of `admit review` that show recorded requests.

use std::path::PathBuf;

/// The options that select recorded requests.
#[derive(Debug, clap::Args)]
pub(in crate::review) struct RecordFlags {
    /// List the requests that `admit serve --record` wrote down, or show those with the numbers given: a folder or one
    /// file of it. Filters: --namespace, --operation, --subresource, --as, and those below
    #[arg(
        long,
        value_name = "DIR",
        help_heading = "Record",
        conflicts_with_all = [
            "files", "configurations", "existing", "old", "query", "groups", "dry_run", "service", "fakes",
            "admission_control_config_file", "enable", "disable", "show_secrets",
        ]
    )]
    pub(in crate::review) record: Option<PathBuf>,
    /// The numbers of the requests to show, as listed
    #[arg(value_name = "NUMBER", requires = "record", help_heading = "Record")]
    pub(super) numbers: Vec<usize>,
    /// Only requests for this resource, such as `pods` or `deployments.apps`
    #[arg(long, value_name = "RESOURCE", requires = "record", help_heading = "Record")]
    pub(super) resource: Option<String>,
    /// Only requests that were not admitted
    #[arg(long, requires = "record", help_heading = "Record")]
    pub(super) denied: bool,
    /// Only requests for which this webhook was called
    #[arg(long, value_name = "NAME", requires = "record", help_heading = "Record")]
    pub(super) webhook: Option<String>,
}
