//! Whether the webhooks can be called yet.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use harness::verify::{Laboratory, Subject};
use tokio::time::Instant;

use super::target::{Services, place};

/// How often a webhook that does not listen yet is tried.
const PERIOD: Duration = Duration::from_millis(200);

/// What servers answer for a path that nobody has told them of yet, and while they start.
const NOT_YET: [u16; 2] = [404, 503];

/// Waits until all webhooks are there, for `time` at most. Those of a server that shows no certificate by then cannot be
/// called: their names, by what is to be said of them. Whether the others answer is what the checks say.
pub(super) async fn wait(
    subjects: &[Subject],
    laboratory: &Laboratory,
    services: &Services,
    time: Duration,
) -> BTreeMap<String, Vec<String>> {
    let until = Instant::now() + time;
    let mut silent = BTreeSet::new();
    let mut unreached: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for subject in subjects {
        let place = place(subject, services);
        // One server is waited for once.
        while Instant::now() < until && !silent.contains(&place) && !is_there(subject, laboratory).await {
            tokio::time::sleep(PERIOD).await;
        }
        let (Some((host, port)), true) = (&place, !time.is_zero()) else { continue };
        if silent.contains(&place) || (Instant::now() >= until && !has_certificate(subject, laboratory).await)
        {
            let seconds = time.as_secs();
            let why = format!("nothing that speaks TLS at {host}:{port} within the {seconds} s of --wait");
            unreached.entry(why).or_default().push(subject.name());
            silent.insert(place);
        }
    }
    unreached
}

/// Whether a webhook takes connections, shows a certificate, and knows its path: servers listen before they have all
/// three.
async fn is_there(subject: &Subject, laboratory: &Laboratory) -> bool {
    if !has_certificate(subject, laboratory).await {
        return false;
    }
    let exchange = laboratory.post(&subject.called, "{}".into()).await;
    !exchange.reply.is_ok_and(|reply| NOT_YET.contains(&reply.status))
}

async fn has_certificate(subject: &Subject, laboratory: &Laboratory) -> bool {
    let inspection = laboratory.inspect(&subject.webhook).await;
    inspection.is_ok_and(|inspection| inspection.complaint.is_none() || !inspection.chain.is_empty())
}
