//! `RuntimeClass`: applies the overhead and the scheduling constraints of a runtime class.

use std::sync::Arc;

use kubernetes_admission::attributes::Attributes;
use kubernetes_admission::plugin::{Plugin, Remarks};
use kubernetes_types::json::at;
use kubernetes_types::quantity;
use kubernetes_types::status::Status;
use serde_json::{Map, Value};

use super::{forbidden, tolerations};
use crate::storage::ObjectReader;

/// Sets the overhead, the node selector, and the tolerations of the `RuntimeClass` on a new Pod.
///
/// Rejects a Pod whose class does not exist or whose overhead differs from that of the class.
///
/// Source: kubernetes plugin/pkg/admission/runtimeclass/admission.go.
pub(crate) struct RuntimeClass {
    objects: Arc<dyn ObjectReader>,
}

const OVERHEAD_MISMATCH: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
const OVERHEAD_WITHOUT_CLASS: &str =
    "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";

impl RuntimeClass {
    /// Creates the plugin with a reader for the objects of the server.
    pub(crate) fn new(objects: Arc<dyn ObjectReader>) -> Self {
        Self { objects }
    }

    fn class(&self, pod: &Value) -> Result<Option<Arc<Value>>, String> {
        let Some(name) = at(pod, &["spec", "runtimeClassName"]).as_str() else { return Ok(None) };
        let class = self.objects.get("node.k8s.io", "runtimeclasses", "", name);
        class.map(Some).ok_or_else(|| format!("pod rejected: RuntimeClass \"{name}\" not found"))
    }

    fn give(&self, pod: &mut Value) -> Result<(), String> {
        let Some(class) = self.class(pod)? else { return Ok(()) };
        let Some(spec) = super::spec(pod) else { return Ok(()) };
        if !at(&class, &["overhead"]).is_null() {
            let overhead = at(&class, &["overhead", "podFixed"]);
            let own = spec.get("overhead").unwrap_or(&Value::Null);
            if own.as_object().is_some_and(|own| !own.is_empty()) && !are_equal(own, overhead) {
                return Err(OVERHEAD_MISMATCH.to_owned());
            }
            if overhead.is_null() {
                spec.remove("overhead");
            } else {
                spec.insert("overhead".to_owned(), overhead.clone());
            }
        }
        schedule(spec, at(&class, &["scheduling"]))
    }

    fn check(&self, pod: &Value) -> Result<(), &'static str> {
        // A class deleted since the mutating phase has no overhead.
        let class = self.class(pod).unwrap_or_default();
        let overhead = class.as_ref().map_or(&Value::Null, |class| at(class, &["overhead"]));
        let own = at(pod, &["spec", "overhead"]);
        if overhead.is_null() {
            return if own.is_null() { Ok(()) } else { Err(OVERHEAD_WITHOUT_CLASS) };
        }
        if are_equal(own, at(overhead, &["podFixed"])) { Ok(()) } else { Err(OVERHEAD_MISMATCH) }
    }
}

impl Plugin for RuntimeClass {
    fn name(&self) -> &'static str {
        "RuntimeClass"
    }

    fn admit(&self, attributes: &mut Attributes) -> Result<(), Box<Status>> {
        if !super::is_new_pod(attributes) {
            return Ok(());
        }
        let name = attributes.object.as_ref().map(|pod| at(pod, &["spec", "runtimeClassName"]));
        if name.is_some_and(|name| name == "") {
            // The client of kube-apiserver does not send a request without a name.
            return Err(Box::new(Status::failure(500, "", "resource name may not be empty")));
        }
        let given = attributes.object.as_mut().map_or(Ok(()), |pod| self.give(pod));
        given.map_err(|why| forbidden(attributes, &why))
    }

    fn validate(&self, attributes: &Attributes, _remarks: &mut Remarks) -> Result<(), Box<Status>> {
        if !super::is_new_pod(attributes) {
            return Ok(());
        }
        let Some(pod) = &attributes.object else { return Ok(()) };
        self.class(pod).map_err(|why| forbidden(attributes, &why))?;
        self.check(pod).map_err(|why| forbidden(attributes, why))
    }
}

/// Merges the node selector and the tolerations of a runtime class into the spec of a Pod.
///
/// Source: `setScheduling`.
fn schedule(spec: &mut Map<String, Value>, scheduling: &Value) -> Result<(), String> {
    if scheduling.is_null() {
        return Ok(());
    }
    let mut selector = spec.get("nodeSelector").and_then(Value::as_object).cloned().unwrap_or_default();
    for (key, value) in at(scheduling, &["nodeSelector"]).as_object().into_iter().flatten() {
        if let Some(own) = selector.get(key).filter(|own| *own != value) {
            let place = format!("nodeSelector[{key}]");
            return Err(format!(
                "conflict: runtimeClass.scheduling.{place} = {}; pod.spec.{place} = {}",
                value.as_str().unwrap_or_default(),
                own.as_str().unwrap_or_default()
            ));
        }
        selector.insert(key.clone(), value.clone());
    }
    if !selector.is_empty() {
        spec.insert("nodeSelector".to_owned(), selector.into());
    }
    let of = |tolerations: Option<&Value>| -> Vec<Value> {
        tolerations.and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let merged = tolerations::merge(&of(spec.get("tolerations")), &of(scheduling.get("tolerations")));
    if !merged.is_empty() {
        spec.insert("tolerations".to_owned(), merged.into());
    }
    Ok(())
}

/// Returns whether both lists have the same resources and quantities.
fn are_equal(one: &Value, other: &Value) -> bool {
    let amounts = |list: &Value| list.as_object().map_or(0, Map::len);
    amounts(one) == amounts(other)
        && one.as_object().into_iter().flatten().all(|(name, value)| {
            other.get(name).is_some_and(|other| {
                value == other || quantity::from_value(value) == quantity::from_value(other)
            })
        })
}
