//! Runs random situations on both servers, to find unknown differences.
//!
//! Situation `k` of a seed depends only on the seed and on `k`. It is a case like the handwritten cases: the same code
//! runs it and compares the results of both servers.

mod applied;
mod apply;
mod audit;
mod behavior;
mod conditions;
mod configurations;
mod conversions;
mod credentials;
mod deletions;
mod empty;
mod expressions;
mod fields;
mod files;
mod judgment;
mod kinds;
mod negotiation;
mod plugins;
mod pods;
mod reads;
mod requests;
mod roles;
mod schemas;
mod servers;
mod shrink;
mod situation;
mod subresource_requests;
mod subresources;
mod validation;
mod webhooks;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::Value;
use tokio::time::Instant;

use crate::cases::MAX_RETRIES;
use crate::known_differences::KnownDifferences;
use crate::replay::{CaseComparison, compare};
use crate::server_error::ServerError;
use crate::yaml;
use judgment::{Documents, Judgment, Look, Unsupported};
use servers::Servers;
pub use situation::Situation;

/// The parameters of a search.
#[derive(Clone, Debug)]
pub struct Search {
    /// The seed of all situations.
    pub seed: u64,
    /// The number of the first situation.
    pub first: u64,
    /// The number of situations.
    pub cases: u64,
    /// The subject of the situations.
    pub subject: Subject,
    /// The number of situations that run in parallel.
    pub jobs: usize,
    /// The directory for cases that show a difference: `<out>/seed-<N>-<k>/case.yaml`.
    pub out: PathBuf,
}

/// The part of the API that a search examines with random situations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
#[expect(clippy::exhaustive_enums, reason = "each has a generator of its own")]
pub enum Subject {
    /// Webhooks, and the requests for which they are called.
    #[default]
    Webhooks,
    /// The fields of objects of every kind.
    Fields,
    /// In-tree admission plugins, together with webhooks.
    Plugins,
    /// Server-side apply and field ownership.
    Apply,
    /// Lists, watches, and Tables after writes.
    Reads,
    /// Conversion webhooks of custom resources.
    Conversions,
    /// Deletions, evictions, and terminating namespaces.
    Deletions,
    /// Validation errors of built-in kinds.
    Validation,
    /// The audit log and its policies.
    Audit,
    /// Webhook configurations in files.
    Files,
    /// The credentials that the server sends to webhooks.
    Credentials,
    /// Schemas of custom resources, their rules, and their objects.
    Schemas,
    /// Requests for subresources of all kinds.
    Subresources,
    /// Empty lists and maps in objects that are written repeatedly.
    Empty,
    /// `Accept` and `Content-Type` headers.
    Negotiation,
}

impl Subject {
    /// Returns the command-line flag for this subject, with a leading space.
    fn flag(self) -> &'static str {
        match self {
            Self::Webhooks => "",
            Self::Fields => " --about fields",
            Self::Plugins => " --about plugins",
            Self::Apply => " --about apply",
            Self::Reads => " --about reads",
            Self::Conversions => " --about conversions",
            Self::Deletions => " --about deletions",
            Self::Validation => " --about validation",
            Self::Audit => " --about audit",
            Self::Files => " --about files",
            Self::Credentials => " --about credentials",
            Self::Schemas => " --about schemas",
            Self::Subresources => " --about subresources",
            Self::Empty => " --about empty",
            Self::Negotiation => " --about negotiation",
        }
    }
}

/// The results of comparing both servers in generated situations.
#[derive(Clone, Debug, Default)]
pub struct SearchResult {
    /// The number of situations in which both servers agreed.
    pub passed: u64,
    /// The number of situations in which both servers differed in every run.
    pub failed: u64,
    /// The number of situations in which the servers first differed and then agreed, while admit returned the same result each time.
    ///
    /// The behavior of the real server varies in these situations, for example if its cache is stale and admission runs
    /// a second time. They do not count as failures of admit.
    pub flaky: u64,
    /// The number of situations that could not run on the real server, by reason.
    pub not_run: BTreeMap<String, u64>,
    /// The number of times that each excluded feature was drawn.
    pub left_out: BTreeMap<String, usize>,
    /// The number of times that admit did not support each feature, if unsupported features are counted.
    pub unsupported: BTreeMap<String, usize>,
    /// The number of differing situations, by the first path that differs.
    pub places: BTreeMap<String, u64>,
}

/// An error that prevents a search.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// The real server does not start, or rejects a required request.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// A case cannot be written.
    #[error("a case cannot be written: {0}")]
    File(#[from] std::io::Error),
}

/// The number of situations per metrics request and per progress message.
const BATCH: usize = 100;
/// The maximum number of situations to shrink and show for one path.
const SHOWN: u64 = 2;

impl Search {
    /// Runs the search. `tell` receives progress and every difference.
    ///
    /// # Errors
    /// Returns an error if there is no server, or a case cannot be written. Differences are not errors.
    pub async fn run(
        &self,
        known: &KnownDifferences,
        tell: &(dyn Fn(&str) + Sync),
    ) -> Result<SearchResult, SearchError> {
        // Situations about other subjects do not contain features that admit does not support.
        let servers = Servers::new(if self.subject == Subject::Validation {
            Unsupported::Counted
        } else {
            Unsupported::Differs
        });
        let excluded = known.left_out();
        let started = Instant::now();
        let mut found = SearchResult::default();
        let mut differing = Vec::new();
        let numbers: Vec<u64> = (self.first..self.first + self.cases).collect();
        for batch in numbers.chunks(BATCH) {
            let situation = |number: &u64| match self.subject {
                Subject::Webhooks => Situation::new(self.seed, *number, &excluded),
                Subject::Fields => Situation::of_fields(self.seed, *number),
                Subject::Plugins => Situation::of_plugins(self.seed, *number),
                Subject::Apply => Situation::of_apply(self.seed, *number),
                Subject::Reads => Situation::of_reads(self.seed, *number),
                Subject::Conversions => Situation::of_conversions(self.seed, *number),
                Subject::Deletions => Situation::of_deletions(self.seed, *number),
                Subject::Validation => Situation::of_validation(self.seed, *number),
                Subject::Audit => Situation::of_audit(self.seed, *number, &excluded),
                Subject::Files => Situation::of_files(self.seed, *number, &excluded),
                Subject::Credentials => Situation::of_credentials(self.seed, *number),
                Subject::Schemas => Situation::of_schemas(self.seed, *number),
                Subject::Subresources => Situation::of_subresources(self.seed, *number),
                Subject::Empty => Situation::of_empty(self.seed, *number),
                Subject::Negotiation => Situation::of_negotiation(self.seed, *number),
            };
            let situations: Vec<Situation> = batch.iter().map(situation).collect();
            for (feature, count) in situations.iter().flat_map(|it| &it.left_out) {
                *found.left_out.entry(feature.clone()).or_default() += count;
            }
            let named = batch.iter().map(|number| format!("seed-{}-{number}", self.seed));
            let unequal = self.unequal(named.zip(situations).collect(), &servers, &mut found).await?;
            found.passed += (batch.len() - unequal.len()) as u64;
            for (name, case, looks) in unequal {
                if let Some(documents) = found.note(&name, looks, tell) {
                    self.write(&name, &case)?;
                    differing.push((name, case, documents));
                }
            }
            let done = found.passed + found.failed + found.flaky + found.not_run.values().sum::<u64>();
            let seconds = started.elapsed().as_secs();
            tell(&format!("{done} of {} situations in {seconds} s, {} differ", self.cases, found.failed));
        }
        for (name, case, documents) in differing {
            // Situations about fields are small, and their requests are independent.
            let (case, documents) = if self.subject == Subject::Fields {
                (case, documents)
            } else {
                tell(&format!("{name}: looking for the smallest case"));
                shrink::shrink(&case, documents, &servers, self.jobs).await?
            };
            let (path, text) = self.write(&name, &case)?;
            if let CaseComparison::Differs(shown) =
                compare(&path, &text, &documents.recording, &documents.actual)
            {
                tell(&format!("{name}:\n{shown}"));
            }
        }
        Ok(found)
    }

    /// Runs all situations. Runs those that differ again, because a difference may be random, until they agree or have
    /// run [`MAX_RETRIES`] more times.
    ///
    /// Returns the comparisons of each situation that differed at first, oldest first.
    async fn unequal(
        &self,
        situations: Vec<(String, Situation)>,
        servers: &Servers,
        found: &mut SearchResult,
    ) -> Result<Vec<(String, Value, Vec<Look>)>, ServerError> {
        let all: Vec<&Value> = situations.iter().map(|(_, situation)| &situation.case).collect();
        let looks = servers.looks(&all, self.jobs).await?;
        for what in looks.iter().flat_map(|look| &look.unsupported) {
            *found.unsupported.entry(what.clone()).or_default() += 1;
        }
        let mut unequal: Vec<(String, Value, Vec<Look>)> = situations
            .into_iter()
            .zip(looks)
            .filter(|(_, look)| !look.agrees())
            .map(|((name, situation), look)| (name, situation.case, vec![look]))
            .collect();
        for _ in 0..MAX_RETRIES {
            let differing: Vec<_> =
                unequal.iter_mut().filter(|(_, _, looks)| looks.iter().all(|look| !look.agrees())).collect();
            let cases: Vec<&Value> = differing.iter().map(|(_, case, _)| case).collect();
            let again = servers.looks(&cases, self.jobs).await?;
            for ((_, _, looks), look) in differing.into_iter().zip(again) {
                looks.push(look);
            }
        }
        Ok(unequal)
    }

    /// Writes a case to disk. Returns its path and its content.
    fn write(&self, name: &str, case: &Value) -> Result<(String, String), SearchError> {
        let number = name.rsplit('-').next().unwrap_or_default();
        let (seed, flag) = (self.seed, self.subject.flag());
        let text = format!(
            "# Found by `differential{flag} --seed {seed} --first {number} --cases 1`.\n{}",
            yaml::write(case)
        );
        let path = self.out.join(name).join("case.yaml");
        std::fs::create_dir_all(self.out.join(name))?;
        std::fs::write(&path, &text)?;
        Ok((path.display().to_string(), text))
    }
}

impl SearchResult {
    /// Counts a situation by its comparisons: only the last one can agree. Returns the documents if the situation should be
    /// shown.
    ///
    /// A situation that finally agrees is flaky, but only if admit had the same result each time.
    fn note(&mut self, name: &str, looks: Vec<Look>, tell: &(dyn Fn(&str) + Sync)) -> Option<Box<Documents>> {
        let mut earlier = looks;
        let last = earlier.pop()?;
        let documents = match last.judgment {
            Judgment::Differs(documents) => documents,
            Judgment::NotRun(why) => {
                tell(&format!("{name}: not run: {why}"));
                let differing = earlier.iter().rposition(Look::differs);
                let differing = differing.map(|place| earlier.swap_remove(place).judgment);
                let Some(Judgment::Differs(documents)) = differing else {
                    *self.not_run.entry(reason(&why)).or_default() += 1;
                    return None;
                };
                documents
            }
            Judgment::Agrees => {
                let unsteady =
                    earlier.iter().position(|look| look.differs() && !look.does_the_same_here(&last));
                let unsteady = unsteady.map(|place| earlier.swap_remove(place).judgment);
                if let Some(Judgment::Differs(documents)) = unsteady {
                    tell(&format!("{name}: admit's own result varies between runs"));
                    documents
                } else {
                    self.flaky += 1;
                    let first = earlier.first().map(|look| look.judgment.to_string()).unwrap_or_default();
                    tell(&format!("{name}: flaky: {first}"));
                    return None;
                }
            }
        };
        self.failed += 1;
        let place = documents.signature.first().cloned().unwrap_or_default();
        tell(&format!("{name}: differs first at {place}"));
        let count = self.places.entry(place).or_default();
        *count += 1;
        (*count <= SHOWN).then_some(documents)
    }

    /// Returns whether every situation ran and both servers agreed.
    pub fn agrees(&self) -> bool {
        self.failed == 0 && self.not_run.is_empty()
    }
}

impl std::fmt::Display for SearchResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (feature, count) in &self.left_out {
            writeln!(f, "left out {count} times, as known-differences.toml says: {feature}")?;
        }
        for (what, count) in &self.unsupported {
            writeln!(f, "not supported {count} times: {what}")?;
        }
        for (place, count) in &self.places {
            writeln!(f, "{count} differ first at {place}")?;
        }
        for (why, count) in &self.not_run {
            writeln!(f, "not run {count} times: {why}")?;
        }
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        for (count, what) in [(self.flaky, "flaky"), (self.not_run.values().sum(), "not run")] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        Ok(())
    }
}

/// Returns why a situation was not run: the first line of the error, without its numbers.
fn reason(error: &str) -> String {
    let line = error.lines().next().unwrap_or_default();
    line.chars().filter(|letter| !letter.is_ascii_digit()).collect()
}

impl KnownDifferences {
    /// Returns the features that the search excludes.
    fn left_out(&self) -> BTreeSet<String> {
        self.entries.iter().flat_map(|entry| entry.left_out.iter().cloned()).collect()
    }
}
