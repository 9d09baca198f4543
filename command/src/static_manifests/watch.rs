//! Reads the folders again while the API server runs.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use harness::manifests::ManifestError;
use harness::server::ApiServer;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::Folder;

/// How often a folder is read though no change was reported.
///
/// Source: apiserver pkg/admission/plugin/webhook/manifest/source/source.go, `defaultReloadInterval`.
const INTERVAL: Duration = Duration::from_secs(60);

/// What became of a change.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    /// The server took it over.
    Taken,
    /// It did not, or may see changes late.
    Failed,
}

/// Gets what became of a change, and a line about it.
pub(crate) type Told = Arc<dyn Fn(Change, &str) + Send + Sync>;

/// Ends when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    tasks: Vec<AbortHandle>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl Watch {
    /// Has `server` take over what changes in `folders`; `log` is told what becomes of it.
    pub(crate) fn start(folders: Vec<Folder>, server: &ApiServer, log: Told) -> Self {
        let tasks = folders.into_iter().map(move |folder| {
            let reloader = Reloader { folder, server: server.clone(), log: Arc::clone(&log), failure: None };
            tokio::spawn(reloader.run()).abort_handle()
        });
        Self { tasks: tasks.collect() }
    }
}

struct Reloader {
    folder: Folder,
    server: ApiServer,
    log: Told,
    /// What was wrong the last time: it is said once.
    failure: Option<ManifestError>,
}

/// What was seen of a folder.
enum Seen {
    /// Something in it is another.
    Changed,
    /// The folder itself is another one, or nobody knows.
    Lost,
}

impl Reloader {
    /// A change is seen at once where the system reports changes, and within a minute where it does not.
    ///
    /// Source: apiserver pkg/util/filesystem/watchuntil.go, `WatchUntil`.
    /// Rule: LOAD-14.
    async fn run(mut self) {
        // One that waits is enough: whoever reads the folder sees all changes.
        let (seen, mut changes) = mpsc::channel(1);
        let mut watcher = self.watcher(seen);
        let mut is_watched = self.watch(watcher.as_mut());
        // What changed since the start.
        self.reload().await;
        let mut interval = tokio::time::interval(INTERVAL);
        interval.tick().await;
        loop {
            let change = tokio::select! {
                change = changes.recv() => change,
                _ = interval.tick() => None,
            };
            if matches!(change, Some(Seen::Lost)) || !is_watched {
                is_watched = self.watch(watcher.as_mut());
            }
            self.reload().await;
        }
    }

    fn watcher(&self, seen: mpsc::Sender<Seen>) -> Option<RecommendedWatcher> {
        let folder = self.folder.path.clone();
        let report = move |event: notify::Result<Event>| {
            let change = match event {
                // To read a folder is no change of it.
                Ok(event) if matches!(event.kind, EventKind::Access(_)) => return,
                Ok(event) if event.paths.iter().all(|path| path != Path::new(&folder)) => Seen::Changed,
                Ok(_) | Err(_) => Seen::Lost,
            };
            // Where one waits already, it stands for this one, too.
            let _ = seen.try_send(change);
        };
        notify::recommended_watcher(report).map_err(|error| self.complain(&error)).ok()
    }

    /// Whether changes of the folder are reported from now on.
    fn watch(&self, watcher: Option<&mut RecommendedWatcher>) -> bool {
        let Some(watcher) = watcher else { return true };
        let path = Path::new(&self.folder.path);
        // It may watch a folder that had the name before.
        let _ = watcher.unwatch(path);
        watcher.watch(path, RecursiveMode::NonRecursive).map_err(|error| self.complain(&error)).is_ok()
    }

    async fn reload(&mut self) {
        let folder = self.folder.clone();
        let Ok(read) = tokio::task::spawn_blocking(move || folder.load()).await else { return };
        let failure = read.as_ref().err().cloned();
        let is_new = self.server.reload_manifests(self.folder.phase, read);
        if is_new {
            self.say(Change::Taken, "reloaded admission manifest config");
        }
        if let Some(error) = &failure
            && self.failure.as_ref() != Some(error)
        {
            let what =
                format!("reloading admission manifest config: {error}; the webhooks stay as they were");
            self.say(Change::Failed, &what);
        }
        self.failure = failure;
    }

    fn complain(&self, error: &notify::Error) {
        let what = format!("watching manifest directory: {error}; it is read every minute");
        self.say(Change::Failed, &what);
    }

    fn say(&self, change: Change, what: &str) {
        let line = format!("{}: {}: {what}", self.folder.plugin(), self.folder.path);
        // What a file holds may be in it.
        (self.log)(change, &output::lines(&line));
    }
}
