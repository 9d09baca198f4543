//! Which writes come of calls, and which a webhook makes for reasons of its own: leader election, heartbeats, status.

use std::collections::BTreeMap;

use kubernetes_admission::attributes::Attributes;
use tokio::time::{Instant, sleep};

use super::recorded::settle;
use crate::recorder::{Recorder, resource};

/// After so many rounds writes are blamed on calls if each round has many more of them than its control. With eight calls a
/// round they are no more than client-go's recorder of events lets through before it drops those about the same object.
///
/// Source of that limit: client-go `tools/record/events_cache.go`, `defaultSpamBurst`.
const ROUNDS: usize = 3;
/// After so many, also if each round has any and no control has one.
const MOST_ROUNDS: usize = 6;

/// Writes by what they do, without names: `POST v1 configmaps`.
type Counts = BTreeMap<String, usize>;

/// The writes while calls were made, and in as long a time without a call.
struct Round {
    during: Counts,
    without: Counts,
}

/// What came of some rounds.
#[derive(Debug, PartialEq, Eq)]
enum Judgment {
    /// This comes of the calls.
    Blamed(String),
    /// More rounds are needed.
    Undecided,
    /// Nothing comes of the calls.
    Cleared,
}

/// What is known of the writes.
#[derive(Debug)]
pub(super) enum Seen {
    /// The calls are to be made once more.
    Again,
    /// The writes that come of the calls.
    Caused {
        /// How many there were in the first round.
        count: usize,
        /// The first, such as `POST /api/v1/namespaces/default/configmaps`.
        first: String,
    },
    /// None comes of them.
    Nothing {
        /// What was written all the same, for the report.
        note: Option<String>,
    },
}

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Watched {
    /// All writes.
    Writes,
    /// Those that created an object.
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

/// Finds the writes that come of calls: those that come each time, and not in as long a time without a call, or that name
/// one of the objects. Whoever makes the calls does so between [`Self::begin`] and [`Self::end`], for as long as that says
/// [`Seen::Again`].
pub(super) struct Windows<'a> {
    recorder: &'a Recorder,
    watched: Watched,
    /// The names of the objects, one for each call of a round.
    names: Vec<&'a str>,
    mark: u64,
    started: Instant,
    rounds: Vec<Round>,
    first_writes: Vec<String>,
}

impl<'a> Windows<'a> {
    /// For calls about these requests, each of which is made once in a round.
    pub(super) async fn of(
        recorder: &'a Recorder,
        watched: Watched,
        requests: impl IntoIterator<Item = &'a Attributes>,
    ) -> Self {
        settle().await;
        let names = requests.into_iter().map(|request| request.name.as_str()).collect();
        let (mark, started) = (watched.mark(recorder), Instant::now());
        Self { recorder, watched, names, mark, started, rounds: Vec::new(), first_writes: Vec::new() }
    }

    /// The calls begin.
    pub(super) fn begin(&mut self) {
        (self.mark, self.started) = (self.watched.mark(self.recorder), Instant::now());
    }

    /// The calls have been answered.
    pub(super) async fn end(&mut self) -> Seen {
        settle().await;
        let writes = self.watched.since(self.recorder, self.mark);
        let took = self.started.elapsed();
        if writes.is_empty() {
            return self.nothing();
        }
        // What comes later belongs neither to the calls nor to the time without.
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
                return Seen::Caused { count: named.len(), first: (*first).clone() };
            }
        }
        match judge(&self.rounds, self.names.len()) {
            Judgment::Undecided => Seen::Again,
            Judgment::Cleared => self.nothing(),
            Judgment::Blamed(kind) => {
                let blamed: Vec<&String> =
                    self.first_writes.iter().filter(|write| kind_of(write) == kind).collect();
                let first = blamed.first().map_or(kind, |first| (*first).clone());
                Seen::Caused { count: blamed.len(), first }
            }
        }
    }

    fn nothing(&self) -> Seen {
        let note = self.first_writes.first().map(|first| {
            format!(
                "while calls were made it wrote {first}; it does not do so each time, or does so without calls as well, so \
                 that it is not because of them"
            )
        });
        Seen::Nothing { note }
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
            if is_clear || rounds.len() >= MOST_ROUNDS {
                return Judgment::Blamed(kind.clone());
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

/// `POST v1 configmaps` of `POST /api/v1/namespaces/default/configmaps`.
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

    /// Rounds of one kind of write: how many during calls and without.
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
    fn what_comes_with_each_call_is_blamed_after_three_rounds() {
        let blamed = Judgment::Blamed("POST v1 configmaps".to_owned());
        check(&[(8, 0)], &Judgment::Undecided);
        check(&[(8, 0), (8, 0)], &Judgment::Undecided);
        check(&[(8, 0), (8, 0), (8, 0)], &blamed);
        // It does the same for reasons of its own, and less.
        check(&[(9, 1), (8, 0), (10, 2)], &blamed);
    }

    #[test]
    fn what_comes_once_in_each_round_is_blamed_after_six() {
        check(&[(1, 0); 5], &Judgment::Undecided);
        check(&[(1, 0); 6], &Judgment::Blamed("POST v1 configmaps".to_owned()));
    }

    #[test]
    fn what_comes_without_calls_as_well_is_not_blamed() {
        check(&[(1, 1)], &Judgment::Cleared);
        check(&[(1, 0), (0, 1)], &Judgment::Cleared);
        check(&[(1, 0), (2, 0), (1, 0), (1, 2)], &Judgment::Cleared);
        check(&[(5, 3), (8, 0), (8, 0)], &Judgment::Cleared);
    }

    #[test]
    fn names_are_no_part_of_what_a_write_does() {
        assert_eq!(kind_of("POST /api/v1/namespaces/default/configmaps"), "POST v1 configmaps");
        assert_eq!(
            kind_of("PATCH /apis/apps/v1/namespaces/a/deployments/b/status"),
            "PATCH apps/v1 deployments/status"
        );
        assert!(names_one("PUT /api/v1/namespaces/default/configmaps/web", &["web"]));
        assert!(!names_one("PUT /api/v1/namespaces/default/configmaps/web-1", &["web"]));
    }
}
