//! Reads webhook configurations from a cluster, without writing to the cluster.

use harness::json::set;
use kube::api::{Api, DynamicObject, ListParams};
use kube::config::KubeConfigOptions;
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::Value;

use crate::Failure;

/// The API group, version, and kind of the webhook configurations and the related objects.
const KINDS: [(&str, &str, &str); 4] = [
    ("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"),
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
    ("", "v1", "Namespace"),
];

/// Reads the webhook configurations, custom resource definitions, and namespaces of a cluster.
///
/// `context` is the name of a context in the kubeconfig, which specifies the cluster.
pub(crate) async fn read(context: &str) -> Result<Vec<Value>, Failure> {
    let options = KubeConfigOptions { context: Some(context.to_owned()), ..KubeConfigOptions::default() };
    let config = kube::Config::from_kubeconfig(&options).await.map_err(|error| {
        Failure::environment(format!("--context {context}: cannot use the kubeconfig: {error}"))
    })?;
    let failed = |what: &str, error: kube::Error| {
        Failure::environment(format!("--context {context}: cannot {what}: {error}"))
    };
    let client = kube::Client::try_from(config).map_err(|error| failed("make a client", error))?;
    let mut objects = Vec::new();
    for (group, version, kind) in KINDS {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let list = api.list(&ListParams::default()).await;
        for object in list.map_err(|error| failed(&format!("list {}", resource.plural), error))? {
            let mut object = serde_json::to_value(object).map_err(Failure::environment)?;
            // The items of a list do not contain `apiVersion` and `kind`.
            set(&mut object, &["apiVersion"], &*resource.api_version);
            set(&mut object, &["kind"], kind);
            objects.push(object);
        }
    }
    Ok(objects)
}
