//! Reloads the manifest directories while the API server runs.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use harness::manifests::ManifestError;
use harness::server::ApiServer;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::Folder;

/// The interval at which a directory is reloaded even if the system does not report a change.
///
/// Source: apiserver pkg/admission/plugin/webhook/manifest/source/source.go, `defaultReloadInterval`.
const INTERVAL: Duration = Duration::from_secs(60);

/// The result of a change in a manifest directory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    /// The server uses the new content.
    Applied,
    /// The server does not use the new content, or may notice changes late.
    Failed,
}

/// A callback that receives the result of a change and a message about it.
pub(crate) type OnChange = Arc<dyn Fn(Change, &str) + Send + Sync>;

/// Watches manifest directories until it is dropped.
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
    /// Watches `folders` and reloads them into `server` when they change; calls `log` with each result.
    pub(crate) fn start(folders: Vec<Folder>, server: &ApiServer, log: OnChange) -> Self {
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
    log: OnChange,
    /// The last error. It is kept so that each error is reported only once.
    failure: Option<ManifestError>,
}

/// An event of a watched directory.
enum WatchEvent {
    /// The content of the directory changed.
    Changed,
    /// The directory itself was replaced, or its state is unknown.
    Lost,
}

impl Reloader {
    /// Reloads the directory when the system reports a change, or at least once a minute.
    ///
    /// Source: apiserver pkg/util/filesystem/watchuntil.go, `WatchUntil`.
    /// Rule: LOAD-14.
    async fn run(mut self) {
        // One pending event is enough: a reload sees all changes.
        let (seen, mut changes) = mpsc::channel(1);
        let mut watcher = self.watcher(seen);
        let mut is_watched = self.watch(watcher.as_mut());
        // Applies changes that were made since startup.
        self.reload().await;
        let mut interval = tokio::time::interval(INTERVAL);
        interval.tick().await;
        loop {
            let change = tokio::select! {
                change = changes.recv() => change,
                _ = interval.tick() => None,
            };
            if matches!(change, Some(WatchEvent::Lost)) || !is_watched {
                is_watched = self.watch(watcher.as_mut());
            }
            self.reload().await;
        }
    }

    fn watcher(&self, seen: mpsc::Sender<WatchEvent>) -> Option<RecommendedWatcher> {
        let folder = self.folder.path.clone();
        let report = move |event: notify::Result<Event>| {
            let change = match event {
                // Reading the directory is not a change.
                Ok(event) if matches!(event.kind, EventKind::Access(_)) => return,
                Ok(event) if event.paths.iter().all(|path| path != Path::new(&folder)) => WatchEvent::Changed,
                Ok(_) | Err(_) => WatchEvent::Lost,
            };
            // If an event is already pending, it covers this one.
            let _ = seen.try_send(change);
        };
        notify::recommended_watcher(report).map_err(|error| self.log_watch_error(&error)).ok()
    }

    /// Starts to watch the directory, and returns whether the system reports its changes.
    fn watch(&self, watcher: Option<&mut RecommendedWatcher>) -> bool {
        let Some(watcher) = watcher else { return true };
        let path = Path::new(&self.folder.path);
        // The watcher may still watch an old directory with this name.
        let _ = watcher.unwatch(path);
        watcher.watch(path, RecursiveMode::NonRecursive).map_err(|error| self.log_watch_error(&error)).is_ok()
    }

    async fn reload(&mut self) {
        let folder = self.folder.clone();
        let Ok(read) = tokio::task::spawn_blocking(move || folder.load()).await else { return };
        let failure = read.as_ref().err().cloned();
        let is_new = self.server.reload_manifests(self.folder.phase, read);
        if is_new {
            self.log_change(Change::Applied, "reloaded admission manifest config");
        }
        if let Some(error) = &failure
            && self.failure.as_ref() != Some(error)
        {
            let what =
                format!("reloading admission manifest config: {error}; the previous webhooks stay in use");
            self.log_change(Change::Failed, &what);
        }
        self.failure = failure;
    }

    fn log_watch_error(&self, error: &notify::Error) {
        let what = format!("watching manifest directory: {error}; it is reloaded every minute");
        self.log_change(Change::Failed, &what);
    }

    fn log_change(&self, change: Change, what: &str) {
        let line = format!("{}: {}: {what}", self.folder.plugin(), self.folder.path);
        // The message may contain text from a file.
        (self.log)(change, &output::lines(&line));
    }
}
