//! Allocates addresses and ports of Services.
//!
//! The server has one address range for each configured IP family. Values that stored Services use or that in-flight
//! requests hold are not available.

pub(crate) mod families;
pub(crate) mod ports;
pub(crate) mod range;
pub(crate) mod spec;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};

use kubernetes_types::status::{FieldError, Status};
use serde_json::Value;

use crate::apimachinery::metadata;
use crate::kinds::core::service::allocation::range::{ServiceRange, ServiceRanges};
use crate::kinds::core::service::allocation::spec::Spec;
use crate::kinds::discovery::Resource;
use crate::storage::{ObjectReader as _, Storage};

pub(crate) const HEADLESS: &str = "None";

/// The addresses and ports that are allocated to Services or held by requests.
#[derive(Debug, Default, Clone)]
struct AllocatedValues {
    addresses: BTreeSet<IpAddr>,
    ports: BTreeSet<u32>,
}

impl AllocatedValues {
    fn note(&mut self, spec: &Spec) {
        self.addresses.extend(spec.cluster_ips.iter().filter_map(|address| address.parse::<IpAddr>().ok()));
        self.ports.extend(spec.node_ports());
        self.ports.extend(Some(spec.health_check_node_port).filter(|port| *port != 0));
    }
}

/// Allocates addresses and ports for Services.
#[derive(Debug)]
pub(crate) struct ServiceAllocator {
    storage: Arc<Storage>,
    ranges: ServiceRanges,
    /// The values held by in-flight requests.
    held: Mutex<AllocatedValues>,
}

/// Holds the values allocated to a request until the Service is stored or the request fails.
#[derive(Debug)]
pub(crate) struct Allocation<'a> {
    allocator: &'a ServiceAllocator,
    given: AllocatedValues,
}

impl Drop for Allocation<'_> {
    fn drop(&mut self) {
        let mut held = self.allocator.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.addresses.retain(|address| !self.given.addresses.contains(address));
        held.ports.retain(|port| !self.given.ports.contains(port));
    }
}

/// An attempt to allocate values for a Service.
pub(crate) struct Attempt<'a> {
    name: &'a str,
    ranges: &'a ServiceRanges,
    taken: AllocatedValues,
    given: AllocatedValues,
    dry_run: bool,
}

impl ServiceAllocator {
    pub(crate) fn new(storage: Arc<Storage>, ranges: ServiceRanges) -> Self {
        Self { storage, ranges, held: Mutex::default() }
    }

    /// Allocates the omitted values of a new Service, or of an update of `old`. Does not change other resources.
    ///
    /// # Errors
    /// Returns 422 if the Service requests an unavailable value, or 500 if no values are left.
    ///
    /// Source: kubernetes pkg/registry/core/service/storage/storage.go, `beginCreate` and `beginUpdate`.
    /// Rule: KND-05.
    pub(crate) fn complete(
        &self,
        service: &mut Value,
        old: Option<&Value>,
        resource: &Resource,
        dry_run: bool,
    ) -> Result<Option<Allocation<'_>>, Box<Status>> {
        if resource.gvr.group_resource() != "services" {
            return Ok(None);
        }
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = held.clone();
        taken.addresses.insert(self.ranges.addresses.first());
        for stored in self.storage.list("", "services", "") {
            taken.note(&Spec::from_service(&stored));
        }
        let name = metadata::text(service, "name").to_owned();
        let mut spec = Spec::from_service(service);
        let old = old.map(Spec::from_service);
        if let Some(old) = &old {
            spec.keep_allocated(old);
        }
        spec.agree(old.as_ref());
        let families: Vec<&str> = self.ranges.of_families().map(ServiceRange::family).collect();
        families::complete(&mut spec, old.as_ref(), &name, &families)?;
        let given = AllocatedValues::default();
        let mut attempt = Attempt { name: &name, ranges: &self.ranges, taken, given, dry_run };
        attempt.addresses(&mut spec, old.as_ref())?;
        attempt.ports(&mut spec, old.as_ref())?;
        // A dry run does not reserve values.
        let given = if dry_run { AllocatedValues::default() } else { attempt.given };
        spec.write(service);
        held.addresses.extend(&given.addresses);
        held.ports.extend(&given.ports);
        Ok(Some(Allocation { allocator: self, given }))
    }
}

impl Attempt<'_> {
    /// Allocates the cluster IPs of a Service, one for each of its IP families.
    ///
    /// Source: kubernetes pkg/registry/core/service/storage/alloc.go, `allocClusterIPs` and `updateClusterIPs`.
    fn addresses(&mut self, spec: &mut Spec, old: Option<&Spec>) -> Result<(), Box<Status>> {
        if spec.is_external_name() || spec.is_headless() {
            return Ok(());
        }
        let count = spec.ip_families.len();
        let allocated = match old {
            None => 0,
            Some(old) if old.is_external_name() => 0,
            Some(old) if !old.is_headless() && old.ip_families.len() == 1 && count == 2 => 1,
            Some(_) => return Ok(()),
        };
        if spec.cluster_ips.len() < count {
            spec.cluster_ips.resize(count, String::new());
        }
        for index in allocated..count {
            let Some(wanted) = spec.cluster_ips.get(index) else { break };
            let address = if wanted.is_empty() {
                let family = spec.ip_families.get(index);
                let range =
                    self.ranges.of_families().find(|range| family.is_some_and(|it| it == range.family()));
                self.any_address(range.unwrap_or_default())?
            } else {
                self.wanted_address(wanted, &spec.cluster_ips)?
            };
            self.given.addresses.insert(address);
            if let Some(allocated) = spec.cluster_ips.get_mut(index).filter(|it| it.is_empty()) {
                *allocated = address.to_string();
            }
        }
        spec.cluster_ip = spec.cluster_ips.first().cloned().unwrap_or_default();
        Ok(())
    }

    fn any_address(&self, range: ServiceRange) -> Result<IpAddr, Box<Status>> {
        if self.dry_run {
            return Ok(range.network());
        }
        let is_taken = |address: u128| self.taken.addresses.contains(&range.address(address));
        let address = free(&range.dynamic_addresses(), &range.addresses(), is_taken);
        address.map(|bits| range.address(bits)).ok_or_else(|| {
            let name = Value::from(self.name);
            let why = format!("failed to allocate a serviceIP for Service {name}: range is full");
            Box::new(Status::internal_error(&why))
        })
    }

    fn wanted_address(&self, wanted: &str, all: &[String]) -> Result<IpAddr, Box<Status>> {
        let refused = |why: &str| {
            let all = Value::from(all);
            let why = format!("failed to allocate IP {wanted}: {why}");
            self.invalid(FieldError::invalid("spec.clusterIPs", all, why))
        };
        match wanted.parse::<IpAddr>() {
            Ok(address) if !self.dry_run && self.taken.addresses.contains(&address) => {
                Err(refused("provided IP is already allocated"))
            }
            Ok(address) if self.ranges.of_families().any(|range| range.contains(address)) => Ok(address),
            Ok(_) | Err(_) => Err(refused("the provided network does not match the current range")),
        }
    }

    fn invalid(&self, error: FieldError) -> Box<Status> {
        Box::new(Status::invalid("", "Service", self.name, &[error]))
    }
}

/// Returns a free number in `range`, or in `others` if `range` is exhausted.
///
/// Tries random numbers first, and then searches in order.
pub(crate) fn free(
    range: &RangeInclusive<u128>,
    others: &RangeInclusive<u128>,
    taken: impl Fn(u128) -> bool,
) -> Option<u128> {
    /// The number of random numbers to try before the range is searched in order.
    const ATTEMPTS: usize = 64;
    let random = |count: u128| uuid::Uuid::new_v4().as_u128() % count.max(1);
    let size = range.end().saturating_sub(*range.start()).saturating_add(1);
    for _ in 0..ATTEMPTS {
        let number = range.start().saturating_add(random(size));
        if !taken(number) {
            return Some(number);
        }
    }
    range.clone().chain(others.clone()).find(|number| !taken(*number))
}

#[cfg(test)]
mod tests {
    use kubernetes_admission::attributes::GroupVersionResource;
    use serde_json::json;

    use super::*;
    use crate::kinds::discovery::Resources;

    fn services() -> Arc<Resource> {
        let resources = Resources::built_in();
        Arc::clone(resources.get(&GroupVersionResource::new("", "v1", "services")).unwrap())
    }

    fn service(spec: &Value) -> Value {
        json!({"metadata": {"name": "s"}, "spec": spec})
    }

    #[test]
    fn held_values_are_not_allocated_twice() {
        let allocator = ServiceAllocator::new(Arc::default(), ServiceRanges::default());
        let resource = services();
        let wanted = json!({
            "type": "NodePort", "clusterIP": "10.0.0.9", "ports": [{"port": 80, "nodePort": 30009}],
        });
        let complete = |dry_run| allocator.complete(&mut service(&wanted), None, &resource, dry_run);
        let held = complete(false).unwrap();
        let refusal = complete(false).unwrap_err();
        assert!(
            refusal.message.ends_with("failed to allocate IP 10.0.0.9: provided IP is already allocated")
        );
        drop(held);
        // A dry run does not hold values.
        let dry = complete(true).unwrap();
        assert!(complete(false).is_ok());
        drop(dry);
    }

    #[test]
    fn addresses_are_allocated_until_exhausted() {
        let allocator = ServiceAllocator::new(Arc::default(), ServiceRanges::default());
        let resource = services();
        let mut held = Vec::new();
        let (mut given, range) = (BTreeSet::new(), ServiceRange::default());
        let any = json!({"type": "ClusterIP", "ports": [{"port": 80}]});
        // All except the address of the Service `kubernetes`.
        for _ in 0..253 {
            let mut service = service(&any);
            held.push(allocator.complete(&mut service, None, &resource, false).unwrap());
            let spec = &service["spec"];
            assert_eq!(spec["clusterIPs"], json!([spec["clusterIP"]]));
            let address: IpAddr = spec["clusterIP"].as_str().unwrap().parse().unwrap();
            assert!(range.contains(address) && address != range.first(), "{address}");
            assert!(given.insert(address), "{address}");
        }
        let refusal = allocator.complete(&mut service(&any), None, &resource, false).unwrap_err();
        assert_eq!(refusal.code, 500);
        held.pop();
        assert!(allocator.complete(&mut service(&any), None, &resource, false).is_ok());
    }

    /// Expects the responses of kube-apiserver 1.37.1 with `--service-cluster-ip-range=10.0.0.0/24,fd00::/108`.
    #[test]
    fn dual_stack_services_get_an_address_of_each_family() {
        let range = |text| ServiceRange::parse(text).unwrap();
        let ranges = ServiceRanges {
            addresses: range("10.0.0.0/24"),
            secondary_addresses: Some(range("fd00::/108")),
            ..ServiceRanges::default()
        };
        let allocator = ServiceAllocator::new(Arc::default(), ranges);
        let complete = |old: Option<&Value>, spec: &Value| {
            let mut service = service(spec);
            match allocator.complete(&mut service, old, &services(), true) {
                Ok(_) => Ok(service),
                Err(status) => Err(status.message.split_once("is invalid: ").unwrap().1.to_owned()),
            }
        };
        for (spec, addresses, families, policy) in [
            (json!({}), json!(["10.0.0.0"]), json!(["IPv4"]), "SingleStack"),
            (json!({"ipFamilies": ["IPv6"]}), json!(["fd00::"]), json!(["IPv6"]), "SingleStack"),
            (
                json!({"ipFamilyPolicy": "RequireDualStack"}),
                json!(["10.0.0.0", "fd00::"]),
                json!(["IPv4", "IPv6"]),
                "RequireDualStack",
            ),
            (
                json!({"ipFamilyPolicy": "PreferDualStack", "ipFamilies": ["IPv6"]}),
                json!(["fd00::", "10.0.0.0"]),
                json!(["IPv6", "IPv4"]),
                "PreferDualStack",
            ),
            (json!({"clusterIP": "FD00::00A"}), json!(["FD00::00A"]), json!(["IPv6"]), "SingleStack"),
        ] {
            let completed = complete(None, &spec).unwrap();
            assert_eq!(completed["spec"]["clusterIPs"], addresses, "{spec}");
            assert_eq!(completed["spec"]["ipFamilies"], families, "{spec}");
            assert_eq!(completed["spec"]["ipFamilyPolicy"], policy, "{spec}");
        }
        for (spec, expected) in [
            (
                json!({"clusterIP": "fd00::24", "ipFamilies": ["IPv4"]}),
                "spec.clusterIPs[0]: Invalid value: \"fd00::24\": expected an IPv4 value as indicated by `ipFamilies[0]`",
            ),
            (
                json!({"clusterIP": "010.0.0.50"}),
                "spec.clusterIPs[0]: Invalid value: \"010.0.0.50\": must not have leading 0s",
            ),
            (
                json!({"clusterIP": "::ffff:10.0.0.50"}),
                "spec.clusterIPs[0]: Invalid value: \"::ffff:10.0.0.50\": must not be an IPv4-mapped IPv6 address",
            ),
        ] {
            assert_eq!(complete(None, &spec), Err(expected.to_owned()), "{spec}");
        }
        let single = complete(None, &json!({"type": "ClusterIP"})).unwrap();
        let mut upgraded = single["spec"].clone();
        upgraded["ipFamilyPolicy"] = json!("PreferDualStack");
        let upgraded = complete(Some(&single), &upgraded).unwrap();
        assert_eq!(upgraded["spec"]["clusterIPs"], json!(["10.0.0.0", "fd00::"]));
        let mut downgraded = upgraded["spec"].clone();
        downgraded["clusterIPs"] = json!(["10.0.0.0"]);
        let expected = "spec.ipFamilyPolicy: Invalid value: \"PreferDualStack\": must be 'SingleStack' to release the \
                        secondary cluster IP";
        assert_eq!(complete(Some(&upgraded), &downgraded), Err(expected.to_owned()));
        downgraded["clusterIPs"] = upgraded["spec"]["clusterIPs"].clone();
        downgraded["ipFamilyPolicy"] = json!("SingleStack");
        let downgraded = complete(Some(&upgraded), &downgraded).unwrap();
        assert_eq!(downgraded["spec"]["clusterIPs"], json!(["10.0.0.0"]));
    }

    #[test]
    fn other_resources_are_unchanged() {
        let allocator = ServiceAllocator::new(Arc::default(), ServiceRanges::default());
        let resources = Resources::built_in();
        let pods = resources.get(&GroupVersionResource::new("", "v1", "pods")).unwrap();
        let mut pod = service(&json!({}));
        assert!(allocator.complete(&mut pod, None, pods, false).unwrap().is_none());
        assert_eq!(pod, service(&json!({})));
    }
}
