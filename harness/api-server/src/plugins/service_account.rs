//! `ServiceAccount`: sets the service account of Pods and mounts its token.

use std::collections::BTreeSet;
use std::sync::Arc;

use kubernetes_admission::attributes::{Attributes, Operation};
use kubernetes_admission::failure;
use kubernetes_admission::plugin::{Plugin, Remarks};
use kubernetes_types::json::{at, text};
use kubernetes_types::status::Status;
use serde_json::{Map, Value, json};

use super::containers::{self, items};
use super::{forbidden, member};
use crate::kinds::strategy::generated_name;
use crate::storage::ObjectReader;

/// Sets the service account `default` on new Pods without a service account, and mounts the account's token.
///
/// Also adds the account's image pull secrets. Rejects Pods whose service account does not exist.
///
/// kube-apiserver waits a second or two until a controller has created the account `default`. admit does not wait.
///
/// Source: kubernetes plugin/pkg/admission/serviceaccount/admission.go.
pub(crate) struct ServiceAccount {
    objects: Arc<dyn ObjectReader>,
}

const DEFAULT: &str = "default";
const VOLUME: &str = "kube-api-access-";
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const MIRROR: &str = "kubernetes.io/config.mirror";
const ENFORCE_MOUNTABLE: &str = "kubernetes.io/enforce-mountable-secrets";
/// The requested lifetime of a token in seconds.
///
/// The actual lifetime is longer, so that clients that do not reload tokens are detected before they fail.
///
/// Source: kubernetes pkg/serviceaccount/claims.go, `WarnOnlyBoundTokenExpirationSeconds`.
const EXPIRATION_SECONDS: i64 = 3607;

impl ServiceAccount {
    /// Creates the plugin with a reader for the objects of the server.
    pub(crate) fn new(objects: Arc<dyn ObjectReader>) -> Self {
        Self { objects }
    }

    fn account(&self, namespace: &str, name: &str) -> Result<Arc<Value>, String> {
        self.objects.get("", "serviceaccounts", namespace, name).ok_or_else(|| {
            format!(
                "error looking up service account {namespace}/{name}: serviceaccount \"{name}\" not found"
            )
        })
    }

    fn give(&self, namespace: &str, pod: &mut Value) -> Result<(), String> {
        let Some(spec) = super::spec(pod) else { return Ok(()) };
        if member_text(spec, "serviceAccountName").is_empty() {
            spec.insert("serviceAccountName".to_owned(), json!(DEFAULT));
            spec.insert("serviceAccount".to_owned(), json!(DEFAULT));
        }
        let account = self.account(namespace, member_text(spec, "serviceAccountName"))?;
        let automounts =
            [spec.get("automountServiceAccountToken"), account.get("automountServiceAccountToken")];
        if automounts.into_iter().flatten().find_map(Value::as_bool).unwrap_or(true) {
            mount_token(spec);
        }
        let has_pull_secrets =
            spec.get("imagePullSecrets").and_then(Value::as_array).is_some_and(|secrets| !secrets.is_empty());
        let pull_secrets: Vec<Value> = items(&account, "imagePullSecrets")
            .map(|secret| match secret.get("name") {
                Some(name) => json!({"name": name}),
                None => json!({}),
            })
            .collect();
        if !has_pull_secrets && !pull_secrets.is_empty() {
            spec.insert("imagePullSecrets".to_owned(), pull_secrets.into());
        }
        Ok(())
    }

    fn check(&self, attributes: &Attributes, pod: &Value) -> Result<(), Box<Status>> {
        if is_mirror(pod) {
            return check_mirror(pod).map_err(|why| forbidden(attributes, why));
        }
        let account = self.account_of(attributes, pod)?;
        if enforces_mountable(&account) {
            limit_secrets(&account, at(pod, &["spec"])).map_err(|why| forbidden(attributes, &why))?;
        }
        Ok(())
    }

    fn account_of(&self, attributes: &Attributes, pod: &Value) -> Result<Arc<Value>, Box<Status>> {
        let name = text(pod, &["spec", "serviceAccountName"]);
        if name.is_empty() {
            let pod = text(pod, &["metadata", "name"]);
            let why = format!("no service account specified for pod {}/{pod}", attributes.namespace);
            return Err(forbidden(attributes, &why));
        }
        self.account(&attributes.namespace, name).map_err(|why| forbidden(attributes, &why))
    }

    /// Checks the Secrets that ephemeral containers reference.
    ///
    /// This is the only check of this plugin whose upstream error is not a Status.
    fn check_ephemeral(&self, attributes: &Attributes, pod: &Value) -> Result<(), Box<Status>> {
        let account = self.account_of(attributes, pod)?;
        if !enforces_mountable(&account) {
            return Ok(());
        }
        let mountable = names(&account, "secrets");
        let containers = items(at(pod, &["spec"]), "ephemeralContainers");
        limit_variables(containers, "ephemeral container", &mountable, &account)
            .map_err(failure::without_reason)
    }
}

impl Plugin for ServiceAccount {
    fn name(&self) -> &'static str {
        "ServiceAccount"
    }

    fn admit(&self, attributes: &mut Attributes) -> Result<(), Box<Status>> {
        if !super::is_new_pod(attributes) {
            return Ok(());
        }
        let Attributes { object, namespace, .. } = attributes;
        let given =
            object.as_mut().filter(|pod| !is_mirror(pod)).map_or(Ok(()), |pod| self.give(namespace, pod));
        given.map_err(|why| forbidden(attributes, &why))?;
        self.validate(attributes, &mut Remarks::default())
    }

    fn validate(&self, attributes: &Attributes, _remarks: &mut Remarks) -> Result<(), Box<Status>> {
        let Some(pod) = &attributes.object else { return Ok(()) };
        if attributes.resource.group_resource() != "pods" {
            return Ok(());
        }
        match (attributes.operation, attributes.subresource.as_str()) {
            (Operation::Create, "" | "ephemeralcontainers") => self.check(attributes, pod),
            (Operation::Update, "ephemeralcontainers") => self.check_ephemeral(attributes, pod),
            _ => Ok(()),
        }
    }
}

fn member_text<'a>(members: &'a Map<String, Value>, field: &str) -> &'a str {
    members.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn is_mirror(pod: &Value) -> bool {
    at(pod, &["metadata", "annotations"]).get(MIRROR).is_some()
}

/// Adds the token volume and mounts it in the containers that do not mount a token.
///
/// Source: `mountServiceAccountToken`.
fn mount_token(spec: &mut Map<String, Value>) {
    let present = spec.get("volumes").and_then(Value::as_array).into_iter().flatten();
    let present = present.map(|volume| text(volume, &["name"])).find(|name| name.starts_with(VOLUME));
    let has_volume = present.is_some();
    let name = present.map_or_else(|| generated_name(VOLUME), str::to_owned);
    let mut is_needed = false;
    for list in ["initContainers", "containers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for container in containers.filter_map(Value::as_object_mut) {
            // Validation rejects any other shape.
            let Some(mounts) = member(container, "volumeMounts", json!([])).as_array_mut() else { continue };
            if !mounts.iter().any(|mount| text(mount, &["mountPath"]) == MOUNT_PATH) {
                mounts.push(json!({"name": name, "readOnly": true, "mountPath": MOUNT_PATH}));
                is_needed = true;
            }
        }
    }
    if is_needed
        && !has_volume
        && let Some(volumes) = member(spec, "volumes", json!([])).as_array_mut()
    {
        volumes.push(token_volume(&name));
    }
}

/// Returns the projected volume with the token, the CA certificate, and the namespace.
///
/// Source: `TokenVolumeSource`.
fn token_volume(name: &str) -> Value {
    let namespace =
        json!({"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}});
    json!({"name": name, "projected": {"defaultMode": 0o644, "sources": [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": EXPIRATION_SECONDS}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]}})
}

/// Checks that a mirror Pod does not use a service account or Secrets.
///
/// It cannot use them, because a node runs it independently of the API server.
fn check_mirror(pod: &Value) -> Result<(), &'static str> {
    let spec = at(pod, &["spec"]);
    if !text(spec, &["serviceAccountName"]).is_empty() {
        return Err("a mirror pod may not reference service accounts");
    }
    if references_secrets(spec) {
        return Err("a mirror pod may not reference secrets");
    }
    let sources = items(spec, "volumes").flat_map(|volume| items(at(volume, &["projected"]), "sources"));
    if sources.into_iter().any(|source| !at(source, &["serviceAccountToken"]).is_null()) {
        return Err("a mirror pod may not use ServiceAccountToken volume projections");
    }
    Ok(())
}

/// Returns whether the spec of a Pod references a Secret.
///
/// Source: kubernetes pkg/api/pod/util.go, `VisitPodSecretNames`.
fn references_secrets(spec: &Value) -> bool {
    /// The path of the secret reference in each type of volume.
    const OF_VOLUMES: [&[&str]; 10] = [
        &["cephfs", "secretRef"],
        &["cinder", "secretRef"],
        &["flexVolume", "secretRef"],
        &["rbd", "secretRef"],
        &["secret"],
        &["scaleIO", "secretRef"],
        &["iscsi", "secretRef"],
        &["storageos", "secretRef"],
        &["csi", "nodePublishSecretRef"],
        &["azureFile", "secretName"],
    ];
    let of_volume = |volume: &Value| {
        let is_azure_without =
            |path: &[&str]| *path == ["azureFile", "secretName"] && text(volume, path).is_empty();
        OF_VOLUMES.iter().any(|path| !at(volume, path).is_null() && !is_azure_without(path))
            || items(at(volume, &["projected"]), "sources").any(|source| !at(source, &["secret"]).is_null())
    };
    items(spec, "imagePullSecrets").next().is_some()
        || containers::all(spec).any(|container| containers::secrets(container).next().is_some())
        || items(spec, "volumes").any(of_volume)
}

fn enforces_mountable(account: &Value) -> bool {
    // Source: Go strconv/atob.go, `ParseBool`.
    let value = text(account, &["metadata", "annotations", ENFORCE_MOUNTABLE]);
    ["1", "t", "T", "TRUE", "true", "True"].contains(&value)
}

fn names<'a>(account: &'a Value, list: &str) -> BTreeSet<&'a str> {
    items(account, list).map(|reference| text(reference, &["name"])).collect()
}

/// Checks that a Pod references only Secrets that its service account references.
///
/// Source: `limitSecretReferences`.
fn limit_secrets(account: &Value, spec: &Value) -> Result<(), String> {
    let (mountable, pull) = (names(account, "secrets"), names(account, "imagePullSecrets"));
    let account_name = text(account, &["metadata", "name"]);
    for volume in items(spec, "volumes").map(|volume| at(volume, &["secret"])) {
        let secret = text(volume, &["secretName"]);
        if !volume.is_null() && !mountable.contains(secret) {
            return Err(format!(
                "volume with secret.secretName=\"{secret}\" is not allowed because service account {account_name} does \
                 not reference that secret"
            ));
        }
    }
    limit_variables(items(spec, "initContainers"), "init container", &mountable, account)?;
    limit_variables(items(spec, "containers"), "container", &mountable, account)?;
    for (index, reference) in items(spec, "imagePullSecrets").enumerate() {
        let secret = text(reference, &["name"]);
        if !pull.contains(secret) {
            return Err(format!(
                "imagePullSecrets[{index}].name=\"{secret}\" is not allowed because service account {account_name} does \
                 not reference that imagePullSecret"
            ));
        }
    }
    Ok(())
}

fn limit_variables<'a>(
    containers: impl Iterator<Item = &'a Value>,
    what: &str,
    mountable: &BTreeSet<&str>,
    account: &Value,
) -> Result<(), String> {
    let account = text(account, &["metadata", "name"]);
    for container in containers {
        for (variable, secret) in containers::secrets(container) {
            if !mountable.contains(secret) {
                let variable = variable.map_or("envFrom".to_owned(), |name| format!("envVar {name}"));
                return Err(format!(
                    "{what} {} with {variable} referencing secret.secretName=\"{secret}\" is not allowed because service \
                     account {account} does not reference that secret",
                    text(container, &["name"])
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Stored, request};
    use super::*;

    fn account(mut members: Value) -> (&'static str, Value) {
        members["metadata"]["namespace"] = json!("ns");
        if members["metadata"]["name"].is_null() {
            members["metadata"]["name"] = json!("default");
        }
        ("serviceaccounts", members)
    }

    fn admit(accounts: Vec<Value>, pod: Value) -> Result<Value, String> {
        let plugin = ServiceAccount::new(Arc::new(Stored(accounts.into_iter().map(account).collect())));
        let mut attributes = request(Operation::Create, "pods", "Pod", pod);
        plugin.admit(&mut attributes).map_err(|status| status.message)?;
        Ok(attributes.object.unwrap()["spec"].clone())
    }

    fn pod(spec: &Value) -> Value {
        json!({"metadata": {"name": "p"}, "spec": spec})
    }

    #[test]
    fn token_is_mounted_unless_the_path_is_used() {
        let own = json!([{"name": "x", "mountPath": MOUNT_PATH}]);
        let containers = json!([{"name": "a"}, {"name": "b", "volumeMounts": own}]);
        let spec = json!({"containers": containers, "initContainers": [{"name": "i"}]});
        let spec = admit(vec![json!({})], pod(&spec)).unwrap();
        let name = spec["volumes"][0]["name"].as_str().unwrap();
        assert!(name.starts_with(VOLUME) && name.len() == VOLUME.len() + 5, "{name}");
        let mount = json!([{"name": name, "readOnly": true, "mountPath": MOUNT_PATH}]);
        assert_eq!(spec["containers"][0]["volumeMounts"], mount);
        assert_eq!(spec["initContainers"][0]["volumeMounts"], mount);
        assert_eq!(spec["containers"][1]["volumeMounts"], own);
        assert_eq!(
            (&spec["serviceAccountName"], &spec["serviceAccount"]),
            (&json!("default"), &json!("default"))
        );
        // A reinvocation finds the volume already present.
        assert_eq!(admit(vec![json!({})], pod(&spec)).unwrap(), spec);
    }

    #[test]
    fn automount_of_the_pod_overrides_the_account() {
        let no = json!({"automountServiceAccountToken": false});
        let mounted = |account: &Value, spec: Value| {
            admit(vec![account.clone()], pod(&spec)).unwrap()["volumes"].is_array()
        };
        let yes = json!({"automountServiceAccountToken": true, "containers": [{"name": "a"}]});
        assert!(mounted(&no, yes));
        assert!(!mounted(&no, json!({"containers": [{"name": "a"}]})));
        assert!(!mounted(
            &json!({}),
            json!({"automountServiceAccountToken": false, "containers": [{"name": "a"}]})
        ));
    }

    #[track_caller]
    fn check_refused(accounts: Vec<Value>, pod: Value, why: &str) {
        assert_eq!(admit(accounts, pod), Err(format!("pods \"p\" is forbidden: {why}")));
    }

    #[test]
    fn missing_service_account_is_rejected() {
        let why = "error looking up service account ns/x: serviceaccount \"x\" not found";
        check_refused(vec![], pod(&json!({"serviceAccountName": "x"})), why);
    }

    #[test]
    fn mirror_pod_cannot_use_accounts_or_secrets() {
        let mirror =
            |spec: Value| json!({"metadata": {"name": "p", "annotations": {MIRROR: "x"}}, "spec": spec});
        assert_eq!(admit(vec![], mirror(json!({}))), Ok(json!({})));
        let named = json!({"serviceAccountName": "x"});
        check_refused(vec![], mirror(named), "a mirror pod may not reference service accounts");
        for volume in [
            json!({"secret": {}}),
            json!({"projected": {"sources": [{"secret": {}}]}}),
            json!({"azureFile": {"secretName": "x"}}),
        ] {
            check_refused(
                vec![],
                mirror(json!({"volumes": [volume]})),
                "a mirror pod may not reference secrets",
            );
        }
        let token = json!({"volumes": [{"projected": {"sources": [{"serviceAccountToken": {}}]}}]});
        let why = "a mirror pod may not use ServiceAccountToken volume projections";
        check_refused(vec![], mirror(token), why);
    }

    #[test]
    fn account_can_limit_mountable_secrets() {
        let account = json!({
            "metadata": {"annotations": {ENFORCE_MOUNTABLE: "true"}}, "secrets": [{"name": "s"}],
            "automountServiceAccountToken": false,
        });
        let from = |secret: &str| json!([{"name": "V", "valueFrom": {"secretKeyRef": {"name": secret}}}]);
        let fine = json!({"containers": [{"name": "c", "env": from("s")}]});
        assert!(admit(vec![account.clone()], pod(&fine)).is_ok());
        let tail = "is not allowed because service account default does not reference that secret";
        for (spec, why) in [
            (json!({"volumes": [{"secret": {"secretName": "t"}}]}), "volume with secret.secretName=\"t\""),
            (
                json!({"containers": [{"name": "c", "env": from("t")}]}),
                "container c with envVar V referencing secret.secretName=\"t\"",
            ),
            (
                json!({"initContainers": [{"name": "c", "envFrom": [{"secretRef": {"name": "t"}}]}]}),
                "init container c with envFrom referencing secret.secretName=\"t\"",
            ),
        ] {
            check_refused(vec![account.clone()], pod(&spec), &format!("{why} {tail}"));
        }
    }
}
