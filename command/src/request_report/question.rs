//! Reports which webhooks the server would call for a request that was not sent.

use std::sync::Arc;

use harness::event::{Conditions, Event, Record, Round};
use harness::matching::{Decided, Decision};
use harness::server::{ApiServer, WebhookMatches};
use harness::status::Status;

use super::Webhooks;
use super::explain::Facts;
use super::webhooks::WebhookReport;

/// Returns a report on each webhook in dispatch order. `called` means that the server would call the webhook.
pub(crate) fn webhooks(matches: WebhookMatches, server: &ApiServer) -> Vec<WebhookReport> {
    let WebhookMatches { attributes, webhooks: decided, .. } = matches;
    let mut record = Record::default();
    let mut called = Vec::with_capacity(decided.len());
    let mut all = Vec::with_capacity(decided.len());
    let round = Round::First;
    for (phase, webhook, Decided { decision, conditions }) in decided {
        let id = || Arc::clone(&webhook.id);
        if let Some(evaluation) = conditions {
            let failure_policy = webhook.failure_policy;
            let evaluated = Conditions { webhook: id(), phase, round, failure_policy, evaluation };
            record.events.push(Event::Conditions(Box::new(evaluated)));
        }
        called.push(matches!(decision, Decision::Call(_)));
        let failed = |status| Event::MatchFailed { webhook: id(), phase, round, status };
        let event = match decision {
            Decision::Call(_) => None,
            Decision::Skip(mismatch) => Some(Event::Skipped { webhook: id(), phase, round, mismatch }),
            Decision::Refuse(status) => Some(failed(status)),
            Decision::Unconvertible(error) => {
                Some(failed(Box::new(Status::internal_error(&error.to_string()))))
            }
        };
        record.events.extend(event);
        all.push((phase, webhook));
    }
    let facts = Facts::of_attributes(attributes, server, record.events.len());
    let mut reports = Webhooks::in_order(all).reports(&record, Some(&facts), true);
    for (report, called) in reports.iter_mut().zip(called) {
        report.called = called;
        report.considered = true;
    }
    reports
}
