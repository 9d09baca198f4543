//! Random situations on both servers: a search for the cases that nobody thought of.

mod behaviour;
mod random;
mod shrink;
mod situation;

use std::sync::Arc;

use futures::StreamExt as _;
use serde_json::Value;

use crate::difference::{Difference, differences};
use crate::run::{Manner, RunError, Seen, run, run_in_process};
use crate::server::{Server, ServerError};
use crate::yaml;
use random::Random;

/// Which situations, and how they are run.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// The same seed gives the same situations.
    pub seed: u64,
    /// The number of the first situation.
    pub first: u64,
    /// How many.
    pub cases: u64,
    /// How many at a time.
    pub jobs: usize,
}

/// A situation in which admit does not do what kube-apiserver does.
#[derive(Debug)]
pub struct Found {
    /// Its number.
    pub situation: u64,
    /// It, as `case.yaml`, as small as it could be made.
    pub case: String,
    /// Where the two differ.
    pub differences: Vec<Difference>,
}

/// Runs the situations on both servers; `tell` hears how many are done.
///
/// # Errors
/// The real server cannot be asked.
pub async fn search(server: &Server, search: Search, tell: impl Fn(u64)) -> Result<Vec<Found>, ServerError> {
    const BATCH: u64 = 100;
    let mut found = Vec::new();
    let mut start = 0;
    while start < search.cases {
        let end = (start + BATCH).min(search.cases);
        let documents: Vec<(u64, Value)> = (start..end)
            .map(|number| search.first + number)
            .map(|number| (number, situation::situation(&mut Random::of(search.seed, number))))
            .collect();
        for number in differing(server, &documents, search.jobs).await? {
            let Some((_, document)) = documents.iter().find(|(known, _)| *known == number) else { continue };
            // What differs once differs always, unless the machine was too busy for the times of a situation.
            if let Some(confirmed) = difference(server, document).await? {
                let (document, differences) = shrink::shrink(server, document.clone(), confirmed).await?;
                found.push(Found { situation: number, case: yaml::write(&document), differences });
            }
        }
        start = end;
        tell(start);
    }
    Ok(found)
}

/// A situation's number, and what was seen on the real server and in process.
type Pair = (u64, Result<Seen, RunError>, Result<Value, RunError>);

/// The numbers of the situations that differ. One look at the metrics of the shared server serves the whole batch.
async fn differing(
    server: &Server,
    documents: &[(u64, Value)],
    jobs: usize,
) -> Result<Vec<u64>, ServerError> {
    let mut runs = futures::stream::iter(documents)
        .map(|(number, document)| async move {
            let text = yaml::write(document);
            let seen = run(&text, server, Manner::default()).await;
            let own = run_in_process(&text, Arc::clone(&server.authority), Manner::default()).await;
            (*number, seen, own)
        })
        .buffer_unordered(jobs);
    let mut pairs: Vec<Pair> = Vec::new();
    while let Some(pair) = runs.next().await {
        pairs.push(pair);
    }
    let exposition = server.metrics().await?;
    let differing = pairs.into_iter().filter(|(_, seen, own)| match (seen, own) {
        (Ok(seen), Ok(own)) => seen.masked(&exposition) != *own,
        // A situation that cannot be run is one that must not have been made.
        (Err(_), _) | (_, Err(_)) => true,
    });
    let mut numbers: Vec<u64> = differing.map(|(number, _, _)| number).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// How the two servers differ on one situation; none if they do not.
async fn difference(server: &Server, document: &Value) -> Result<Option<Vec<Difference>>, ServerError> {
    let text = yaml::write(document);
    let seen = run(&text, server, Manner::default()).await;
    let own = run_in_process(&text, Arc::clone(&server.authority), Manner::default()).await;
    let of_error = |error: RunError| Value::from(error.to_string());
    let (expected, actual) = match (seen, own) {
        (Ok(seen), Ok(own)) => (seen.masked(&server.metrics().await?), own),
        (Ok(_), Err(error)) => (Value::from("it runs"), of_error(error)),
        (Err(error), Ok(_)) => (of_error(error), Value::from("it runs")),
        (Err(one), Err(other)) => (of_error(one), Value::from(format!("neither runs: {other}"))),
    };
    let found = differences(&expected, &actual);
    Ok(if found.is_empty() { None } else { Some(found) })
}
