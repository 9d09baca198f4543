//! The page of the checks is made from the checks: `UPDATE_EXPECT=1 cargo test --test verify` writes it.

use std::fmt::Write as _;

use expect_test::expect_file;
use harness::verify::{Audience, Probe, Severity, checks};

#[test]
fn the_page_of_the_checks_is_made_from_them() {
    let mut page = "\
# The checks of `admit verify`

W(x) is the object after the webhook's patch, decoded and with its defaults, as the API server would go on with it;
*equal* means equal to the API server. `--skip ID=REASON` leaves a check out, `--check IDS` runs only some.

"
    .to_owned();
    for check in checks::ALL {
        let severity = match check.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        let audience = match check.audience {
            Audience::All => "all webhooks",
            Audience::Mutating => "mutating webhooks",
            Audience::Validating => "validating webhooks",
        };
        let looks_at = match check.probe {
            Probe::Configuration(_) => "the configuration, without a call",
            Probe::Configurations(_) => "the configurations of all webhooks together, without a call",
            Probe::Webhook(_) => "each webhook alone",
            Probe::Object(_) => "each object of the corpus",
            Probe::Collection(_) => "all webhooks together, for each object",
            Probe::Intervention(..) => {
                "all webhooks at once while something is done to them, after everything else"
            }
        };
        let _ = writeln!(
            page,
            "<a id=\"{}\"></a>\n\n## {} {}\n\n{severity}; for {audience}; looks at {looks_at}\n\n{}\n\nSource: {}\n",
            check.id.to_lowercase(),
            check.id,
            check.title,
            check.why,
            check.source
        );
    }
    expect_file!["../../docs/checks.md"].assert_eq(&format!("{}\n", page.trim_end()));
}
