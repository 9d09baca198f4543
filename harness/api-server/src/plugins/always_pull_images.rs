//! `AlwaysPullImages`: makes nodes pull every image, so that users can run only images that they are allowed to pull.

use std::collections::BTreeSet;

use kubernetes_admission::attributes::{Attributes, Operation};
use kubernetes_admission::failure;
use kubernetes_admission::plugin::{Plugin, Remarks};
use kubernetes_types::json::{at, text};
use kubernetes_types::status::{FieldError, Status, aggregate};
use serde_json::{Value, json};

use super::containers::{self, LISTS, items};
use super::forbidden;

/// Sets the pull policy of containers and image volumes to `Always`, unless an update does not add images.
///
/// After mutation, rejects a Pod with a different pull policy.
///
/// Source: kubernetes plugin/pkg/admission/alwayspullimages/admission.go.
pub(crate) struct AlwaysPullImages;

const ALWAYS: &str = "Always";

impl Plugin for AlwaysPullImages {
    fn name(&self) -> &'static str {
        "AlwaysPullImages"
    }

    fn admit(&self, attributes: &mut Attributes) -> Result<(), Box<Status>> {
        if !concerns(attributes) {
            return Ok(());
        }
        let Some(spec) = attributes.object.as_mut().and_then(super::spec) else { return Ok(()) };
        for list in LISTS {
            let containers = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
            for container in containers.filter_map(Value::as_object_mut) {
                container.insert("imagePullPolicy".to_owned(), json!(ALWAYS));
            }
        }
        let volumes = spec.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten();
        for image in volumes.filter_map(|volume| volume.get_mut("image")?.as_object_mut()) {
            image.insert("pullPolicy".to_owned(), json!(ALWAYS));
        }
        Ok(())
    }

    /// Rejects containers and image volumes whose pull policy is not `Always`.
    ///
    /// Upstream returns an aggregate of errors instead of a Status.
    fn validate(&self, attributes: &Attributes, _remarks: &mut Remarks) -> Result<(), Box<Status>> {
        let Some(pod) = attributes.object.as_ref().filter(|_| concerns(attributes)) else { return Ok(()) };
        let spec = at(pod, &["spec"]);
        let containers = LISTS.into_iter().flat_map(|list| {
            items(spec, list).enumerate().map(move |(index, container)| {
                (format!("spec.{list}[{index}].imagePullPolicy"), text(container, &["imagePullPolicy"]))
            })
        });
        let volumes = items(spec, "volumes").enumerate().filter_map(|(index, volume)| {
            let image = at(volume, &["image"]);
            let field = format!("spec.volumes[{index}].image.pullPolicy");
            (!image.is_null()).then(|| (field, text(image, &["pullPolicy"])))
        });
        let errors: Vec<String> = containers
            .chain(volumes)
            .filter(|(_, policy)| *policy != ALWAYS)
            .map(|(field, policy)| {
                let error = FieldError::not_supported(field, Value::from(policy), "\"Always\"");
                forbidden(attributes, &error.to_string()).message
            })
            .collect();
        if errors.is_empty() { Ok(()) } else { Err(failure::without_reason(aggregate(errors))) }
    }
}

fn concerns(attributes: &Attributes) -> bool {
    if !super::is_pod(attributes) {
        return false;
    }
    match (attributes.operation, &attributes.object, &attributes.old_object) {
        (Operation::Create, ..) => true,
        (Operation::Update, Some(pod), Some(old)) => {
            let images =
                |pod| containers::all(at(pod, &["spec"])).map(|container| text(container, &["image"]));
            let known: BTreeSet<&str> = images(old).collect();
            images(pod).any(|image| !known.contains(image))
        }
        _ => false,
    }
}
