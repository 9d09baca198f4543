//! Records cases on a real kube-apiserver.

use std::collections::BTreeMap;
use std::fs;

use futures::StreamExt as _;
use serde_json::Value;

use crate::case::{Case, Plugins};
use crate::cases::CaseFile;
use crate::names::Names;
use crate::policies::is_policy;
use crate::recording::Recording;
use crate::run::{Manner, RunResult, run};
use crate::run_error::RunError;
use crate::server::Server;

/// The outcome of one case.
#[derive(Debug)]
pub struct Recorded {
    /// The case that was recorded.
    pub case: CaseFile,
    /// The recording, or the error if the case could not be run.
    pub outcome: Result<Recording, RunError>,
}

/// Groups the cases by the server that each case needs: by the settings of its plugins, and by whether policies exist.
///
/// Cases with policies need a different server from cases that write objects of all kinds: if kube-apiserver cannot use
/// one of its policies, it does not refresh any of them.
pub fn by_server(cases: Vec<CaseFile>) -> BTreeMap<(Plugins, bool), Vec<CaseFile>> {
    let mut batches: BTreeMap<(Plugins, bool), Vec<CaseFile>> = BTreeMap::new();
    for case in cases {
        let text = fs::read_to_string(case.path()).unwrap_or_default();
        // An unreadable case has no plugins: its run reports the error.
        let parsed = Case::parse(&Names::random().expand(&text));
        let server = parsed.map(|case| (case.plugins, case.cluster.iter().any(is_policy)));
        batches.entry(server.unwrap_or_default()).or_default().push(case);
    }
    batches
}

/// Runs the cases on `server`: first the serial cases one by one, then the others, `jobs` at a time.
///
/// # Errors
/// Returns an error if the server does not return its version or its metrics.
pub async fn record(
    cases: Vec<CaseFile>,
    server: &Server,
    jobs: usize,
) -> Result<Vec<Recorded>, crate::server_error::ServerError> {
    let version = server.version().await?;
    let texts = cases.into_iter().map(|case| {
        let text = fs::read_to_string(case.path()).unwrap_or_default();
        // An unreadable case is not serial: its run reports the error.
        let parsed = Case::parse(&Names::random().expand(&text));
        let (serial, race) = parsed.map_or((false, Vec::new()), |case| (case.serial, case.race));
        (case, text, serial, race)
    });
    let (serial, parallel): (Vec<_>, Vec<_>) = texts.partition(|(_, _, serial, _)| *serial);
    let mut seen = Vec::new();
    // Serial cases run first, because they read all metrics of the server, which grow with each case.
    for (case, text, _, race) in serial {
        seen.push((case, alternatives(&text, &race, server).await));
    }
    let mut running = futures::stream::iter(parallel)
        .map(|(case, text, _, race)| async move { (case, alternatives(&text, &race, server).await) })
        .buffer_unordered(jobs);
    while let Some(one) = running.next().await {
        seen.push(one);
    }
    // Every run has its own names, so all runs can share one read of the metrics.
    let exposition = server.metrics().await?;
    let mut recorded: Vec<Recorded> = seen
        .into_iter()
        .map(|(case, outcome)| Recorded {
            case,
            outcome: outcome.map(|seen| {
                let mut alternatives: Vec<Value> = Vec::new();
                for alternative in seen.iter().map(|seen| seen.masked(&exposition)) {
                    if !alternatives.contains(&alternative) {
                        alternatives.push(alternative);
                    }
                }
                Recording { apiserver: version.clone(), alternatives }
            }),
        })
        .collect();
    recorded.sort_by(|one, other| one.case.cmp(&other.case));
    Ok(recorded)
}

/// Runs the case once; for a race, runs it once for each webhook that may respond first.
async fn alternatives(text: &str, race: &[String], server: &Server) -> Result<Vec<RunResult>, RunError> {
    if race.is_empty() {
        return Ok(vec![run(text, server, Manner::default()).await?]);
    }
    let mut seen = Vec::new();
    for first in race {
        seen.push(run(text, server, Manner { first: Some(first), ..Manner::default() }).await?);
    }
    Ok(seen)
}
