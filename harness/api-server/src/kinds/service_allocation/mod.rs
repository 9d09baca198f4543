//! Allocates addresses and ports of Services.
//!
//! The server has one IPv4 address range. The values of stored Services and the values held by requests in flight are not
//! available.

mod families;
mod ports;
mod range;
mod spec;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};

use kubernetes_types::status::{FieldError, Status};
use serde_json::Value;

pub use self::range::{NodePortRange, ServiceRange, ServiceRanges};
use self::spec::Spec;
use super::discovery::Resource;
use crate::apimachinery::metadata;
use crate::storage::{ObjectReader as _, Storage};

const HEADLESS: &str = "None";

/// Addresses and ports that are allocated to Services or held by requests.
#[derive(Debug, Default, Clone)]
struct AllocatedValues {
    addresses: BTreeSet<Ipv4Addr>,
    ports: BTreeSet<u32>,
}

impl AllocatedValues {
    fn note(&mut self, spec: &Spec) {
        self.addresses.extend(spec.cluster_ips.iter().filter_map(|address| address.parse::<Ipv4Addr>().ok()));
        self.ports.extend(spec.node_ports());
        self.ports.extend(Some(spec.health_check_node_port).filter(|port| *port != 0));
    }
}

/// Allocates addresses and ports for Services.
#[derive(Debug)]
pub(crate) struct ServiceAllocator {
    storage: Arc<Storage>,
    ranges: ServiceRanges,
    /// Values held by requests in flight.
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
struct Attempt<'a> {
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
        families::complete(&mut spec, old.as_ref(), &name)?;
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
    /// Allocates the cluster IP of a Service.
    ///
    /// Source: kubernetes pkg/registry/core/service/storage/alloc.go, `allocClusterIPs` and `updateClusterIPs`.
    fn addresses(&mut self, spec: &mut Spec, old: Option<&Spec>) -> Result<(), Box<Status>> {
        if spec.is_external_name() || spec.is_headless() || old.is_some_and(|old| !old.is_external_name()) {
            return Ok(());
        }
        let address = match spec.cluster_ips.first() {
            Some(wanted) => self.wanted_address(wanted, &spec.cluster_ips)?,
            None => self.any_address()?,
        };
        self.given.addresses.insert(address);
        spec.cluster_ips = vec![address.to_string()];
        spec.cluster_ip = address.to_string();
        Ok(())
    }

    fn any_address(&self) -> Result<Ipv4Addr, Box<Status>> {
        if self.dry_run {
            return Ok(self.ranges.addresses.network());
        }
        let taken = |address: u32| self.taken.addresses.contains(&Ipv4Addr::from_bits(address));
        let range = self.ranges.addresses;
        free(&range.dynamic_addresses(), &range.addresses(), taken).map(Ipv4Addr::from_bits).ok_or_else(
            || {
                let name = Value::from(self.name);
                let why = format!("failed to allocate a serviceIP for Service {name}: range is full");
                Box::new(Status::internal_error(&why))
            },
        )
    }

    fn wanted_address(&self, wanted: &str, all: &[String]) -> Result<Ipv4Addr, Box<Status>> {
        let refused = |why: &str| {
            let all = Value::from(all);
            let why = format!("failed to allocate IP {wanted}: {why}");
            self.invalid(FieldError::invalid("spec.clusterIPs", all, why))
        };
        match wanted.parse::<Ipv4Addr>() {
            Ok(address) if !self.dry_run && self.taken.addresses.contains(&address) => {
                Err(refused("provided IP is already allocated"))
            }
            Ok(address) if self.ranges.addresses.addresses().contains(&address.to_bits()) => Ok(address),
            Ok(_) | Err(_) => Err(refused("the provided network does not match the current range")),
        }
    }

    fn invalid(&self, error: FieldError) -> Box<Status> {
        Box::new(Status::invalid("", "Service", self.name, &[error]))
    }
}

/// Returns a free number in `range`, random unless most are taken, or in `others` if `range` is exhausted.
fn free(
    range: &RangeInclusive<u32>,
    others: &RangeInclusive<u32>,
    taken: impl Fn(u32) -> bool,
) -> Option<u32> {
    /// The number of attempts to find a free number in a large range before all numbers are compared.
    const ATTEMPTS: usize = 64;
    let random = |count: u32| {
        let random = uuid::Uuid::new_v4().as_u128() % u128::from(count.max(1));
        u32::try_from(random).unwrap_or_default()
    };
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

    use super::super::discovery::Resources;
    use super::*;

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
            let address: Ipv4Addr = spec["clusterIP"].as_str().unwrap().parse().unwrap();
            assert!(range.addresses().contains(&address.to_bits()) && address != range.first(), "{address}");
            assert!(given.insert(address), "{address}");
        }
        let refusal = allocator.complete(&mut service(&any), None, &resource, false).unwrap_err();
        assert_eq!(refusal.code, 500);
        held.pop();
        assert!(allocator.complete(&mut service(&any), None, &resource, false).is_ok());
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
