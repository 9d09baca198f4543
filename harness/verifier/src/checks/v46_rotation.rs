//! V46: a webhook uses a renewed certificate without a restart and without failed calls.

use std::time::Duration;

use admission_webhook_client::{CertificateFacts, Inspection};
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, join, join_all};
use tokio::time::{Instant, sleep};

use super::typical_request::{self, TypicalRequest};
use super::v41_latency::written;
use crate::check::{
    Audience, Check, Disruption, Observed, Probe, Repeatability, Severity, Skipped, Violation,
};
use crate::environment::Connection;
use crate::subject::Subject;
use crate::webhook_probe::{Rotation, WebhookProbe};

pub(super) const CHECK: Check = Check {
    id: "V46",
    title: "certificate rotation: the server presents a renewed certificate without a restart, and no call \
            fails while the bundle has both CAs",
    severity: Severity::Error,
    why: "Webhook certificates are renewed every few weeks, unattended. A server that reads its certificate \
          only at startup presents the old one until it has expired, and then every write that the webhook \
          matches fails until the server is restarted. If the CA changes too, the caBundle holds the old \
          and the new CA for a while: a call that fails even then reached a server in the middle of the \
          change. `--rotate-command` renews the certificates.",
    help: "Reload the certificate when its files change, for example with controller-runtime's certwatcher.",
    source: "kubevirt/kubevirt#15210, #5289; kubernetes-sigs/controller-runtime pkg/certwatcher",
    audience: Audience::All,
    repeatability: Repeatability::Varies,
    probe: Probe::Intervention(Disruption::Rotation, |webhook_probes| Box::pin(run(webhook_probes))),
};

/// The number of consecutive handshakes that confirm the new certificate.
const CONFIRMATIONS: u32 = 10;
/// The pause between two rounds of calls.
const PERIOD: Duration = Duration::from_millis(20);

type Command = Shared<BoxFuture<'static, Result<(), String>>>;

async fn run(webhook_probes: &[WebhookProbe<'_>]) -> Vec<Observed> {
    let Some(rotation) =
        webhook_probes.first().and_then(|webhook_probe| webhook_probe.settings.rotation.as_ref())
    else {
        let reason = "no command to renew the certificate: see --rotate-command";
        return webhook_probes.iter().map(|_| Err(Skipped::unequipped(reason))).collect();
    };
    let before = join_all(webhook_probes.iter().map(Before::new)).await;
    if before.iter().all(Result::is_err) {
        return before.into_iter().map(|before| before.map(|_| Vec::new())).collect();
    }
    let command = rotation.command.within(rotation.patience).shared();
    let following = before.into_iter().zip(webhook_probes).map(|(before, webhook_probe)| {
        let command = command.clone();
        async move { follow(webhook_probe, rotation, before?, command).await }
    });
    join(command.clone(), join_all(following)).await.1
}

/// The state of a webhook before its certificate is renewed.
struct Before<'a> {
    typical: TypicalRequest<'a>,
    leaf: Vec<u8>,
}

impl<'a> Before<'a> {
    async fn new(webhook_probe: &WebhookProbe<'a>) -> Result<Self, Skipped> {
        let subject = webhook_probe.renewed()?;
        let typical = TypicalRequest::new(webhook_probe, &subject).await?;
        let inspected = webhook_probe.environment.inspect(&subject.called).await;
        match inspected.map_err(Skipped::NotChecked)? {
            Inspection { complaint: Some(complaint), .. } => Err(Skipped::not_checked(format!(
                "the certificate is rejected before the renewal, see V45: \
                                                   {complaint}"
            ))),
            Inspection { chain, .. } => Ok(Self { typical, leaf: leaf(chain) }),
        }
    }
}

/// Returns the server's certificate from a chain, or empty bytes if the chain is empty.
fn leaf(chain: Vec<CertificateFacts>) -> Vec<u8> {
    chain.into_iter().next().map(|leaf| leaf.der).unwrap_or_default()
}

/// The failures of handshakes and calls during the renewal of the certificate.
#[derive(Debug, Default)]
struct Failures {
    calls: u64,
    failed: u64,
    first: Option<String>,
}

impl Failures {
    fn note(&mut self, result: Result<(), String>) {
        self.calls += 1;
        if let Err(reason) = result {
            self.failed += 1;
            self.first.get_or_insert(reason);
        }
    }

    fn violation(self) -> Option<Violation> {
        let message = format!(
            "with the old and the new CA in the bundle, {} of {} handshakes and calls failed during the \
             renewal, first: {}",
            self.failed, self.calls, self.first?
        );
        Some(Violation::new("fails during the certificate renewal", message))
    }
}

/// The results of a handshake and two calls.
struct RoundResult {
    /// The certificate that the server presented, if any.
    leaf: Option<Vec<u8>>,
    results: [Result<(), String>; 3],
}

/// Performs a handshake, and makes one call over a kept connection and one over a new connection.
async fn round(webhook_probe: &WebhookProbe<'_>, subject: &Subject, review: &Bytes) -> RoundResult {
    let environment = webhook_probe.environment;
    let (leaf, handshake) = match environment.inspect(&subject.called).await {
        Ok(inspection) => {
            let leaf = leaf(inspection.chain);
            ((!leaf.is_empty()).then_some(leaf), inspection.complaint.map_or(Ok(()), Err))
        }
        Err(reason) => (None, Err(reason)),
    };
    let call = async |connection| {
        typical_request::answered(&environment.call(&subject.called, review.clone(), connection).await)
    };
    RoundResult { leaf, results: [handshake, call(Connection::Kept).await, call(Connection::New).await] }
}

/// Calls a webhook until it has presented a new certificate in several handshakes, or until the time limit expires.
async fn follow(
    webhook_probe: &WebhookProbe<'_>,
    rotation: &Rotation,
    before: Before<'_>,
    command: Command,
) -> Observed {
    let mut failures = Failures::default();
    let mut renewed = 0;
    let mut ended = None;
    let mut shown_after = None;
    while renewed < CONFIRMATIONS {
        match command.peek() {
            Some(Err(reason)) => return Err(Skipped::not_checked(format!("--rotate-command: {reason}"))),
            Some(Ok(())) if webhook_probe.lacks_new_bundle() => {
                let reason = "--rotate-command has finished, but the file of --rotated-ca-bundle does not \
                              exist";
                return Err(Skipped::not_checked(reason));
            }
            Some(Ok(())) if ended.get_or_insert_with(Instant::now).elapsed() > rotation.patience => break,
            Some(Ok(())) | None => {}
        }
        let subject = webhook_probe.renewed()?;
        let round = round(webhook_probe, &subject, &before.typical.review).await;
        // A bundle that appeared during the round was written before the new certificate, so the calls could
        // not trust it yet.
        let is_outdated = webhook_probe.renewed()?.called.client_config != subject.called.client_config;
        if is_outdated && round.results.iter().any(Result::is_err) {
            continue;
        }
        if let Some(leaf) = round.leaf {
            renewed = if leaf == before.leaf { 0 } else { renewed + 1 };
            if renewed == 1 {
                shown_after = ended.map(|ended: Instant| ended.elapsed());
            }
        }
        round.results.into_iter().for_each(|result| failures.note(result));
        sleep(PERIOD).await;
    }
    webhook_probe.note(format!("{} handshakes and calls, {} failed", failures.calls, failures.failed));
    let mut violations: Vec<Violation> = failures.violation().into_iter().collect();
    if renewed == 0 {
        let message = format!(
            "{} after the end of --rotate-command, the server still presents the old certificate",
            written(rotation.patience)
        );
        violations.push(Violation::new("keeps the old certificate", message));
    } else if let Some(time) = shown_after {
        webhook_probe
            .note(format!("the server presented the new certificate {} after the command", written(time)));
    }
    Ok(violations)
}
