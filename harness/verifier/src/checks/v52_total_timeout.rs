//! V52: the timeouts of the mutating webhooks for one request are less than a client's timeout.

use std::time::Duration;

use kubernetes_admission::config::{ReinvocationPolicy, Webhook};

use super::common_requests::{Certainty, Common, UNKNOWN_OBJECTS};
use super::match_outcome;
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::subject::Subject;
use crate::webhook_probe::ConfigurationSet;

pub(super) const CHECK: Check = Check {
    id: "V52",
    title: "total timeout: the timeouts of all mutating webhooks for one request, in both rounds, are less \
            than 30 s",
    severity: Severity::Warning,
    why: "Mutating webhooks are called one after the other, and those with reinvocationPolicy IfNeeded may \
          be called twice. The API server gives a write 34 s in total, and many clients give up after 30 s. \
          If the timeouts of the webhooks add up to more, slow webhooks fail the request regardless of \
          failurePolicy, even with Ignore.",
    help: "Lower timeoutSeconds, starting with the longest.",
    source: "apiserver pkg/endpoints/handlers/rest.go, requestTimeoutUpperBound; Gardener, shoot_status.md; \
             kubernetes \
             test/integration/apiserver/admissionwebhook/timeout_test.go",
    audience: Audience::Mutating,
    repeatability: Repeatability::Same,
    probe: Probe::Configurations(run),
};

/// The request timeout of a typical client.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(30);

fn run(configuration_set: &ConfigurationSet<'_>) -> Observed {
    let subjects = configuration_set.subjects;
    if with_rules(subjects).is_empty() {
        return Err(Skipped::not_applicable("no webhook has rules: none is ever called"));
    }
    let webhooks = with_rules(subjects);
    let longest = |certainty| {
        let first = |webhook| Common::new(webhook, configuration_set.cluster_fixture, certainty);
        longest(&first, None, &[], &webhooks)
    };
    if let Some((common, called)) = longest(Certainty::Certain) {
        return Ok(vec![violation(&common, &called)]);
    }
    match longest(Certainty::Possible) {
        None => Ok(Vec::new()),
        Some((common, _)) => Err(match_outcome::unclear(&common.to_string(), UNKNOWN_OBJECTS)),
    }
}

fn violation(common: &Common<'_>, webhooks: &[&Webhook]) -> Violation {
    let called: Vec<String> = webhooks
        .iter()
        .map(|webhook| {
            let twice = match webhook.reinvocation_policy {
                ReinvocationPolicy::IfNeeded => " twice",
                ReinvocationPolicy::Never => "",
            };
            let id = &webhook.id;
            format!("{}/{} {} s{twice}", id.configuration, id.name, webhook.timeout.as_secs())
        })
        .collect();
    let message = format!("for {common}, the API server may wait for {}", called.join(", "));
    let violation = Violation::new("timeouts add up", message).at("timeoutSeconds");
    // The violation is about the webhook with the longest timeout, which should be lowered first.
    let longest = webhooks.iter().rev().max_by_key(|webhook| webhook.timeout);
    longest.map_or(violation.clone(), |webhook| violation.about(&webhook.id))
}

fn with_rules<'a>(subjects: &[&'a Subject]) -> Vec<&'a Webhook> {
    let webhooks = subjects.iter().map(|subject| &*subject.webhook);
    webhooks.filter(|webhook| !webhook.rules.is_empty()).collect()
}

/// Returns webhooks that are all called for one request and may together exceed the timeout.
///
/// The result contains the webhooks in `chosen`, which are called for `common`, and some of the webhooks in `open`.
/// `first` returns the requests for the first webhook. Returns `None` if no request can exceed the timeout.
fn longest<'a>(
    first: &dyn Fn(&'a Webhook) -> Option<Common<'a>>,
    common: Option<&Common<'a>>,
    chosen: &[&'a Webhook],
    open: &[&'a Webhook],
) -> Option<(Common<'a>, Vec<&'a Webhook>)> {
    if worst(chosen) + worst(open) < CLIENT_TIMEOUT {
        return None;
    }
    let Some((next, rest)) = open.split_first() else {
        return adds_up(chosen).then_some((common?.clone(), chosen.to_vec()));
    };
    let with = common.map_or_else(|| first(next), |common| common.and(next));
    let with = with.and_then(|with| longest(first, Some(&with), &[chosen, &[next]].concat(), rest));
    with.or_else(|| longest(first, common, chosen, rest))
}

/// Returns whether a request may cause more than one call. L06 checks the timeout of a single call.
fn adds_up(webhooks: &[&Webhook]) -> bool {
    match webhooks {
        [] => false,
        [alone] => alone.reinvocation_policy == ReinvocationPolicy::IfNeeded,
        [_, _, ..] => true,
    }
}

/// Returns the maximum total duration of calls to `webhooks`.
fn worst(webhooks: &[&Webhook]) -> Duration {
    let times = webhooks.iter().map(|webhook| match webhook.reinvocation_policy {
        ReinvocationPolicy::IfNeeded => webhook.timeout * 2,
        ReinvocationPolicy::Never => webhook.timeout,
    });
    times.sum()
}
