//! V46: a renewed certificate is shown without a restart, and no call fails meanwhile.

use std::time::Duration;

use admission_webhook_client::{CertificateFacts, Inspection};
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, join, join_all};
use tokio::time::{Instant, sleep};

use super::usual::{self, Usual};
use super::v41_latency::written;
use crate::check::{Audience, Check, Observed, Obstacle, Occasion, Probe, Severity, Violation};
use crate::environment::Connection;
use crate::subject::Subject;
use crate::webhook_probe::{Rotation, WebhookProbe};

pub(super) const CHECK: Check = Check {
    id: "V46",
    title: "rotation: a renewed certificate is shown without a restart, and with both CAs in the bundle no call fails",
    severity: Severity::Error,
    why: "Certificates of webhooks are renewed every few weeks, while nobody looks. A server that reads its certificate \
          only at the start shows the old one until it has expired, and then every write that the webhook matches fails \
          until somebody restarts it. Where the authority changes too, the new one stands beside the old one in the \
          caBundle for a while: a call that fails even then has met a server between two certificates. \
          `--rotate-command` renews them.",
    source: "kubevirt/kubevirt#15210, #5289; kubernetes-sigs/controller-runtime pkg/certwatcher",
    audience: Audience::All,
    probe: Probe::Intervention(Occasion::Rotation, |stations| Box::pin(run(stations))),
};

/// How many handshakes in a row show that the new certificate stays.
const SURE: u32 = 10;
/// How long nothing is asked between two rounds of calls.
const PERIOD: Duration = Duration::from_millis(20);

type Command = Shared<BoxFuture<'static, Result<(), String>>>;

async fn run(stations: &[WebhookProbe<'_>]) -> Vec<Observed> {
    let Some(rotation) = stations.first().and_then(|webhook_probe| webhook_probe.settings.rotation.as_ref())
    else {
        let reason = "no command is given that renews its certificate: see --rotate-command";
        return stations.iter().map(|_| Err(Obstacle::unequipped(reason))).collect();
    };
    let before = join_all(stations.iter().map(Before::of)).await;
    if before.iter().all(Result::is_err) {
        return before.into_iter().map(|before| before.map(|_| Vec::new())).collect();
    }
    let command = rotation.command.within(rotation.patience).shared();
    let following = before.into_iter().zip(stations).map(|(before, webhook_probe)| {
        let command = command.clone();
        async move { follow(webhook_probe, rotation, before?, command).await }
    });
    join(command.clone(), join_all(following)).await.1
}

/// A webhook before its certificate is renewed.
struct Before<'a> {
    usual: Usual<'a>,
    leaf: Vec<u8>,
}

impl<'a> Before<'a> {
    async fn of(webhook_probe: &WebhookProbe<'a>) -> Result<Self, Obstacle> {
        let subject = webhook_probe.renewed()?;
        let usual = Usual::of(webhook_probe, &subject).await?;
        let inspected = webhook_probe.environment.inspect(&subject.called).await;
        match inspected.map_err(Obstacle::NotChecked)? {
            Inspection { complaint: Some(complaint), .. } => {
                Err(Obstacle::not_checked(format!("its certificate is refused before, see V45: {complaint}")))
            }
            Inspection { chain, .. } => Ok(Self { usual, leaf: leaf(chain) }),
        }
    }
}

/// The server's own certificate of a chain; empty if it showed none.
fn leaf(chain: Vec<CertificateFacts>) -> Vec<u8> {
    chain.into_iter().next().map(|leaf| leaf.der).unwrap_or_default()
}

/// What went wrong while the certificate was renewed.
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
            "with the old and the new CA in the bundle, {} of {} handshakes and calls failed meanwhile, first: {}",
            self.failed, self.calls, self.first?
        );
        Some(Violation::new("fails while its certificate is renewed", message))
    }
}

/// What one round of a handshake and two calls came to.
struct Asked {
    /// The certificate that was shown, if any was.
    leaf: Option<Vec<u8>>,
    results: [Result<(), String>; 3],
}

/// A handshake, a call over a kept connection, and one over a new one.
async fn round(webhook_probe: &WebhookProbe<'_>, subject: &Subject, review: &Bytes) -> Asked {
    let environment = webhook_probe.environment;
    let (leaf, handshake) = match environment.inspect(&subject.called).await {
        Ok(inspection) => {
            let leaf = leaf(inspection.chain);
            ((!leaf.is_empty()).then_some(leaf), inspection.complaint.map_or(Ok(()), Err))
        }
        Err(reason) => (None, Err(reason)),
    };
    let call = async |connection| {
        usual::answered(&environment.call(&subject.called, review.clone(), connection).await)
    };
    Asked { leaf, results: [handshake, call(Connection::Kept).await, call(Connection::New).await] }
}

/// Calls a webhook, over new connections and a kept one, until it has shown a new certificate for a while or had the time
/// to.
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
    while renewed < SURE {
        match command.peek() {
            Some(Err(reason)) => return Err(Obstacle::not_checked(format!("--rotate-command: {reason}"))),
            Some(Ok(())) if webhook_probe.lacks_new_bundle() => {
                let reason = "--rotate-command has ended, and what --rotated-ca-bundle names is not there";
                return Err(Obstacle::not_checked(reason));
            }
            Some(Ok(())) if ended.get_or_insert_with(Instant::now).elapsed() > rotation.patience => break,
            Some(Ok(())) | None => {}
        }
        let subject = webhook_probe.renewed()?;
        let round = round(webhook_probe, &subject, &before.usual.review).await;
        // A new bundle that came to be meanwhile was there before the new certificate, and the calls did not know it.
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
            "{} after the end of --rotate-command it still shows the certificate that it had before",
            written(rotation.patience)
        );
        violations.push(Violation::new("keeps the old certificate", message));
    } else if let Some(time) = shown_after {
        webhook_probe.note(format!("the new certificate was shown {} after the command", written(time)));
    }
    Ok(violations)
}
