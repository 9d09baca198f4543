//! Resolves the Services of webhooks to hosts and ports.

use std::collections::BTreeMap;
use std::sync::Arc;

use admission_webhook_client::ServiceResolver;
use kubernetes_admission::config::ServiceReference;
use serde_json::Value;

use crate::storage::{ObjectReader, Storage};

/// The namespace and the name of a Service.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServiceName {
    /// The namespace of the Service.
    pub namespace: String,
    /// The name within the namespace.
    pub name: String,
}

/// Resolves Services from the map in the options, then from the stored Services.
#[derive(Debug)]
pub(crate) struct Services {
    pub(crate) known: BTreeMap<ServiceName, (String, u16)>,
    pub(crate) storage: Arc<Storage>,
}

/// Resolves a Service to a host and a port.
///
/// Source: kube-aggregator pkg/apiserver/resolvers.go and apiserver pkg/util/proxy/proxy.go, `ResolveCluster`.
/// Rule: HTTP-14, HTTP-16.
impl ServiceResolver for Services {
    fn resolve(&self, service: &ServiceReference) -> Result<(String, u16), String> {
        let name = ServiceName { namespace: service.namespace.clone(), name: service.name.clone() };
        if let Some((host, port)) = self.known.get(&name) {
            return Ok((host.clone(), *port));
        }
        let Some(stored) = self.storage.get("", "services", &service.namespace, &service.name) else {
            return Err(format!("service \"{}\" not found", service.name));
        };
        let text = |pointer: &str| stored.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let cluster_ip = text("/spec/clusterIP");
        match text("/spec/type") {
            "ExternalName" => return Ok((text("/spec/externalName").to_owned(), service.port)),
            "" | "ClusterIP" | "LoadBalancer" | "NodePort" => {}
            other => return Err(format!("unsupported service type \"{other}\"")),
        }
        if cluster_ip.is_empty() || cluster_ip == "None" {
            return Err(format!("cannot route to service with ClusterIP \"{cluster_ip}\""));
        }
        let mut ports = stored.pointer("/spec/ports").and_then(Value::as_array).into_iter().flatten();
        if ports.any(|port| port.get("port").and_then(Value::as_u64) == Some(u64::from(service.port))) {
            return Ok((cluster_ip.to_owned(), service.port));
        }
        Err(format!("no service port {} found for service \"{}\"", service.port, service.name))
    }
}
