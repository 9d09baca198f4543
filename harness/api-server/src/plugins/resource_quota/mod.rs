//! `ResourceQuota`: compares requests with the quotas of their namespace, and charges the quotas.

mod check;
mod evaluator;
mod pods;
mod resource_lists;

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use kubernetes_admission::attributes::Attributes;
use kubernetes_admission::plugin::{Charge, Plugin};
use kubernetes_types::json::text;
use kubernetes_types::status::Status;
use serde_json::Value;

use self::evaluator::Evaluator;
use crate::storage::ObjectReader;

/// Rejects requests that exceed a quota of the namespace, and adds what other requests use to the status of the quota.
///
/// A quota limits nothing until its status contains limits. A controller copies them from `spec.hard`.
///
/// Source: apiserver pkg/admission/plugin/resourcequota/{admission,controller}.go.
/// Rule: QTA-01, QTA-06.
pub(crate) struct ResourceQuota {
    objects: Arc<dyn ObjectReader>,
    writer: QuotaWriter,
    /// The locks of the namespaces whose quotas are being charged.
    locks: Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>,
}

/// The server that writes the status of quotas. Unset until the server has been created.
pub(crate) type QuotaWriter = Arc<OnceLock<Box<dyn ObjectWriter>>>;

/// Writes objects as the server itself.
pub(crate) trait ObjectWriter: fmt::Debug + Send + Sync {
    /// Updates an object as `system:apiserver`, with authorization and admission.
    ///
    /// # Errors
    /// Returns the Status of the response if the request fails.
    fn put<'a>(
        &'a self,
        path: String,
        object: &'a Value,
    ) -> Pin<Box<dyn Future<Output = Result<(), Box<Status>>> + Send + 'a>>;
}

/// The maximum duration of an evaluation.
///
/// Source: apiserver pkg/admission/plugin/resourcequota/controller.go, `Evaluate`.
const EVALUATION_TIMEOUT: Duration = Duration::from_secs(10);

/// The number of times that failed updates of quotas are repeated.
const REMAINING_RETRIES: usize = 3;

impl ResourceQuota {
    /// Creates the plugin with a reader for the objects of the server, and a writer for the status of quotas.
    pub(crate) fn new(objects: Arc<dyn ObjectReader>, writer: QuotaWriter) -> Self {
        Self { objects, writer, locks: Mutex::default() }
    }

    fn quotas(&self, attributes: &Attributes) -> Vec<Arc<Value>> {
        self.objects.list("", "resourcequotas", &attributes.namespace)
    }

    /// Returns the lock of a namespace. Upstream charges the quotas of a namespace one request after another.
    fn lock(&self, namespace: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = locks.get(namespace).and_then(Weak::upgrade) {
            return lock;
        }
        locks.retain(|_, lock| lock.strong_count() > 0);
        let lock = Arc::default();
        locks.insert(namespace.to_owned(), Arc::downgrade(&lock));
        lock
    }

    async fn evaluate(&self, attributes: &Attributes, evaluator: Evaluator) -> Result<(), Box<Status>> {
        let lock = self.lock(&attributes.namespace);
        let charging = async {
            let _held = lock.lock().await;
            self.check_quotas(attributes, &evaluator).await
        };
        match tokio::time::timeout(EVALUATION_TIMEOUT, charging).await {
            Ok(outcome) => outcome,
            Err(_elapsed) => Err(Box::new(Status::internal_error("resource quota evaluation timed out"))),
        }
    }

    /// Compares the request with the quotas and updates their status.
    ///
    /// Source: apiserver pkg/admission/plugin/resourcequota/controller.go, `checkQuotas`.
    /// Rule: QTA-02.
    async fn check_quotas(&self, attributes: &Attributes, evaluator: &Evaluator) -> Result<(), Box<Status>> {
        let mut quotas = self.quotas(attributes);
        for remaining in (0..=REMAINING_RETRIES).rev() {
            let charged = check::check_request(&quotas, attributes, evaluator)?;
            if attributes.dry_run {
                return Ok(());
            }
            let mut failed = Vec::new();
            let mut last = None;
            for quota in &charged {
                if let Err(status) = self.update_status(quota).await {
                    failed.push(text(quota, &["metadata", "name"]));
                    last = Some(status);
                }
            }
            match last {
                None => break,
                Some(status) if remaining == 0 => return Err(status),
                Some(_) => {}
            }
            quotas = self.quotas(attributes);
            quotas.retain(|quota| failed.contains(&text(quota, &["metadata", "name"])));
        }
        Ok(())
    }

    async fn update_status(&self, quota: &Value) -> Result<(), Box<Status>> {
        let writer = self.writer.get();
        let writer = writer.ok_or_else(|| Box::new(Status::internal_error("the server has not started")))?;
        let (namespace, name) = (text(quota, &["metadata", "namespace"]), text(quota, &["metadata", "name"]));
        writer.put(format!("/api/v1/namespaces/{namespace}/resourcequotas/{name}/status"), quota).await
    }
}

impl Plugin for ResourceQuota {
    fn name(&self) -> &'static str {
        "ResourceQuota"
    }

    fn charge<'a>(&'a self, attributes: &'a Attributes) -> Option<Charge<'a>> {
        let evaluator = Evaluator::new(attributes)?;
        if self.quotas(attributes).is_empty() {
            return None;
        }
        Some(Box::pin(self.evaluate(attributes, evaluator)))
    }
}

#[cfg(test)]
mod tests;
