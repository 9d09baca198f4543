//! Counts the attempts to read the manifest directories of the webhook plugins, and exposes their hashes.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use data_encoding::BASE32_NOPAD;
use prometheus::{GaugeVec, IntCounterVec, IntGaugeVec, Opts, Registry};
use sha2::{Digest as _, Sha256};

use super::registered;
use crate::event::Phase;
use crate::manifests::hash_of;

/// The result of reading a manifest directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload<'a> {
    /// The webhooks in the directory are now in use.
    Success {
        /// The hash of the files.
        hash: &'a str,
    },
    /// The previous webhooks stay in use.
    Failure,
}

/// The metrics for reading the manifest directories of the webhook plugins.
///
/// Source: apiserver pkg/admission/plugin/manifest/metrics/metrics.go.
/// Rule: MET-15.
#[derive(Debug)]
pub(super) struct Reloads {
    total: IntCounterVec,
    last: GaugeVec,
    info: IntGaugeVec,
    /// The hash that the `info` metric exposes, by plugin.
    hashes: Mutex<BTreeMap<&'static str, String>>,
}

impl Reloads {
    pub(super) fn new(registry: &Registry) -> Self {
        let opts = |name: &str, help: &str| {
            let name = format!("apiserver_manifest_admission_config_controller_{name}");
            Opts::new(name, format!("[ALPHA] {help}"))
        };
        let total = opts(
            "automatic_reloads_total",
            "Total number of automatic reloads of admission manifest configuration split by status, plugin, and apiserver identity.",
        );
        let last = opts(
            "automatic_reload_last_timestamp_seconds",
            "Timestamp of the last automatic reload of admission manifest configuration split by status, plugin, and apiserver identity.",
        );
        let info = opts(
            "last_config_info",
            "Information about the last applied admission manifest configuration with hash as label, split by plugin and apiserver identity.",
        );
        let labels = ["status", "plugin", "apiserver_id_hash"];
        let reloads = Self {
            total: registered(IntCounterVec::new(total, &labels)),
            last: registered(GaugeVec::new(last, &labels)),
            info: registered(IntGaugeVec::new(info, &["plugin", "apiserver_id_hash", "hash"])),
            hashes: Mutex::default(),
        };
        registered(registry.register(Box::new(reloads.total.clone())));
        registered(registry.register(Box::new(reloads.last.clone())));
        registered(registry.register(Box::new(reloads.info.clone())));
        reloads
    }

    /// Counts an attempt at time `now`, in seconds since 1970. For each plugin, only the latest hash is exposed.
    pub(super) fn observe(&self, phase: Phase, reload: Reload<'_>, hostname: &str, now: f64) {
        let plugin = phase.webhook_plugin();
        let server = hash_of(&identity(hostname));
        let status = match reload {
            Reload::Success { .. } => "success",
            Reload::Failure => "failure",
        };
        self.total.with_label_values(&[status, plugin, &server]).inc();
        self.last.with_label_values(&[status, plugin, &server]).set(now);
        if let Reload::Success { hash } = reload {
            let mut last = self.hashes.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(before) = last.insert(plugin, hash.to_owned()) {
                // The label values exist: they were set with the previous hash.
                let _ = self.info.remove_label_values(&[plugin, &server, &before]);
            }
            self.info.with_label_values(&[plugin, &server, hash]).set(1);
        }
    }
}

/// Returns the identity of an API server with this host name.
///
/// Source: apiserver pkg/server/config.go, `NewConfig`.
pub fn identity(hostname: &str) -> String {
    let mut hash = Sha256::new();
    for part in [hostname, "kube-apiserver"] {
        let length = u16::try_from(part.len()).unwrap_or(u16::MAX);
        hash.update(length.to_be_bytes());
        hash.update(part.as_bytes());
    }
    let hash = hash.finalize();
    let start: Vec<u8> = hash.iter().take(16).copied().collect();
    format!("apiserver-{}", BASE32_NOPAD.encode(&start).to_lowercase())
}
