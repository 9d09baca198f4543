//! Counts webhook certificates that only earlier Kubernetes versions accepted.

use prometheus::{IntCounter, Registry};

use super::registered;
use crate::audit::CertificateFlaw;

/// The counters for certificates without a SAN or with a SHA-1 signature. Only earlier Kubernetes versions
/// accepted them.
///
/// Source: apiserver `pkg/util/webhook/metrics.go`.
/// Rule: MET-14.
#[derive(Debug)]
pub(super) struct Certificates {
    missing_san: IntCounter,
    insecure_sha1: IntCounter,
}

impl Certificates {
    pub(super) fn new(registry: &Registry) -> Self {
        let counter = |name: &str, help: &str| {
            let name = format!("apiserver_webhooks_x509_{name}_total");
            let counter = registered(IntCounter::new(name, format!("[BETA] {help}")));
            registered(registry.register(Box::new(counter.clone())));
            counter
        };
        Self {
            missing_san: counter(
                "missing_san",
                "Counts the number of requests to servers missing SAN extension in their serving certificate OR the number of connection failures due to the lack of x509 certificate SAN extension missing (either/or, based on the runtime environment)",
            ),
            insecure_sha1: counter(
                "insecure_sha1",
                "Counts the number of requests to servers with insecure SHA1 signatures in their serving certificate OR the number of connection failures due to the insecure SHA1 signatures (either/or, based on the runtime environment)",
            ),
        }
    }

    /// Counts the certificate flaw that the `reason` of a failed call names, if any.
    pub(super) fn observe(&self, reason: &str) {
        match CertificateFlaw::from_reason(reason) {
            Some(CertificateFlaw::MissingSan) => self.missing_san.inc(),
            Some(CertificateFlaw::InsecureSha1) => self.insecure_sha1.inc(),
            None => {}
        }
    }
}
