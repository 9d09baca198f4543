//! Random situations on both servers: a search for differences that nobody thought of.
//!
//! Situation `k` of a seed depends on both numbers only. It is a case like those that people write, run by the same
//! code, and compared by the same code with what the real server did at the same time.

mod behaviour;
mod judgement;
mod random;
mod requests;
mod shrink;
mod situation;
mod webhooks;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use futures::StreamExt as _;
use serde_json::Value;

use crate::known_differences::KnownDifferences;
use crate::replay::{Verdict, compare};
use crate::server::{Server, ServerError};
use crate::yaml;
use judgement::{Judgement, Pair, judged, run_both};
pub use situation::Situation;

/// What to search, and how.
#[derive(Clone, Debug)]
pub struct Search {
    /// From which all situations follow.
    pub seed: u64,
    /// The number of the first situation.
    pub first: u64,
    /// How many situations.
    pub cases: u64,
    /// How many at a time.
    pub jobs: usize,
    /// Where cases are written that show a difference: `<out>/seed-<N>-<k>/case.yaml`.
    pub out: PathBuf,
}

/// What a search came to.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Situations in which both servers did the same.
    pub passed: u64,
    /// Situations in which they did not, twice.
    pub failed: u64,
    /// Situations in which they did not, but did when asked again: the real server does one thing or another.
    pub wavering: u64,
    /// Situations that could not be run on the real server.
    pub not_run: u64,
    /// How often a feature was drawn that is left out.
    pub left_out: BTreeMap<String, usize>,
    /// How many situations differ first in which place.
    pub places: BTreeMap<String, u64>,
}

/// Why there was no search.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// The real server does not do what the judge needs.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// A case cannot be written.
    #[error("a case cannot be written: {0}")]
    File(#[from] std::io::Error),
}

/// One look at the metrics serves this many situations.
const BATCH: usize = 50;
/// Of several situations that differ in one place, these are shrunk and shown.
const SHOWN: u64 = 2;

impl Search {
    /// Searches; `tell` hears of progress and of every difference.
    ///
    /// # Errors
    /// There is no server, or a case cannot be written. Differences are no error.
    pub async fn run(
        &self,
        known: &KnownDifferences,
        tell: &(dyn Fn(&str) + Sync),
    ) -> Result<Found, SearchError> {
        let server = Arc::new(Server::apiserver().await?);
        let excluded = known.left_out();
        let mut found = Found::default();
        let mut running = futures::stream::iter(self.first..self.first + self.cases)
            .map(|number| {
                let (situation, server) = (Situation::new(self.seed, number, &excluded), Arc::clone(&server));
                async move {
                    let text = yaml::write(&situation.case);
                    let pair = run_both(text, server).await;
                    (number, situation, pair)
                }
            })
            .buffer_unordered(self.jobs);
        let mut pending = Vec::new();
        loop {
            let next = running.next().await;
            let is_last = next.is_none();
            pending.extend(next);
            if pending.len() >= BATCH || (is_last && !pending.is_empty()) {
                let exposition = server.metrics().await?;
                for (number, situation, pair) in pending.drain(..) {
                    for (feature, count) in &situation.left_out {
                        *found.left_out.entry(feature.clone()).or_default() += count;
                    }
                    self.look_at(number, &situation.case, &pair, &exposition, &server, &mut found, tell)
                        .await?;
                }
                let done = found.passed + found.failed + found.wavering + found.not_run;
                tell(&format!("{done} of {} situations, {} differ", self.cases, found.failed));
            }
            if is_last {
                return Ok(found);
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one step of `run`, which has all of them")]
    async fn look_at(
        &self,
        number: u64,
        case: &Value,
        pair: &Pair,
        exposition: &str,
        server: &Arc<Server>,
        found: &mut Found,
        tell: &(dyn Fn(&str) + Sync),
    ) -> Result<(), SearchError> {
        if matches!(judged(pair, exposition), Judgement::Agrees) {
            found.passed += 1;
            return Ok(());
        }
        // Once may be chance: a server that was slow, or one that does one thing or another.
        let again = run_both(yaml::write(case), Arc::clone(server)).await;
        let name = format!("seed-{}-{number}", self.seed);
        match judged(&again, &server.metrics().await?) {
            Judgement::Agrees => {
                found.wavering += 1;
                if let Judgement::Differs(document) = judged(pair, exposition) {
                    tell(&format!("{name}: differed once, not twice, at {}", document.signature.join(", ")));
                }
            }
            Judgement::NotRun(why) => {
                found.not_run += 1;
                tell(&format!("{name}: not run: {why}"));
            }
            Judgement::Differs(difference) => {
                found.failed += 1;
                let place = difference.signature.first().cloned().unwrap_or_default();
                let count = found.places.entry(place).or_default();
                *count += 1;
                if *count > SHOWN {
                    return Ok(());
                }
                let (case, difference) = shrink::shrink(case, difference, server, self.jobs).await?;
                let path = self.out.join(&name).join("case.yaml");
                let text = format!(
                    "# Found by `differential --seed {} --first {number} --cases 1`.\n{}",
                    self.seed,
                    yaml::write(&case)
                );
                std::fs::create_dir_all(self.out.join(&name))?;
                std::fs::write(&path, &text)?;
                let place = path.display().to_string();
                if let Verdict::Differs(shown) =
                    compare(&place, &text, &difference.recording, &difference.actual)
                {
                    tell(&format!("{name}:\n{shown}"));
                }
            }
        }
        Ok(())
    }
}

impl Found {
    /// Whether every situation ran and both servers did the same.
    pub fn agrees(&self) -> bool {
        self.failed == 0 && self.not_run == 0
    }
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (feature, count) in &self.left_out {
            writeln!(f, "left out {count} times, as known-differences.toml says: {feature}")?;
        }
        for (place, count) in &self.places {
            writeln!(f, "{count} differ first at {place}")?;
        }
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        for (count, what) in [(self.wavering, "wavering"), (self.not_run, "not run")] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        Ok(())
    }
}

/// The features that are left out.
impl KnownDifferences {
    fn left_out(&self) -> BTreeSet<String> {
        self.entries.iter().flat_map(|entry| entry.left_out.iter().cloned()).collect()
    }
}
