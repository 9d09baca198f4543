//! Reads and writes the fields of a Service that the server completes.

use serde_json::Value;

use crate::kinds::core::service::allocation::HEADLESS;

/// The address and port fields in the `spec` of a Service. Empty strings, empty lists, and 0 are treated as absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spec {
    pub(crate) kind: String,
    pub(crate) cluster_ip: String,
    pub(crate) cluster_ips: Vec<String>,
    pub(crate) ip_families: Vec<String>,
    pub(crate) ip_family_policy: String,
    pub(crate) ports: Vec<ServicePort>,
    pub(crate) health_check_node_port: u32,
    pub(crate) has_selector: bool,
    external_traffic_policy: String,
    allocates_node_ports: bool,
}

/// A port of a [`Spec`] and its node port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServicePort {
    name: String,
    pub(crate) number: u32,
    pub(crate) node_port: u32,
}

impl Spec {
    pub(crate) fn from_service(service: &Value) -> Self {
        let spec = service.get("spec").unwrap_or(&Value::Null);
        let ports = spec.get("ports").and_then(Value::as_array).into_iter().flatten();
        Self {
            kind: text(spec, "type"),
            cluster_ip: text(spec, "clusterIP"),
            cluster_ips: texts(spec, "clusterIPs"),
            ip_families: texts(spec, "ipFamilies"),
            ip_family_policy: text(spec, "ipFamilyPolicy"),
            ports: ports
                .map(|port| ServicePort {
                    name: text(port, "name"),
                    number: number(port, "port"),
                    node_port: number(port, "nodePort"),
                })
                .collect(),
            health_check_node_port: number(spec, "healthCheckNodePort"),
            has_selector: spec.get("selector").and_then(Value::as_object).is_some_and(|it| !it.is_empty()),
            external_traffic_policy: text(spec, "externalTrafficPolicy"),
            allocates_node_ports: spec.get("allocateLoadBalancerNodePorts") != Some(&Value::Bool(false)),
        }
    }

    /// Writes the completed fields into `service`.
    pub(crate) fn write(&self, service: &mut Value) {
        let Some(spec) = service.get_mut("spec").and_then(Value::as_object_mut) else { return };
        for (field, value) in [
            ("clusterIP", Value::from(self.cluster_ip.as_str())),
            ("clusterIPs", Value::from(self.cluster_ips.as_slice())),
            ("ipFamilies", Value::from(self.ip_families.as_slice())),
            ("ipFamilyPolicy", Value::from(self.ip_family_policy.as_str())),
            ("healthCheckNodePort", Value::from(self.health_check_node_port)),
        ] {
            if value == "" || value == 0 || value.as_array().is_some_and(Vec::is_empty) {
                spec.remove(field);
            } else {
                spec.insert(field.to_owned(), value);
            }
        }
        let ports = spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten();
        for (port, completed) in ports.zip(&self.ports) {
            if let Some(port) = port.as_object_mut()
                && completed.node_port != 0
            {
                port.insert("nodePort".to_owned(), completed.node_port.into());
            }
        }
    }

    pub(crate) fn is_external_name(&self) -> bool {
        self.kind == "ExternalName"
    }

    pub(crate) fn is_headless(&self) -> bool {
        self.cluster_ips.first().is_some_and(|address| address == HEADLESS)
    }

    /// Returns whether ports of a Service of this type have node ports.
    pub(crate) fn has_node_ports(&self) -> bool {
        matches!(self.kind.as_str(), "NodePort" | "LoadBalancer")
    }

    /// Returns whether the server allocates node ports for ports without a node port.
    pub(crate) fn allocates_node_ports(&self) -> bool {
        self.kind == "NodePort" || (self.kind == "LoadBalancer" && self.allocates_node_ports)
    }

    /// Returns whether the Service needs a health check node port.
    ///
    /// Source: kubernetes pkg/api/service/util.go, `NeedsHealthCheck`.
    pub(crate) fn needs_health_check(&self) -> bool {
        self.kind == "LoadBalancer" && self.external_traffic_policy == "Local"
    }

    pub(crate) fn node_ports(&self) -> impl Iterator<Item = u32> {
        self.ports.iter().map(|port| port.node_port).filter(|port| *port != 0)
    }

    /// Restores allocated values that the client omitted.
    ///
    /// Source: kubernetes pkg/registry/core/service/storage/storage.go, `patchAllocatedValues`.
    pub(crate) fn keep_allocated(&mut self, old: &Self) {
        if !old.is_external_name() && !self.is_external_name() {
            if self.cluster_ip.is_empty() {
                self.cluster_ip.clone_from(&old.cluster_ip);
            }
            if self.cluster_ips.is_empty() {
                self.cluster_ips.clone_from(&old.cluster_ips);
            }
        }
        if old.allocates_node_ports() && self.allocates_node_ports() {
            let used: Vec<u32> =
                old.node_ports().filter(|port| self.node_ports().any(|own| own == *port)).collect();
            for port in self.ports.iter_mut().filter(|port| port.node_port == 0) {
                // Of ports with the same name, the last one wins.
                let before = old.ports.iter().rfind(|old| old.name == port.name);
                port.node_port =
                    before.map(|old| old.node_port).filter(|known| !used.contains(known)).unwrap_or(0);
            }
        }
        if old.needs_health_check() && self.needs_health_check() && self.health_check_node_port == 0 {
            self.health_check_node_port = old.health_check_node_port;
        }
    }

    /// Updates `clusterIPs` from `clusterIP`, for clients that set only `clusterIP`.
    ///
    /// Source: kubernetes pkg/registry/core/service/storage/storage.go, `normalizeClusterIPs`.
    pub(crate) fn agree(&mut self, old: Option<&Self>) {
        let Some(old) = old else {
            if !self.cluster_ip.is_empty() && self.cluster_ips.is_empty() {
                self.cluster_ips = vec![self.cluster_ip.clone()];
            }
            return;
        };
        if self.cluster_ips.is_empty() && self.cluster_ip == old.cluster_ip {
            self.cluster_ips.clone_from(&old.cluster_ips);
        }
        if self.cluster_ip != old.cluster_ip && self.cluster_ips == old.cluster_ips {
            self.cluster_ips.clear();
            self.cluster_ips.extend(Some(self.cluster_ip.clone()).filter(|address| !address.is_empty()));
        }
    }
}

fn text(object: &Value, field: &str) -> String {
    object.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn texts(object: &Value, field: &str) -> Vec<String> {
    let all = object.get(field).and_then(Value::as_array).into_iter().flatten();
    all.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn number(object: &Value, field: &str) -> u32 {
    object.get(field).and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok()).unwrap_or(0)
}
