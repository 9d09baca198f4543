//! Adds the values that built-in admission plugins write to an object before the first webhook.

use serde_json::{Value, json};

use kubernetes_admission::attributes::{Attributes, GroupVersionKind};
use kubernetes_admission::plugin::Plugin as _;
use kubernetes_api_server::{DefaultTolerationSeconds, StorageObjectInUseProtection, TaintNodesByCondition};
use kubernetes_types::json::{at, set, text};
use kubernetes_types::status::Status;

/// The mount path of the service account token.
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// The name prefix of the volumes with the service account token.
const TOKEN_VOLUME: &str = "kube-api-access-";
/// The container lists whose containers mount the token.
const CONTAINERS: [&str; 2] = ["containers", "initContainers"];
/// The annotation that marks mirror Pods.
pub(super) const MIRROR: &str = "kubernetes.io/config.mirror";

/// Adds the fields that an object always has when a webhook receives it.
///
/// A Pod gets a service account with its token, a priority, and the default tolerations. A volume or volume claim gets
/// its finalizer, and a Node gets its taint. Mirror Pods do not get a service account. Existing values are kept.
///
/// Source: kubernetes pkg/kubeapiserver/options/plugins.go, `AllOrderedPlugins`; plugin/pkg/admission/serviceaccount
/// and priority.
///
/// # Errors
/// Returns the `Status` of the rejection if a plugin rejects the request.
pub(super) fn complete(request: &mut Attributes) -> Result<(), Box<Status>> {
    StorageObjectInUseProtection.admit(request)?;
    TaintNodesByCondition.admit(request)?;
    let is_pod = request.kind == GroupVersionKind::new("", "v1", "Pod");
    let Some(pod) = request.object.as_mut().filter(|_| is_pod) else { return Ok(()) };
    let is_mirror = at(pod, &["metadata", "annotations"]).get(MIRROR).is_some();
    if let Some(spec) = pod.get_mut("spec")
        && let Some(members) = spec.as_object_mut()
    {
        members.entry("priority").or_insert_with(|| 0.into());
        members.entry("preemptionPolicy").or_insert_with(|| "PreemptLowerPriority".into());
        if !is_mirror {
            give_service_account(spec);
        }
    }
    DefaultTolerationSeconds::default().admit(request)
}

/// Removes the service account and the fields that [`complete`] added for it, because mirror Pods must not have them.
pub(super) fn without_service_account(pod: &mut Value) {
    let Some(Value::Object(spec)) = pod.get_mut("spec") else { return };
    spec.remove("serviceAccountName");
    spec.remove("serviceAccount");
    let is_token = |item: &Value| item["name"].as_str().is_some_and(|name| name.starts_with(TOKEN_VOLUME));
    let clean = |parent: &mut serde_json::Map<String, Value>, list: &str| {
        if let Some(items) = parent.get_mut(list).and_then(Value::as_array_mut) {
            items.retain(|item| !is_token(item));
            if items.is_empty() {
                parent.remove(list);
            }
        }
    };
    clean(spec, "volumes");
    for list in CONTAINERS {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for container in containers.filter_map(Value::as_object_mut) {
            clean(container, "volumeMounts");
        }
    }
}

fn give_service_account(spec: &mut Value) {
    if text(spec, &["serviceAccountName"]).is_empty() {
        set(spec, &["serviceAccountName"], "default");
    }
    let account = text(spec, &["serviceAccountName"]).to_owned();
    set(spec, &["serviceAccount"], account);
    if spec["automountServiceAccountToken"] == false {
        return;
    }
    let volumes =
        spec["volumes"].as_array().into_iter().flatten().filter_map(|volume| volume["name"].as_str());
    let known = volumes.into_iter().find(|name| name.starts_with(TOKEN_VOLUME)).map(str::to_owned);
    let has_volume = known.is_some();
    let name = known.unwrap_or_else(|| format!("{TOKEN_VOLUME}x7k2p"));
    let mut is_needed = false;
    for list in CONTAINERS {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let mounts = container["volumeMounts"].as_array();
            if mounts.is_none_or(|mounts| mounts.iter().all(|mount| mount["mountPath"] != TOKEN_PATH)) {
                append(
                    container,
                    "volumeMounts",
                    json!({"name": name, "mountPath": TOKEN_PATH, "readOnly": true}),
                );
                is_needed = true;
            }
        }
    }
    if is_needed && !has_volume {
        append(
            spec,
            "volumes",
            json!({"name": name, "projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {"downwardAPI": {"items": [
                    {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}},
                ]}},
            ]}}),
        );
    }
}

fn append(parent: &mut Value, list: &str, item: Value) {
    let Some(members) = parent.as_object_mut() else { return };
    if let Some(list) = members.entry(list).or_insert_with(|| json!([])).as_array_mut() {
        list.push(item);
    }
}

#[cfg(test)]
mod tests {
    use kubernetes_admission::attributes::UserInfo;
    use kubernetes_api_server::ClusterFixture;

    use super::*;

    fn completed(mut pod: Value) -> Value {
        pod["apiVersion"] = "v1".into();
        pod["kind"] = "Pod".into();
        let mut request = ClusterFixture::new([]).create(pod, "default", UserInfo::default()).unwrap();
        complete(&mut request).unwrap();
        request.object.unwrap()
    }

    fn pod(spec: &Value) -> Value {
        completed(json!({"metadata": {"name": "p"}, "spec": spec}))
    }

    #[test]
    fn a_pod_gets_its_service_account_with_a_token_once() {
        let once = pod(&json!({"containers": [{"name": "app"}], "initContainers": [{"name": "init"}]}));
        let spec = &once["spec"];
        assert_eq!(spec["serviceAccountName"], "default");
        assert_eq!(spec["volumes"][0]["name"], "kube-api-access-x7k2p");
        assert_eq!(spec["containers"][0]["volumeMounts"][0]["mountPath"], TOKEN_PATH);
        assert_eq!(spec["initContainers"][0]["volumeMounts"][0]["readOnly"], true);
        assert_eq!(spec["tolerations"].as_array().map(Vec::len), Some(2));
        assert_eq!(completed(once.clone()), once);
    }

    #[test]
    fn values_of_the_user_are_kept() {
        let found =
            pod(&json!({"containers": [{"name": "app"}], "serviceAccountName": "builder", "priority": 7,
            "automountServiceAccountToken": false}));
        assert_eq!(found["spec"]["serviceAccount"], "builder");
        assert_eq!(found["spec"]["priority"], 7);
        assert_eq!(found["spec"].get("volumes"), None);
    }

    #[test]
    fn a_mirror_pod_has_no_service_account() {
        let metadata = json!({"name": "p", "annotations": {MIRROR: "x"}});
        let mirror = completed(json!({"metadata": metadata, "spec": {"containers": [{"name": "app"}]}}));
        assert_eq!(mirror["spec"].get("serviceAccountName"), None);
        let mut found =
            pod(&json!({"containers": [{"name": "app"}], "volumes": [{"name": "kept", "emptyDir": {}}]}));
        without_service_account(&mut found);
        assert_eq!(found["spec"]["volumes"].as_array().map(Vec::len), Some(1));
        assert_eq!(found["spec"]["containers"][0].get("volumeMounts"), None);
        assert_eq!(found["spec"].get("serviceAccount"), None);
    }
}
