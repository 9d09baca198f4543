//! Checks that a real kube-apiserver sends the reviews that `admit verify` sends.
//!
//! A webhook is not faulty if it fails only on reviews that no server sends. Each check runs in process, and its
//! reviews are recorded. A real kube-apiserver then receives the request that each review describes, and both reviews
//! are compared.

mod differences;
mod judge;
mod requests;
mod sent;

use std::collections::BTreeMap;
use std::fmt;

use harness::verify::{Check, checks};

use self::differences::comparable;
use self::judge::RealServer;
use self::sent::SentReview;
use crate::case::Kind;
use crate::server::Server;
use crate::server_error::ServerError;

/// Returns the reason why a probe deliberately sends a review that this server never sends; `None` for other reviews.
fn elsewhere(sent: &SentReview) -> Option<&'static str> {
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

/// The results of the comparison.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// The number of checks whose probes ran.
    pub checks: usize,
    /// The number of reviews that were compared.
    pub compared: usize,
    /// The differences from the server's reviews, each with the checks and the request.
    pub differences: Vec<String>,
    /// The number of skipped reviews, by reason.
    pub left_out: BTreeMap<&'static str, usize>,
}

/// Compares the reviews of the checks that `wanted` selects.
///
/// # Errors
/// Returns an error if there is no server, or a fake does not start.
pub async fn compare(
    wanted: impl Fn(&Check) -> bool,
    tell: &(dyn Fn(&str) + Sync),
) -> Result<Comparison, ServerError> {
    let mut comparison = Comparison::default();
    let mut all = Reviews::default();
    for check in checks::ALL.iter().filter(|check| wanted(check)) {
        let sent = sent::sent_reviews(check).await?;
        tell(&format!("{}: {} reviews", check.id, sent.len()));
        all.add(check.id, sent);
        comparison.checks += 1;
    }
    let server = Server::apiserver().await?;
    let judge = RealServer::start(&server).await?;
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

/// The distinct reviews, each with the checks that send it.
#[derive(Default)]
struct Reviews {
    known: BTreeMap<(Kind, String), usize>,
    reviews: Vec<(SentReview, Vec<&'static str>)>,
}

impl Reviews {
    fn add(&mut self, check: &'static str, sent: Vec<SentReview>) {
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
