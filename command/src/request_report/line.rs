//! Formats observed requests as the lines of a record.

use harness::chain::Sent;
use harness::server::{ObservedRequest, ResourceName};

use super::{Circumstances, Recorded, Report, Webhooks};
use crate::documents::DocumentLocation;

/// The file name extension of records.
pub(crate) const EXTENSION: &str = "jsonl";

/// Creates the report of an observed request, without its number and location.
///
/// The report contains the values of Secrets. With `responses`, it contains the responses of the webhooks.
pub(crate) fn report(request: ObservedRequest, responses: bool) -> Report {
    let served = request.server.resource(&ResourceName::Named(request.resource.clone()));
    let recorded = Recorded {
        number: 0,
        time: request.received,
        verb: request.verb.clone(),
        audit_id: request.audit_id.clone(),
        user_agent: request.user_agent.clone(),
    };
    let api_server = request.server.clone();
    let (old, took) = (request.old.clone(), request.took);
    let webhooks = Webhooks::in_order(request.webhooks.clone());
    let patch = request.sent.clone().filter(|sent| !sent.is_null() && request.verb == "patch");
    let (sent_request, sent) = Sent::of_observed(request);
    let circumstances = Circumstances {
        place: &DocumentLocation { file: String::new(), line: 0 },
        request: &sent_request,
        served: served.as_ref(),
        old,
        webhooks: &webhooks,
        cluster: None,
        unbound: &[],
        took,
        notes: Vec::new(),
        explain: true,
        reviews: responses,
        recorded: Some(recorded),
        patch,
    };
    let mut report = Report::new(circumstances, &sent, &api_server);
    if served.is_none()
        && let ResourceName::Named(resource) = sent_request.resource
    {
        report.name_resource(resource, sent_request.namespace);
    }
    report
}

/// Formats a report as a line of the record. The line does not contain the responses of the webhooks.
///
/// The number and the location of the request follow from the position of the line.
pub(crate) fn line(mut report: Report, shows_secrets: bool) -> String {
    report.without_responses();
    if !shows_secrets {
        report.mask_secrets();
    }
    // Serialization cannot fail: all members are strings, numbers, and JSON.
    let mut line = serde_json::to_string(&report).unwrap_or_default();
    line.push('\n');
    line
}
