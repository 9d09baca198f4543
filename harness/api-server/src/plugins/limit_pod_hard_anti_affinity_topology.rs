//! `LimitPodHardAntiAffinityTopology`: rejects required Pod anti-affinity with a topology key other than the host name.

use kubernetes_admission::attributes::Attributes;
use kubernetes_admission::plugin::{Plugin, Remarks};
use kubernetes_types::json::{at, text};
use kubernetes_types::status::Status;

use super::containers::items;

/// Rejects Pods whose required anti-affinity has a topology key other than the host name.
///
/// Source: kubernetes plugin/pkg/admission/antiaffinity/admission.go.
pub(crate) struct LimitPodHardAntiAffinityTopology;

impl Plugin for LimitPodHardAntiAffinityTopology {
    fn name(&self) -> &'static str {
        "LimitPodHardAntiAffinityTopology"
    }

    fn validate(&self, attributes: &Attributes, _remarks: &mut Remarks) -> Result<(), Box<Status>> {
        const HOSTNAME: &str = "kubernetes.io/hostname";
        let Some(pod) =
            attributes.object.as_ref().filter(|_| super::is_pod(attributes) && super::is_write(attributes))
        else {
            return Ok(());
        };
        let anti_affinity = at(pod, &["spec", "affinity", "podAntiAffinity"]);
        let mut keys = items(anti_affinity, "requiredDuringSchedulingIgnoredDuringExecution")
            .map(|term| text(term, &["topologyKey"]));
        let Some(key) = keys.find(|key| *key != HOSTNAME) else { return Ok(()) };
        let why = format!(
            "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {key} but only key {HOSTNAME} is allowed"
        );
        Err(Box::new(Status::forbidden("", "pods", text(pod, &["metadata", "name"]), &why)))
    }
}
