//! Distinguishes writes that calls cause from a webhook's own writes, such as leader election, heartbeats, and status.

use std::collections::BTreeMap;

use kubernetes_admission::attributes::Attributes;
use tokio::time::{Instant, sleep};

use super::recorded_writes::settle;
use crate::recorder::{Recorder, resource};

/// The number of rounds after which writes are attributed if they are more frequent than in idle periods.
///
/// With eight calls per round, the number of writes stays below the limit at which client-go's event recorder drops
/// events about the same object.
///
/// Source for that limit: client-go `tools/record/events_cache.go`, `defaultSpamBurst`.
const ROUNDS: usize = 3;
/// The number of rounds after which writes are also attributed if they occur in every round but in no idle period.
const MAX_ROUNDS: usize = 6;

/// The number of writes by method and resource, such as `POST v1 configmaps`.
type Counts = BTreeMap<String, usize>;

/// The writes during a round of calls, and during an equally long idle period.
struct Round {
    during: Counts,
    without: Counts,
}

/// A judgment based on the rounds so far.
#[derive(Debug, PartialEq, Eq)]
enum Judgment {
    /// The calls cause writes of this kind.
    Attributed(String),
    /// More rounds are required for a judgment.
    Undecided,
    /// The calls do not cause writes.
    Cleared,
}

/// The attribution of the writes after a round.
#[derive(Debug)]
pub(super) enum Attribution {
    /// The caller must repeat the calls, because more rounds are required.
    Again,
    /// The calls cause writes.
    Caused {
        /// The number of writes in the first round.
        count: usize,
        /// The first write, such as `POST /api/v1/namespaces/default/configmaps`.
        first: String,
    },
    /// The calls do not cause writes.
    Nothing {
        /// A note for the report about writes that the calls did not cause.
        note: Option<String>,
    },
}

/// Which writes are observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Watched {
    /// All writes.
    Writes,
    /// Writes that created an object.
    Creations,
}

impl Watched {
    fn mark(self, recorder: &Recorder) -> u64 {
        match self {
            Self::Writes => recorder.mark(),
            Self::Creations => recorder.creations_mark(),
        }
    }

    fn since(self, recorder: &Recorder, mark: u64) -> Vec<String> {
        match self {
            Self::Writes => recorder.since(mark),
            Self::Creations => recorder.creations_since(mark),
        }
    }
}

/// Determines which writes are caused by calls.
///
/// Calls cause the writes that recur in every round of calls but not in an equally long idle period, and the writes
/// that name an object of a call. The caller makes the calls between [`Self::begin`] and [`Self::end`], and repeats
/// them as long as `end` returns [`Attribution::Again`].
pub(super) struct WriteAttribution<'a> {
    recorder: &'a Recorder,
    watched: Watched,
    /// The names of the objects, one for each call in a round.
    names: Vec<&'a str>,
    mark: u64,
    started: Instant,
    rounds: Vec<Round>,
    first_writes: Vec<String>,
}

impl<'a> WriteAttribution<'a> {
    /// Creates the attribution for calls about `requests`. Each round must make one call for each request.
    pub(super) async fn new(
        recorder: &'a Recorder,
        watched: Watched,
        requests: impl IntoIterator<Item = &'a Attributes>,
    ) -> Self {
        settle().await;
        let names = requests.into_iter().map(|request| request.name.as_str()).collect();
        let (mark, started) = (watched.mark(recorder), Instant::now());
        Self { recorder, watched, names, mark, started, rounds: Vec::new(), first_writes: Vec::new() }
    }

    /// Starts a round of calls.
    pub(super) fn begin(&mut self) {
        (self.mark, self.started) = (self.watched.mark(self.recorder), Instant::now());
    }

    /// Ends a round of calls, and observes an idle period.
    pub(super) async fn end(&mut self) -> Attribution {
        settle().await;
        let writes = self.watched.since(self.recorder, self.mark);
        let took = self.started.elapsed();
        if writes.is_empty() {
            return self.nothing();
        }
        // Later writes belong neither to the calls nor to the idle period.
        settle().await;
        let mark = self.watched.mark(self.recorder);
        sleep(took).await;
        let without = self.watched.since(self.recorder, mark);
        if self.rounds.is_empty() {
            self.first_writes.clone_from(&writes);
        }
        self.rounds.push(Round { during: counts(&writes), without: counts(&without) });
        if self.rounds.len() == 1 {
            let named: Vec<&String> = writes.iter().filter(|write| names_one(write, &self.names)).collect();
            if let Some(first) = named.iter().find(|write| !without.contains(write)) {
                return Attribution::Caused { count: named.len(), first: (*first).clone() };
            }
        }
        match judge(&self.rounds, self.names.len()) {
            Judgment::Undecided => Attribution::Again,
            Judgment::Cleared => self.nothing(),
            Judgment::Attributed(kind) => {
                let attributed: Vec<&String> =
                    self.first_writes.iter().filter(|write| kind_of(write) == kind).collect();
                let first = attributed.first().map_or(kind, |first| (*first).clone());
                Attribution::Caused { count: attributed.len(), first }
            }
        }
    }

    fn nothing(&self) -> Attribution {
        let note = self.first_writes.first().map(|first| {
            format!(
                "during the calls the webhook wrote {first}; the write is not attributed to them, because \
                 it does not recur with every call or also happens without calls"
            )
        });
        Attribution::Nothing { note }
    }
}

fn judge(rounds: &[Round], calls: usize) -> Judgment {
    let Some(first) = rounds.first() else { return Judgment::Undecided };
    let of = |counts: &Counts, kind: &str| counts.get(kind).copied().unwrap_or_default();
    let many = calls.div_ceil(2).max(2);
    let is_strong = |round: &Round, kind: &str| of(&round.during, kind) >= of(&round.without, kind) + many;
    let is_weak = |round: &Round, kind: &str| of(&round.during, kind) > 0 && of(&round.without, kind) == 0;
    let mut judgment = Judgment::Cleared;
    for kind in first.during.keys() {
        if rounds.iter().all(|round| is_strong(round, kind) || is_weak(round, kind)) {
            let is_clear = rounds.len() >= ROUNDS && rounds.iter().all(|round| is_strong(round, kind));
            if is_clear || rounds.len() >= MAX_ROUNDS {
                return Judgment::Attributed(kind.clone());
            }
            judgment = Judgment::Undecided;
        }
    }
    judgment
}

fn counts(writes: &[String]) -> Counts {
    let mut counts = Counts::new();
    for write in writes {
        *counts.entry(kind_of(write)).or_default() += 1;
    }
    counts
}

/// Returns the method and resource of a write, such as `POST v1 configmaps`.
fn kind_of(write: &str) -> String {
    let (method, path) = write.split_once(' ').unwrap_or_default();
    format!("{method} {}", resource(path).0)
}

fn names_one(write: &str, names: &[&str]) -> bool {
    write.rsplit('/').any(|segment| names.contains(&segment))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALLS: usize = 8;

    /// Asserts the judgment for rounds with the given numbers of writes during calls and during idle periods.
    #[track_caller]
    fn check(rounds: &[(usize, usize)], expected: &Judgment) {
        let counts = |count: usize| match count {
            0 => Counts::new(),
            count => Counts::from([("POST v1 configmaps".to_owned(), count)]),
        };
        let rounds: Vec<Round> = rounds
            .iter()
            .map(|(during, without)| Round { during: counts(*during), without: counts(*without) })
            .collect();
        assert_eq!(judge(&rounds, CALLS), *expected);
    }

    #[test]
    fn write_with_each_call_is_attributed_after_three_rounds() {
        let attributed = Judgment::Attributed("POST v1 configmaps".to_owned());
        check(&[(8, 0)], &Judgment::Undecided);
        check(&[(8, 0), (8, 0)], &Judgment::Undecided);
        check(&[(8, 0), (8, 0), (8, 0)], &attributed);
        // The webhook also makes the same write on its own, less often.
        check(&[(9, 1), (8, 0), (10, 2)], &attributed);
    }

    #[test]
    fn write_once_per_round_is_attributed_after_six_rounds() {
        check(&[(1, 0); 5], &Judgment::Undecided);
        check(&[(1, 0); 6], &Judgment::Attributed("POST v1 configmaps".to_owned()));
    }

    #[test]
    fn write_without_calls_is_not_attributed() {
        check(&[(1, 1)], &Judgment::Cleared);
        check(&[(1, 0), (0, 1)], &Judgment::Cleared);
        check(&[(1, 0), (2, 0), (1, 0), (1, 2)], &Judgment::Cleared);
        check(&[(5, 3), (8, 0), (8, 0)], &Judgment::Cleared);
    }

    #[test]
    fn kind_of_a_write_excludes_names() {
        assert_eq!(kind_of("POST /api/v1/namespaces/default/configmaps"), "POST v1 configmaps");
        assert_eq!(
            kind_of("PATCH /apis/apps/v1/namespaces/a/deployments/b/status"),
            "PATCH apps/v1 deployments/status"
        );
        assert!(names_one("PUT /api/v1/namespaces/default/configmaps/web", &["web"]));
        assert!(!names_one("PUT /api/v1/namespaces/default/configmaps/web-1", &["web"]));
    }
}
