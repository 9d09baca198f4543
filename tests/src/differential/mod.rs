//! Random situations on both servers: a search for differences that nobody thought of.
//!
//! Situation `k` of a seed depends on both numbers only. It is a case like those that people write, run by the same
//! code, and compared by the same code with what the real server did at the same time.

mod applied;
mod apply;
mod audit;
mod behavior;
mod conditions;
mod configurations;
mod conversions;
mod credentials;
mod deletions;
mod expressions;
mod fields;
mod files;
mod judgment;
mod kinds;
mod plugins;
mod pods;
mod reads;
mod requests;
mod roles;
mod schemas;
mod servers;
mod shrink;
mod situation;
mod subresources;
mod validation;
mod webhooks;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::Value;
use tokio::time::Instant;

use crate::known_differences::KnownDifferences;
use crate::replay::{Verdict, compare};
use crate::server::ServerError;
use crate::yaml;
use judgment::{Documents, Judgment, Look, Unsupported};
use servers::Servers;
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
    /// What they are about.
    pub subject: Subject,
    /// How many at a time.
    pub jobs: usize,
    /// Where cases are written that show a difference: `<out>/seed-<N>-<k>/case.yaml`.
    pub out: PathBuf,
}

/// What situations are about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
#[expect(clippy::exhaustive_enums, reason = "each has a generator of its own")]
pub enum Subject {
    /// Webhooks and what they are called for.
    #[default]
    Webhooks,
    /// The fields of objects of every kind, and nothing else.
    Fields,
    /// The in-tree admission plugins, and webhooks beside them.
    Plugins,
    /// Server-side apply and who owns which field.
    Apply,
    /// Lists, watches and Tables after writes.
    Reads,
    /// Conversion webhooks of custom resources.
    Conversions,
    /// Deletions, evictions and namespaces that go.
    Deletions,
    /// What is wrong with objects of built-in kinds.
    Validation,
    /// The audit log by policies.
    Audit,
    /// Webhook configurations from files.
    Files,
    /// How the server authenticates to webhooks.
    Credentials,
    /// Schemas of custom resources, their rules, and objects of them.
    Schemas,
}

impl Subject {
    /// The flag that chooses it, with the blank in front of it.
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
        }
    }
}

/// What a search came to.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Situations in which both servers did the same.
    pub passed: u64,
    /// Situations in which they did not, twice.
    pub failed: u64,
    /// Situations in which they did not, but did when asked again, while admit did the same both times: the real server
    /// does one thing or another, such as a second round of admission when its cache was late. No failure of admit.
    pub flaky: u64,
    /// Situations that could not be run on the real server.
    pub not_run: u64,
    /// How often a feature was drawn that is left out.
    pub left_out: BTreeMap<String, usize>,
    /// How often admit did not imitate what, where that is counted.
    pub unsupported: BTreeMap<String, usize>,
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

/// One look at the metrics serves this many situations, and so often progress is told.
const BATCH: usize = 100;
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
        // Of other subjects what admit does not imitate is not drawn.
        let servers = Servers::new(if self.subject == Subject::Validation {
            Unsupported::Counted
        } else {
            Unsupported::Differs
        });
        let excluded = known.left_out();
        let started = Instant::now();
        let mut found = Found::default();
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
            };
            let situations: Vec<Situation> = batch.iter().map(situation).collect();
            for (feature, count) in situations.iter().flat_map(|it| &it.left_out) {
                *found.left_out.entry(feature.clone()).or_default() += count;
            }
            let named = batch.iter().map(|number| format!("seed-{}-{number}", self.seed));
            let suspects = self.suspects(named.zip(situations).collect(), &servers, &mut found).await?;
            found.passed += (batch.len() - suspects.len()) as u64;
            for (name, case, looks) in suspects {
                if let Some(documents) = found.note(&name, looks, tell) {
                    self.write(&name, &case)?;
                    differing.push((name, case, documents));
                }
            }
            let done = found.passed + found.failed + found.flaky + found.not_run;
            let seconds = started.elapsed().as_secs();
            tell(&format!("{done} of {} situations in {seconds} s, {} differ", self.cases, found.failed));
        }
        for (name, case, documents) in differing {
            // Those about fields are small, and their requests have nothing to do with each other.
            let (case, documents) = if self.subject == Subject::Fields {
                (case, documents)
            } else {
                tell(&format!("{name}: looking for the smallest case"));
                shrink::shrink(&case, documents, &servers, self.jobs).await?
            };
            let (path, text) = self.write(&name, &case)?;
            if let Verdict::Differs(shown) = compare(&path, &text, &documents.recording, &documents.actual) {
                tell(&format!("{name}:\n{shown}"));
            }
        }
        Ok(found)
    }

    /// Runs situations; those that are not equal on both servers once more, since once may be chance.
    async fn suspects(
        &self,
        situations: Vec<(String, Situation)>,
        servers: &Servers,
        found: &mut Found,
    ) -> Result<Vec<(String, Value, [Look; 2])>, ServerError> {
        let all: Vec<&Value> = situations.iter().map(|(_, situation)| &situation.case).collect();
        let looks = servers.looks(&all, self.jobs).await?;
        for what in looks.iter().flat_map(|look| &look.unsupported) {
            *found.unsupported.entry(what.clone()).or_default() += 1;
        }
        let unequal: Vec<_> = situations.into_iter().zip(looks).filter(|(_, look)| !look.agrees()).collect();
        let cases: Vec<&Value> = unequal.iter().map(|((_, situation), _)| &situation.case).collect();
        let again = servers.looks(&cases, self.jobs).await?;
        let suspects = unequal.into_iter().zip(again);
        Ok(suspects.map(|(((name, it), look), again)| (name, it.case, [look, again])).collect())
    }

    /// Writes a case; its path and its text.
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

impl Found {
    /// Counts what two looks at a situation came to. The documents, if the situation is one to be shown.
    fn note(&mut self, name: &str, looks: [Look; 2], tell: &(dyn Fn(&str) + Sync)) -> Option<Box<Documents>> {
        let [first, again] = looks;
        let is_steady = first.does_the_same_here(&again);
        let documents = match (first.judgment, again.judgment) {
            (_, Judgment::Differs(documents)) => documents,
            (Judgment::Differs(documents), Judgment::Agrees) if !is_steady => {
                tell(&format!("{name}: admit itself does one thing or another"));
                documents
            }
            (_, Judgment::NotRun(why)) => {
                self.not_run += 1;
                tell(&format!("{name}: not run: {why}"));
                return None;
            }
            (first, Judgment::Agrees) => {
                self.flaky += 1;
                tell(&format!("{name}: flaky: {first}"));
                return None;
            }
        };
        self.failed += 1;
        let place = documents.signature.first().cloned().unwrap_or_default();
        tell(&format!("{name}: differs first at {place}"));
        let count = self.places.entry(place).or_default();
        *count += 1;
        (*count <= SHOWN).then_some(documents)
    }

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
        for (what, count) in &self.unsupported {
            writeln!(f, "not imitated {count} times: {what}")?;
        }
        for (place, count) in &self.places {
            writeln!(f, "{count} differ first at {place}")?;
        }
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        for (count, what) in [(self.flaky, "flaky"), (self.not_run, "not run")] {
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
