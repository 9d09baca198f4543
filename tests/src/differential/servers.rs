//! The real servers of a search: one for each set of in-tree plugins.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use futures::StreamExt as _;
use serde_json::Value;
use tokio::sync::Mutex;

use super::judgement::{Look, Unsupported, judged, run_both};
use crate::case::{Case, Plugins};
use crate::names::Names;
use crate::server::{Server, ServerError};
use crate::yaml;

/// Each is started when the first case needs it, and ends with this.
#[derive(Debug)]
pub(crate) struct Servers {
    unsupported: Unsupported,
    running: Mutex<BTreeMap<Plugins, Arc<Server>>>,
}

impl Servers {
    /// None is running yet.
    pub(crate) fn new(unsupported: Unsupported) -> Self {
        Self { unsupported, running: Mutex::default() }
    }

    /// What both servers do with each of the cases, `jobs` at a time; those that are serial one after another.
    ///
    /// # Errors
    /// A server does not start, or does not tell its metrics.
    pub(crate) async fn looks(&self, cases: &[&Value], jobs: usize) -> Result<Vec<Look>, ServerError> {
        let is_serial = |case: &Value| case["serial"] == true;
        let mut pairs = Vec::new();
        for (serial, jobs) in [(false, jobs), (true, 1)] {
            let mut runs = Vec::new();
            for (place, case) in cases.iter().enumerate().filter(|(_, case)| is_serial(case) == serial) {
                let server = self.of(case).await?;
                let text = yaml::write(case);
                runs.push(async move { (place, run_both(text, Arc::clone(&server)).await, server) });
            }
            pairs.extend(futures::stream::iter(runs).buffered(jobs).collect::<Vec<_>>().await);
        }
        pairs.sort_by_key(|(place, ..)| *place);
        // One look at the metrics of a server serves all.
        let mut expositions: BTreeMap<*const Server, String> = BTreeMap::new();
        let mut looks = Vec::new();
        for (_, pair, server) in pairs {
            let key = Arc::as_ptr(&server);
            let exposition = match expositions.entry(key) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => unknown.insert(server.metrics().await?),
            };
            looks.push(judged(pair, exposition, self.unsupported));
        }
        Ok(looks)
    }

    async fn of(&self, case: &Value) -> Result<Arc<Server>, ServerError> {
        // A case that cannot be read has no plugins: its run says why.
        let case = Case::parse(&Names::random().expand(&yaml::write(case)));
        let plugins = case.map(|case| case.plugins).unwrap_or_default();
        let mut running = self.running.lock().await;
        if let Some(server) = running.get(&plugins) {
            return Ok(Arc::clone(server));
        }
        let server = Arc::new(Server::apiserver_with(&plugins).await?);
        running.insert(plugins, Arc::clone(&server));
        Ok(server)
    }
}
