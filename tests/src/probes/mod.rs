//! Whether a real kube-apiserver sends the reviews that `admit verify` sends.
//!
//! A webhook that fails on a review that no server sends is not to blame. Each check runs in process, and what its probes
//! send is written down; then a real kube-apiserver gets the request of which such a review tells, and what it sends is
//! compared.

mod differences;
mod judge;
mod requests;
mod sent;

use std::collections::BTreeMap;
use std::fmt;

use harness::verify::{Check, checks};

use self::differences::comparable;
use self::judge::Judge;
use self::sent::Sent;
use crate::case::Kind;
use crate::server::{Server, ServerError};

/// Why a probe sends on purpose what this server does not send, and a webhook is to blame nevertheless.
fn elsewhere(sent: &Sent) -> Option<&'static str> {
    let object = &sent.request["object"];
    let text = sent.request.to_string();
    if text.contains("admitUnknown") {
        return Some("a later version of Kubernetes has fields that this one does not know");
    }
    let is_unreadable = object["metadata"].is_string() || object["data"].is_number();
    is_unreadable.then_some(
        "what a webhook answers when it cannot read the object is seen by an object that it cannot read",
    )
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// Checks whose probes were run.
    pub checks: usize,
    /// Reviews that were compared.
    pub compared: usize,
    /// What the server sends otherwise, with the checks and the request.
    pub differences: Vec<String>,
    /// Why reviews were left out, and how many.
    pub left_out: BTreeMap<&'static str, usize>,
}

/// Compares what the probes of the checks that `wanted` picks send.
///
/// # Errors
/// There is no server, or a fake does not start.
pub async fn compare(
    wanted: impl Fn(&Check) -> bool,
    tell: &(dyn Fn(&str) + Sync),
) -> Result<Comparison, ServerError> {
    let mut comparison = Comparison::default();
    let mut all = Reviews::default();
    for check in checks::ALL.iter().filter(|check| wanted(check)) {
        let sent = sent::of(check).await?;
        tell(&format!("{}: {} reviews", check.id, sent.len()));
        all.add(check.id, sent);
        comparison.checks += 1;
    }
    let server = Server::apiserver().await?;
    let judge = Judge::start(&server).await?;
    for (sent, checks) in &all.reviews {
        if let Some(why) = elsewhere(sent) {
            *comparison.left_out.entry(why).or_default() += 1;
            continue;
        }
        let found = match judge.replay(sent).await {
            Ok(request) => differences::between(&sent.request, &request),
            Err(reason) if differences::is_known(&sent.request, &reason) => Vec::new(),
            Err(reason) => vec![reason],
        };
        comparison.compared += 1;
        if comparison.compared.is_multiple_of(100) {
            tell(&format!("{} of {} compared", comparison.compared, all.reviews.len()));
        }
        if !found.is_empty() {
            comparison.differences.push(format!("{}: {sent}\n  {}", checks.join(", "), found.join("\n  ")));
        }
    }
    Ok(comparison)
}

/// Reviews, each once, with the checks that send it.
#[derive(Default)]
struct Reviews {
    known: BTreeMap<(Kind, String), usize>,
    reviews: Vec<(Sent, Vec<&'static str>)>,
}

impl Reviews {
    fn add(&mut self, check: &'static str, sent: Vec<Sent>) {
        for sent in sent {
            let key = (sent.kind, comparable(&sent.request).to_string());
            if let Some((_, checks)) = self.known.get(&key).and_then(|place| self.reviews.get_mut(*place)) {
                checks.push(check);
            } else {
                self.known.insert(key, self.reviews.len());
                self.reviews.push((sent, vec![check]));
            }
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { checks, compared, differences, left_out } = self;
        write!(f, "{compared} reviews of {checks} checks compared, {} differ", differences.len())?;
        left_out.iter().try_for_each(|(why, count)| write!(f, "\n{count} left out: {why}"))
    }
}
