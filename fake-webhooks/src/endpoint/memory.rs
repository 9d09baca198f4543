//! Remembers the calls of a fake, and performs their side effects.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::write;
use crate::{Caller, Circumstances, Effect};

/// The maximum number of remembered objects; the oldest are forgotten first.
const MAX_OBJECTS: usize = 10_000;

/// The memory of a fake; a new behavior starts with an empty memory.
#[derive(Debug, Default)]
pub(super) struct Memory {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    calls: u64,
    /// The number of calls by the hash of the object and the operation.
    seen: HashMap<u64, u64>,
    oldest: VecDeque<u64>,
    /// The call numbers and UIDs of the reviews that are in progress.
    in_progress: Vec<(u64, String)>,
    side_effects: u64,
    leaked: Vec<u8>,
    /// The time at which the queue will be empty, or `None` before the first queued call.
    busy_until: Option<Instant>,
}

/// A call in progress. The memory forgets it when this value is dropped.
#[derive(Debug)]
pub(super) struct InProgress<'a> {
    memory: &'a Memory,
    nth: u64,
}

impl Memory {
    /// Records the start of a call and returns its circumstances.
    pub(super) fn begin(
        &self,
        time: jiff::Timestamp,
        caller: Caller,
        review: &Value,
    ) -> (Circumstances, InProgress<'_>) {
        let mut state = self.lock();
        let nth = state.calls;
        state.calls += 1;
        let other_uid = state.in_progress.first().map(|(_, uid)| uid.clone());
        let mut seen = 0;
        let request = &review["request"];
        if let Some(uid) = request["uid"].as_str() {
            state.in_progress.push((nth, uid.to_owned()));
            seen = state.see(identity(request));
        }
        (Circumstances { nth, seen, time, other_uid, caller }, InProgress { memory: self, nth })
    }

    /// Performs side effects and returns a summary for the log.
    pub(super) async fn perform(&self, effects: Vec<Effect>) -> String {
        let mut said = Vec::new();
        for effect in effects {
            match effect {
                Effect::SideEffect(request) => {
                    said.push(format!("; side effect {}", self.count()));
                    let Some(request) = request else { continue };
                    let after = request.after.duration();
                    if after > Duration::ZERO {
                        said.push(format!(", to be written after {after:?}"));
                        // A separate task, which continues after the caller disconnects.
                        tokio::spawn(async move {
                            tokio::time::sleep(after).await;
                            write::send(&request).await
                        });
                        continue;
                    }
                    said.push(match write::send(&request).await {
                        Ok(status) => format!(", received HTTP status {}", status.as_u16()),
                        Err(error) => format!(", not written: {error}"),
                    });
                }
                Effect::Leak { bytes, most } => {
                    said.push(format!("; {} bytes leaked", self.leak(bytes, most)));
                }
                Effect::Queue(hold) => {
                    let turn = self.queue(hold);
                    tokio::time::sleep_until(turn).await;
                }
            }
        }
        said.concat()
    }

    /// Returns the number of side effects that have been counted.
    pub(super) fn side_effects(&self) -> u64 {
        self.lock().side_effects
    }

    fn count(&self) -> u64 {
        let mut state = self.lock();
        state.side_effects += 1;
        state.side_effects
    }

    /// Adds a call to the queue and returns the time at which the call ends.
    fn queue(&self, hold: Duration) -> Instant {
        let mut state = self.lock();
        let now = Instant::now();
        let turn = state.busy_until.map_or(now, |until| until.max(now)) + hold;
        state.busy_until = Some(turn);
        turn
    }

    fn leak(&self, bytes: u32, most: u32) -> usize {
        let size = |bytes: u32| usize::try_from(bytes).unwrap_or(usize::MAX);
        let leaked = &mut self.lock().leaked;
        let after = leaked.len().saturating_add(size(bytes)).min(size(most)).max(leaked.len());
        // Not zero, so that the pages are allocated.
        leaked.resize(after, 1);
        after
    }

    /// Locks the state. Ignores poisoning, because updates are atomic.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Records a call for an object and returns the number of earlier calls.
    fn see(&mut self, object: u64) -> u64 {
        let times = self.seen.entry(object).or_insert_with(|| {
            self.oldest.push_back(object);
            0
        });
        let before = *times;
        *times += 1;
        if self.oldest.len() > MAX_OBJECTS
            && let Some(oldest) = self.oldest.pop_front()
        {
            self.seen.remove(&oldest);
        }
        before
    }
}

impl Drop for InProgress<'_> {
    fn drop(&mut self) {
        self.memory.lock().in_progress.retain(|(nth, _)| *nth != self.nth);
    }
}

/// Hashes the identity of a request: resource, operation, namespace, and name or generateName.
fn identity(request: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    for path in [
        "/requestResource/group",
        "/requestResource/resource",
        "/requestSubResource",
        "/operation",
        "/namespace",
        "/name",
        "/object/metadata/generateName",
    ] {
        request.pointer(path).and_then(Value::as_str).hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn review(uid: &str, name: &str) -> Value {
        json!({"request": {"uid": uid, "operation": "CREATE", "name": name}})
    }

    #[test]
    fn calls_and_objects_have_separate_counters() {
        let memory = Memory::default();
        let begin = |name: &str| {
            let (at, _) = memory.begin(jiff::Timestamp::UNIX_EPOCH, Caller::default(), &review("u", name));
            (at.nth, at.seen)
        };
        assert_eq!([begin("a"), begin("a"), begin("b"), begin("a")], [(0, 0), (1, 1), (2, 0), (3, 2)]);
    }

    #[test]
    fn uid_of_another_review_in_progress_is_known() {
        let memory = Memory::default();
        let time = jiff::Timestamp::UNIX_EPOCH;
        let (first, waits) = memory.begin(time, Caller::default(), &review("one", "a"));
        let (second, _) = memory.begin(time, Caller::default(), &review("two", "b"));
        assert_eq!((first.other_uid, second.other_uid), (None, Some("one".to_owned())));
        drop(waits);
        assert_eq!(memory.begin(time, Caller::default(), &review("three", "c")).0.other_uid, None);
    }

    #[test]
    fn oldest_objects_are_forgotten_at_the_limit() {
        let mut state = State::default();
        for object in 0..=MAX_OBJECTS as u64 {
            assert_eq!(state.see(object), 0);
        }
        assert_eq!(state.seen.len(), MAX_OBJECTS);
        assert_eq!((state.see(1), state.see(0)), (1, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn queued_calls_are_sequential_even_if_callers_disconnect() {
        let memory = Memory::default();
        let hold = Duration::from_millis(100);
        let started = Instant::now();
        let gone = tokio::time::timeout(hold / 2, memory.perform(vec![Effect::Queue(hold)])).await;
        assert!(gone.is_err());
        memory.perform(vec![Effect::Queue(hold)]).await;
        assert_eq!(started.elapsed(), hold * 2);
        tokio::time::sleep(hold).await;
        memory.perform(vec![Effect::Queue(hold)]).await;
        assert_eq!(started.elapsed(), hold * 4, "a queue that is empty again holds only for its own time");
    }

    #[tokio::test]
    async fn side_effects_are_counted_and_leaked_memory_is_limited() {
        let memory = Memory::default();
        let leak = Effect::Leak { bytes: 40, most: 100 };
        assert_eq!(memory.perform(vec![Effect::SideEffect(None)]).await, "; side effect 1");
        assert_eq!(
            memory.perform(vec![Effect::SideEffect(None), leak.clone()]).await,
            "; side effect 2; 40 bytes leaked"
        );
        assert_eq!(memory.side_effects(), 2);
        for expected in [80, 100, 100] {
            assert_eq!(memory.perform(vec![leak.clone()]).await, format!("; {expected} bytes leaked"));
        }
    }
}
