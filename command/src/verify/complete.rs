//! Adds facts to the report that the verifier does not have.

use std::collections::{BTreeMap, BTreeSet};

use harness::verify::report::{Location, Report};

use super::Verify;
use crate::check_help;

impl Verify {
    /// Adds facts to the report that the verifier does not have, such as the locations of the webhooks.
    pub(super) fn complete(&self, report: &mut Report, locations: BTreeMap<String, Location>) {
        report.shard = self.objects.shard;
        report.locations = locations;
        report.options = self.given_options();
        let is_named = |id: &str| self.check.iter().any(|check| check.id == id);
        for check in &mut report.checks {
            check.page = check_help::url(&check.id);
        }
        for check in report.checks.iter_mut().filter(|check| is_named(&check.id)) {
            for result in &mut check.results {
                result.unequipped = false;
            }
        }
    }

    /// Returns the options on which the advice in the report depends and that the user passed.
    fn given_options(&self) -> BTreeSet<String> {
        let options = [
            ("-f", self.objects.has_files()),
            ("--annotation", !self.objects.annotation.is_empty()),
            ("--label", !self.objects.label.is_empty()),
            ("--ca-file", self.ca_file.is_some()),
            ("--wait", self.wait > 0),
        ];
        options.into_iter().filter(|(_, is_given)| *is_given).map(|(option, _)| option.to_owned()).collect()
    }
}
