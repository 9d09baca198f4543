//! Requests that several checks make of one creation.

use serde_json::{Value, json};

use super::v10_write_loop::as_stored;
use crate::attributes::{Attributes, Operation};
use crate::verify::trial::Trial;

/// The request that writes `written` over `stored`.
pub(super) fn update(trial: &Trial<'_>, stored: Value, written: Value) -> Attributes {
    Attributes {
        operation: Operation::Update,
        name: stored["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
        object: Some(written),
        old_object: Some(stored),
        options: Some(json!({"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1"})),
        ..trial.request.clone()
    }
}

/// The object as a client creates it from what it read: with its name and what the server and its controllers wrote
/// into the spec, without what the server gives anew.
///
/// Source: kubernetes plugin/pkg/admission/serviceaccount, `defaulttolerationseconds` and `priority`;
/// pkg/registry/core/service/storage; velero pkg/restore/restore.go, `resetMetadataAndStatus`.
pub(super) fn restored(object: &Value) -> Value {
    let mut restored = as_stored(object);
    if let Some(metadata) = restored["metadata"].as_object_mut() {
        for field in
            ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink"]
        {
            metadata.remove(field);
        }
    }
    if let Some(members) = restored.as_object_mut() {
        members.remove("status");
    }
    match restored["kind"].as_str() {
        Some("Pod") => as_it_ran(&mut restored["spec"]),
        Some("Service") => as_allocated(&mut restored["spec"]),
        Some("Deployment") => {
            restored["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = "1".into();
        }
        _ => {}
    }
    restored
}

/// What the scheduler and the server's own plugins write into a Pod.
fn as_it_ran(spec: &mut Value) {
    const TOKEN: &str = "kube-api-access-x7k2p";
    let Some(members) = spec.as_object_mut() else { return };
    let gives_token = members.get("automountServiceAccountToken") != Some(&false.into());
    let account = members.entry("serviceAccountName").or_insert_with(|| "default".into()).clone();
    members.entry("serviceAccount").or_insert(account);
    members.entry("nodeName").or_insert_with(|| "node-1".into());
    members.entry("priority").or_insert_with(|| 0.into());
    members.entry("preemptionPolicy").or_insert_with(|| "PreemptLowerPriority".into());
    let tolerations = ["not-ready", "unreachable"].map(|condition| {
        json!({"key": format!("node.kubernetes.io/{condition}"), "operator": "Exists", "effect": "NoExecute",
            "tolerationSeconds": 300})
    });
    append(spec, "tolerations", tolerations);
    if !gives_token {
        return;
    }
    let token = json!({"name": TOKEN, "projected": {"defaultMode": 420, "sources": [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    ]}});
    append(spec, "volumes", [token]);
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let path = "/var/run/secrets/kubernetes.io/serviceaccount";
            append(container, "volumeMounts", [json!({"name": TOKEN, "mountPath": path, "readOnly": true})]);
        }
    }
}

/// What the server allocates for a Service.
fn as_allocated(spec: &mut Value) {
    let Some(members) = spec.as_object_mut() else { return };
    if members.get("type") == Some(&"ExternalName".into()) {
        return;
    }
    let address = members.entry("clusterIP").or_insert_with(|| "10.96.0.10".into()).clone();
    members.entry("clusterIPs").or_insert_with(|| json!([address]));
    members.entry("ipFamilies").or_insert_with(|| json!(["IPv4"]));
    members.entry("ipFamilyPolicy").or_insert_with(|| "SingleStack".into());
}

fn append<const N: usize>(parent: &mut Value, list: &str, items: [Value; N]) {
    let Some(members) = parent.as_object_mut() else { return };
    if let Some(list) = members.entry(list).or_insert_with(|| json!([])).as_array_mut() {
        list.extend(items);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restored_pod_has_run_and_has_no_identity() {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p-"},
            "spec": {"containers": [{"name": "app"}]}, "status": {"phase": "Running"}});
        let restored = restored(&pod);
        assert_eq!(restored["metadata"], json!({"generateName": "p-", "name": "p-x7k2p"}));
        assert_eq!(restored.get("status"), None);
        assert_eq!(restored["spec"]["volumes"][0]["name"], "kube-api-access-x7k2p");
        assert_eq!(restored["spec"]["containers"][0]["volumeMounts"][0]["readOnly"], true);
        assert_eq!(restored["spec"]["tolerations"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn a_restored_service_has_an_address_unless_it_is_an_alias() {
        let service = |spec: Value| {
            let service =
                json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec});
            restored(&service)["spec"].clone()
        };
        assert_eq!(service(json!({}))["clusterIPs"], json!(["10.96.0.10"]));
        assert_eq!(service(json!({"clusterIP": "None"}))["clusterIPs"], json!(["None"]));
        let alias = json!({"type": "ExternalName", "externalName": "example.com"});
        assert_eq!(service(alias.clone()), alias);
    }
}
