//! Runs the real servers of a search: one for each set of in-tree plugins, files, and policies.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::Value;
use tokio::sync::Mutex;

use super::judgment::{Look, Pair, Unsupported, judged, refused, run_both};
use crate::case::{Case, Plugins};
use crate::names::Names;
use crate::server::Server;
use crate::server_error::ServerError;
use crate::yaml;

/// The servers of a search. A server starts when a case first needs it.
///
/// The newest servers run until this value is dropped.
#[derive(Debug)]
pub(crate) struct Servers {
    unsupported: Unsupported,
    running: Mutex<Vec<(Plugins, Started)>>,
}

/// A running server, or its startup error.
#[derive(Clone, Debug)]
enum Started {
    Running(Arc<Server>),
    Refused(Arc<str>),
}

/// The outcome of a case.
enum Ran {
    /// Both servers ran the case. The real server is kept until its metrics are read.
    Both(Pair, Arc<Server>),
    /// The real server does not start with the case's plugin settings.
    Refused(Look),
}

/// The maximum number of servers that run concurrently, unless the cases in progress need more.
const MAX_SERVERS: usize = 5;

impl Servers {
    /// Creates the collection, without servers.
    pub(crate) fn new(unsupported: Unsupported) -> Self {
        Self { unsupported, running: Mutex::default() }
    }

    /// Runs each case on both servers, `jobs` at a time. Serial cases run one after another.
    ///
    /// # Errors
    /// Returns an error if a server does not start, or does not return its metrics.
    pub(crate) async fn looks(&self, cases: &[&Value], jobs: usize) -> Result<Vec<Look>, ServerError> {
        let (serial, parallel): (Vec<_>, Vec<_>) =
            cases.iter().enumerate().partition(|(_, case)| case["serial"] == true);
        // The server is chosen when the case starts, because the case before it may have left objects behind.
        let run = |(place, case): (usize, &&Value)| {
            let text = yaml::write(case);
            async move { Ok::<_, ServerError>((place, self.run(text).await?)) }
        };
        let mut ran: Vec<(usize, Ran)> = stream::iter(parallel).map(run).buffered(jobs).try_collect().await?;
        for case in serial {
            ran.push(run(case).await?);
        }
        let mut looks: Vec<(usize, Look)> = Vec::new();
        // All cases of a server share one read of its metrics.
        let mut expositions: BTreeMap<*const Server, String> = BTreeMap::new();
        for (place, ran) in ran {
            let (pair, server) = match ran {
                Ran::Both(pair, server) => (pair, server),
                Ran::Refused(look) => {
                    looks.push((place, look));
                    continue;
                }
            };
            let key = Arc::as_ptr(&server);
            let exposition = match expositions.entry(key) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => unknown.insert(server.metrics().await?),
            };
            looks.push((place, judged(pair, exposition, self.unsupported)));
        }
        looks.sort_by_key(|(place, _)| *place);
        Ok(looks.into_iter().map(|(_, look)| look).collect())
    }

    /// Runs the case in `text`.
    async fn run(&self, text: String) -> Result<Ran, ServerError> {
        let plugins = plugins(&text);
        Ok(match self.start(&plugins).await? {
            Started::Refused(said) => Ran::Refused(refused(&said, &plugins).await?),
            Started::Running(server) => {
                Ran::Both(Box::pin(run_both(text, Arc::clone(&server))).await, server)
            }
        })
    }

    async fn start(&self, plugins: &Plugins) -> Result<Started, ServerError> {
        let mut running = self.running.lock().await;
        running.retain(|(_, started)| !matches!(started, Started::Running(server) if server.has_leftovers()));
        if let Some((_, started)) = running.iter().find(|(known, _)| known == plugins) {
            return Ok(started.clone());
        }
        let started = match Server::apiserver_with(plugins).await {
            Ok(server) => Started::Running(Arc::new(server)),
            Err(error) => match error.refusal() {
                Some(said) => Started::Refused(said.into()),
                None => return Err(error),
            },
        };
        if running.len() >= MAX_SERVERS {
            running.remove(0);
        }
        running.push((plugins.clone(), started.clone()));
        Ok(started)
    }
}

/// Returns the plugin settings of a case.
///
/// Returns the default settings for an unreadable case, because the error is reported when the case runs.
fn plugins(text: &str) -> Plugins {
    Case::parse(&Names::random().expand(text)).map(|case| case.plugins).unwrap_or_default()
}
