//! `DefaultStorageClass` and `DefaultIngressClass`: set the default class.

use std::cmp::Reverse;
use std::sync::Arc;

use kubernetes_admission::attributes::{Attributes, Operation};
use kubernetes_admission::plugin::Plugin;
use kubernetes_types::json::{at, text};
use kubernetes_types::status::Status;
use serde_json::{Value, json};

use crate::storage::ObjectReader;

/// Sets the default class on new objects without a class.
///
/// If several classes are the default, the plugin uses the newest; of equally old classes, the first by name.
pub(crate) struct DefaultClass {
    objects: Arc<dyn ObjectReader>,
    of: &'static ClassedResource,
}

/// A kind of object that refers to a class.
#[derive(Debug)]
pub(crate) struct ClassedResource {
    plugin: &'static str,
    /// The resource of the objects, such as `ingresses.networking.k8s.io`.
    objects: &'static str,
    /// The group and the resource of the classes.
    classes: (&'static str, &'static str),
    /// The annotations that mark a class as the default.
    markers: &'static [&'static str],
    /// The field of `spec` with the name of the class.
    field: &'static str,
    /// The annotation that contained the name of the class before the field existed.
    annotation: &'static str,
}

/// The resources of `DefaultStorageClass`.
///
/// Source: kubernetes plugin/pkg/admission/storage/storageclass/setdefault/admission.go; `pkg/volume/util/storageclass.go`,
/// `GetDefaultClass`.
pub(crate) static STORAGE: ClassedResource = ClassedResource {
    plugin: "DefaultStorageClass",
    objects: "persistentvolumeclaims",
    classes: ("storage.k8s.io", "storageclasses"),
    markers: &[
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    ],
    field: "storageClassName",
    annotation: "volume.beta.kubernetes.io/storage-class",
};

/// The resources of `DefaultIngressClass`.
///
/// Source: kubernetes plugin/pkg/admission/network/defaultingressclass/admission.go.
pub(crate) static INGRESS: ClassedResource = ClassedResource {
    plugin: "DefaultIngressClass",
    objects: "ingresses.networking.k8s.io",
    classes: ("networking.k8s.io", "ingressclasses"),
    markers: &["ingressclass.kubernetes.io/is-default-class"],
    field: "ingressClassName",
    annotation: "kubernetes.io/ingress.class",
};

impl DefaultClass {
    /// Creates the plugin with a reader for the objects of the server.
    pub(crate) fn new(objects: Arc<dyn ObjectReader>, of: &'static ClassedResource) -> Self {
        Self { objects, of }
    }

    fn default_class(&self) -> Option<String> {
        let (group, resource) = self.of.classes;
        let is_default = |class: &&Arc<Value>| {
            let annotations = at(class, &["metadata", "annotations"]);
            self.of.markers.iter().any(|marker| at(annotations, &[marker]) == "true")
        };
        let classes = self.objects.list(group, resource, "");
        let newest = classes.iter().filter(is_default).min_by_key(|class| {
            // Timestamps in this format sort as text.
            (Reverse(text(class, &["metadata", "creationTimestamp"])), text(class, &["metadata", "name"]))
        });
        newest.map(|class| text(class, &["metadata", "name"]).to_owned())
    }
}

impl Plugin for DefaultClass {
    fn name(&self) -> &'static str {
        self.of.plugin
    }

    fn admit(&self, attributes: &mut Attributes) -> Result<(), Box<Status>> {
        let concerns = attributes.operation == Operation::Create
            && attributes.subresource.is_empty()
            && attributes.resource.group_resource() == self.of.objects;
        let Some(object) = attributes.object.as_mut().filter(|_| concerns) else { return Ok(()) };
        let has_class = at(object, &["metadata", "annotations"]).get(self.of.annotation).is_some()
            || !at(object, &["spec", self.of.field]).is_null();
        if !has_class
            && let Some(class) = self.default_class()
            && let Some(object) = object.as_object_mut()
            && let Some(spec) = object.entry("spec").or_insert_with(|| json!({})).as_object_mut()
        {
            spec.insert(self.of.field.to_owned(), json!(class));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Stored, request};
    use super::*;

    #[track_caller]
    fn check(classes: &[(&str, &str, &str)], claim: Value, expect: &Value) {
        let class = |(name, created, marker): &(&str, &str, &str)| {
            let annotations = json!({(*marker): "true"});
            (
                "storageclasses",
                json!({"metadata": {"name": name, "creationTimestamp": created, "annotations": annotations}}),
            )
        };
        let stored = Stored(classes.iter().map(class).collect());
        let mut attributes =
            request(Operation::Create, "persistentvolumeclaims", "PersistentVolumeClaim", claim);
        DefaultClass::new(Arc::new(stored), &STORAGE).admit(&mut attributes).unwrap();
        assert_eq!(&attributes.object.unwrap()["spec"]["storageClassName"], expect);
    }

    const MARKER: &str = "storageclass.kubernetes.io/is-default-class";

    #[test]
    fn newest_default_class_is_set() {
        let classes = [("a", "2026-01-01T00:00:00Z", MARKER), ("c", "2026-01-02T00:00:00Z", MARKER)];
        check(&classes, json!({"metadata": {}, "spec": {}}), &json!("c"));
        let same = [("b", "2026-01-02T00:00:00Z", MARKER), ("d", "2026-01-03T00:00:00Z", "other")];
        check(&[classes, same].concat(), json!({"metadata": {}}), &json!("b"));
        check(&[], json!({"metadata": {}, "spec": {}}), &Value::Null);
    }

    #[test]
    fn existing_class_is_kept() {
        let classes = [("a", "2026-01-01T00:00:00Z", MARKER)];
        check(&classes, json!({"metadata": {}, "spec": {"storageClassName": ""}}), &json!(""));
        let annotations = json!({"volume.beta.kubernetes.io/storage-class": "x"});
        check(&classes, json!({"metadata": {"annotations": annotations}, "spec": {}}), &Value::Null);
    }
}
