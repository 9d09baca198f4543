//! `PodNodeSelector`: limits the nodes on which the Pods of a namespace may run.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubernetes_admission::attributes::Attributes;
use kubernetes_admission::failure;
use kubernetes_admission::plugin::{Plugin, Remarks};
use kubernetes_types::json::{at, text};
use kubernetes_types::names;
use kubernetes_types::status::{FieldError, Status, aggregate};
use serde_json::{Value, json};

use crate::storage::ObjectReader;

/// Adds the node selector of the namespace to new Pods.
///
/// Rejects Pods that conflict with this selector or request nodes that the configuration does not allow for the
/// namespace.
///
/// Source: kubernetes plugin/pkg/admission/podnodeselector/admission.go.
pub(crate) struct PodNodeSelector {
    objects: Arc<dyn ObjectReader>,
    configuration: PodNodeSelectorConfiguration,
}

/// A `podNodeSelectorPluginConfig`: node selectors, such as `a=b,c=d`, by namespace.
///
/// The key `clusterDefaultNodeSelector` applies to namespaces without an annotation. Selectors are parsed for each
/// request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodNodeSelectorConfiguration(pub BTreeMap<String, String>);

/// The key of the selector for namespaces without an annotation.
const CLUSTER_DEFAULT: &str = "clusterDefaultNodeSelector";

const ANNOTATION: &str = "scheduler.alpha.kubernetes.io/node-selector";

impl PodNodeSelector {
    /// Creates the plugin with a reader for the objects of the server.
    pub(crate) fn new(objects: Arc<dyn ObjectReader>, configuration: PodNodeSelectorConfiguration) -> Self {
        Self { objects, configuration }
    }

    /// Returns the node selector of the namespace. Rejects a Pod that conflicts with the selector.
    fn selector(&self, attributes: &Attributes) -> Result<BTreeMap<String, String>, Box<Status>> {
        let name = &attributes.namespace;
        let Some(namespace) = self.objects.get("", "namespaces", "", name) else {
            return Err(Box::new(Status::internal_error(&format!("namespace {name} does not exist"))));
        };
        let annotations = at(&namespace, &["metadata", "annotations"]);
        let of_namespace = annotations.get(ANNOTATION).map(|text| text.as_str().unwrap_or_default());
        let selector = of_namespace.unwrap_or_else(|| self.configuration.selector(CLUSTER_DEFAULT));
        let selector = parse(selector).map_err(failure::without_reason)?;
        let pod = attributes.object.as_ref().unwrap_or(&Value::Null);
        let own = at(pod, &["spec", "nodeSelector"]);
        let conflicts =
            |(key, value): (&String, &String)| own.get(key).is_some_and(|own| own != value.as_str());
        if selector.iter().any(conflicts) {
            return Err(refused(
                pod,
                "pod node label selector conflicts with its namespace node label selector",
            ));
        }
        Ok(selector)
    }

    /// Checks that the Pod requests only nodes that the configuration allows for its namespace.
    fn check_allowed(&self, attributes: &Attributes) -> Result<(), Box<Status>> {
        let allowed =
            parse(self.configuration.selector(&attributes.namespace)).map_err(failure::without_reason)?;
        let pod = attributes.object.as_ref().unwrap_or(&Value::Null);
        let mut own = at(pod, &["spec", "nodeSelector"]).as_object().into_iter().flatten();
        let is_allowed = |(key, value): (&String, &Value)| {
            allowed.get(key).is_some_and(|allowed| value == allowed.as_str())
        };
        if allowed.is_empty() || own.all(is_allowed) {
            return Ok(());
        }
        Err(refused(pod, "pod node label selector labels conflict with its namespace whitelist"))
    }
}

/// Builds a 403 that contains the current name of the Pod.
fn refused(pod: &Value, why: &str) -> Box<Status> {
    Box::new(Status::forbidden("", "pods", text(pod, &["metadata", "name"]), why))
}

impl PodNodeSelectorConfiguration {
    /// Returns the configured selector with the key `name`; empty if absent.
    fn selector(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }
}

impl Plugin for PodNodeSelector {
    fn name(&self) -> &'static str {
        "PodNodeSelector"
    }

    fn admit(&self, attributes: &mut Attributes) -> Result<(), Box<Status>> {
        if !super::is_new_pod(attributes) {
            return Ok(());
        }
        let selector = self.selector(attributes)?;
        if let Some(spec) = attributes.object.as_mut().and_then(super::spec)
            && !selector.is_empty()
            && let Some(own) = super::member(spec, "nodeSelector", json!({})).as_object_mut()
        {
            own.extend(selector.into_iter().map(|(key, value)| (key, Value::from(value))));
        }
        self.check_allowed(attributes)
    }

    fn validate(&self, attributes: &Attributes, _remarks: &mut Remarks) -> Result<(), Box<Status>> {
        if !super::is_new_pod(attributes) {
            return Ok(());
        }
        self.selector(attributes)?;
        self.check_allowed(attributes)
    }
}

/// Parses labels such as `a=b,c=d`.
///
/// Source: apimachinery pkg/labels/labels.go, `ConvertSelectorToLabelsMap`.
fn parse(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut labels = BTreeMap::new();
    if text.is_empty() {
        return Ok(labels);
    }
    for label in text.split(',') {
        let parts: Vec<&str> = label.split('=').collect();
        let [key, value] = parts.as_slice() else {
            return Err(format!("invalid selector: [{}]", parts.join(" ")));
        };
        let (key, value) = (key.trim(), value.trim());
        // Upstream reports at most the last part of the path in these errors.
        let wrong = |field: String, value: &str, errors: Vec<String>| {
            let error = |what| FieldError::invalid(field.clone(), Value::from(value), what).to_string();
            if errors.is_empty() { Ok(()) } else { Err(aggregate(errors.into_iter().map(error))) }
        };
        wrong("<nil>".to_owned(), key, names::label_key(key))?;
        wrong(format!("[{key}]"), value, names::label_value(value))?;
        labels.insert(key.to_owned(), value.to_owned());
    }
    Ok(labels)
}
