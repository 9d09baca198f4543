//! Reloads webhooks from manifest files while the server runs.

use jiff::Timestamp;
use kubernetes_admission::event::Phase;
use kubernetes_admission::manifests::{ManifestError, Manifests, StaticManifests};
use kubernetes_admission::metrics::Reload;

use crate::endpoints::context::ApiServer;

impl ApiServer {
    /// Replaces the manifests of the plugin for `phase` with newly read manifests. Returns whether they changed.
    ///
    /// If the manifests are invalid, the webhooks stay unchanged and the metrics count an error.
    ///
    /// Source: apiserver pkg/admission/plugin/webhook/manifest/source/source.go, `checkAndReload`.
    pub fn reload_manifests(&self, phase: Phase, read: Result<Manifests, ManifestError>) -> bool {
        let Ok(manifests) = read else {
            self.observe_reload(phase, Reload::Failure);
            return false;
        };
        let hash = manifests.hash.clone();
        let is_new = self.server.registry.admission.replace_manifests(phase, manifests);
        if is_new {
            self.observe_reload(phase, Reload::Success { hash: &hash });
        }
        is_new
    }

    /// Counts the initial load of the manifests in the metrics.
    ///
    /// Source: apiserver pkg/admission/plugin/webhook/manifest/source/source.go, `LoadInitial`.
    pub(crate) fn observe_manifests(&self) {
        let StaticManifests { mutating, validating } = &self.server.options.manifests;
        for (phase, manifests) in [(Phase::Mutating, mutating), (Phase::Validating, validating)] {
            if let Some(manifests) = manifests {
                self.observe_reload(phase, Reload::Success { hash: &manifests.hash });
            }
        }
    }

    fn observe_reload(&self, phase: Phase, reload: Reload<'_>) {
        let server = &self.server;
        let now = Timestamp::now().as_duration().as_secs_f64();
        server.registry.admission.metrics.observe_reload(phase, reload, &server.options.hostname, now);
    }
}
