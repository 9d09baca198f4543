//! Lists the fields of built-in kinds that a field selector can select.

/// The JSON pointer to the component that reported an Event of the core group.
pub(crate) const EVENT_SOURCE: &str = "/source/component";

/// Returns the value that comparisons use for an absent field.
pub(crate) fn unset(pointer: &str) -> &'static str {
    match pointer {
        "/spec/unschedulable" | "/spec/hostNetwork" => "false",
        "/status/replicas" | "/status/succeeded" => "0",
        _ => "",
    }
}

/// Returns the selectable fields; `None` if only the name and the namespace can be selected.
///
/// Source: kubernetes pkg/apis/{core,batch,certificates,events,resource}/v1/conversion.go,
/// `AddFieldLabelConversionFunc`.
/// Rule: KND-12, LST-11.
pub(crate) fn selectable(resource: &str) -> Option<&'static [&'static str]> {
    Some(match resource {
        "pods" => &[
            "metadata.name",
            "metadata.namespace",
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "spec.host",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ],
        "nodes" => &["metadata.name", "spec.unschedulable"],
        "namespaces" => &["metadata.name", "status.phase"],
        "secrets" => &["metadata.name", "metadata.namespace", "type"],
        "services" => &["metadata.name", "metadata.namespace", "spec.clusterIP", "spec.type"],
        "events" => &[
            "metadata.name",
            "metadata.namespace",
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        "events.events.k8s.io" => &[
            "metadata.name",
            "metadata.namespace",
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
            "regarding.uid",
            "regarding.apiVersion",
            "regarding.resourceVersion",
            "regarding.fieldPath",
            "reason",
            "reportingController",
            "type",
        ],
        "replicationcontrollers" => &["metadata.name", "metadata.namespace", "status.replicas"],
        "jobs.batch" => &["metadata.name", "metadata.namespace", "status.successful"],
        "certificatesigningrequests.certificates.k8s.io" | "clustertrustbundles.certificates.k8s.io" => {
            &["metadata.name", "spec.signerName"]
        }
        "podcertificaterequests.certificates.k8s.io" => {
            &["metadata.name", "spec.signerName", "spec.podName", "spec.nodeName"]
        }
        "resourceslices.resource.k8s.io" => {
            &["metadata.name", "spec.nodeName", "spec.driver", "spec.pool.name"]
        }
        _ => return None,
    })
}

/// Returns the JSON pointer to a selected field in the stored object. Events are stored as Events of the core group.
pub(crate) fn pointer(resource: &str, path: &str) -> String {
    let path = match (resource, path.strip_prefix("regarding."), path) {
        ("events.events.k8s.io", Some(field), _) => format!("involvedObject.{field}"),
        ("events.events.k8s.io", None, "reportingController") => "reportingComponent".to_owned(),
        ("events", None, "source") => return EVENT_SOURCE.to_owned(),
        ("pods", None, "spec.host") => "spec.nodeName".to_owned(),
        ("jobs.batch", None, "status.successful") => "status.succeeded".to_owned(),
        _ => path.to_owned(),
    };
    format!("/{}", path.replace('.', "/"))
}
