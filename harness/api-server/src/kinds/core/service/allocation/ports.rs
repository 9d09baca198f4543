//! Allocates the node ports of Services.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use kubernetes_types::status::{FieldError, Status};

use crate::kinds::core::service::allocation::spec::Spec;
use crate::kinds::core::service::allocation::{Attempt, free};

/// The base of the numbers that a dry run returns instead of a node port.
///
/// Source: kubernetes pkg/registry/core/service/portallocator/operation.go, `AllocateNext`.
const DRY_RUN_PORT_BASE: u32 = 32768;

impl Attempt<'_> {
    /// Allocates the node ports and the health check node port of a Service.
    ///
    /// Source: kubernetes pkg/registry/core/service/storage/alloc.go, `txnAllocNodePorts` and `txnUpdateNodePorts`.
    pub(crate) fn ports(&mut self, spec: &mut Spec, old: Option<&Spec>) -> Result<(), Box<Status>> {
        if spec.has_node_ports() {
            match old {
                None => self.new_ports(spec)?,
                Some(old) => self.changed_ports(spec, old)?,
            }
        }
        let is_new = spec.needs_health_check() && !old.is_some_and(Spec::needs_health_check);
        if is_new {
            spec.health_check_node_port = match spec.health_check_node_port {
                0 => self.any_port("HealthCheck NodePort 0")?,
                wanted => self.wanted_port(wanted).map_err(|why| {
                    let why = format!("failed to allocate requested HealthCheck NodePort {wanted}: {why}");
                    Box::new(Status::internal_error(&why))
                })?,
            };
        }
        Ok(())
    }

    /// Allocates node ports. Ports with the same number and different protocols share a node port.
    ///
    /// Source: kubernetes pkg/registry/core/service/storage/alloc.go, `initNodePorts`.
    fn new_ports(&mut self, spec: &mut Spec) -> Result<(), Box<Status>> {
        let allocates = spec.allocates_node_ports();
        let mut shared: BTreeMap<u32, u32> = BTreeMap::new();
        // The first node port requested for each number.
        let mut wanted: BTreeMap<u32, u32> = BTreeMap::new();
        for port in spec.ports.iter().filter(|port| port.node_port != 0) {
            wanted.entry(port.number).or_insert(port.node_port);
        }
        for index in 0..spec.ports.len() {
            let Some(port) = spec.ports.get(index).cloned() else { break };
            if port.node_port == 0 && !allocates {
                continue;
            }
            let node_port = match (shared.get(&port.number).copied(), port.node_port) {
                (Some(known), 0) => known,
                (Some(known), own) if own == known => own,
                (Some(_), own) => self.port_of(index, own)?,
                (None, _) => {
                    let node = match wanted.get(&port.number) {
                        Some(wanted) => self.port_of(index, *wanted)?,
                        None => self.any_port("nodePort")?,
                    };
                    shared.insert(port.number, node);
                    node
                }
            };
            if let Some(port) = spec.ports.get_mut(index) {
                port.node_port = node_port;
            }
        }
        Ok(())
    }

    /// Allocates the node ports that an update adds or changes.
    ///
    /// Source: kubernetes pkg/registry/core/service/storage/alloc.go, `updateNodePorts`.
    fn changed_ports(&mut self, spec: &mut Spec, old: &Spec) -> Result<(), Box<Status>> {
        let allocates = spec.allocates_node_ports();
        for (index, port) in spec.ports.iter_mut().enumerate() {
            port.node_port = match port.node_port {
                0 if !allocates => 0,
                0 => self.any_port("nodePort")?,
                own if old.node_ports().any(|before| before == own) || self.given.ports.contains(&own) => own,
                own => self.port_of(index, own)?,
            };
        }
        Ok(())
    }

    fn port_of(&mut self, index: usize, wanted: u32) -> Result<u32, Box<Status>> {
        let field = || format!("spec.ports[{index}].nodePort");
        self.wanted_port(wanted).map_err(|why| self.invalid(FieldError::invalid(field(), wanted, why)))
    }

    fn wanted_port(&mut self, wanted: u32) -> Result<u32, String> {
        let range = self.ranges.node_ports.ports();
        if !range.contains(&wanted) && !self.dry_run {
            let (first, last) = (range.start(), range.end());
            return Err(format!(
                "provided port is not in the valid range. The range of valid ports is {first}-{last}"
            ));
        }
        if self.taken.ports.contains(&wanted) || self.given.ports.contains(&wanted) {
            return Err("provided port is already allocated".to_owned());
        }
        self.given.ports.insert(wanted);
        Ok(wanted)
    }

    fn any_port(&mut self, what: &str) -> Result<u32, Box<Status>> {
        let port = if self.dry_run {
            Some(self.given.ports.last().copied().unwrap_or(DRY_RUN_PORT_BASE) + 1)
        } else {
            let range = &self.ranges.node_ports;
            let numbers = |range: RangeInclusive<u32>| u128::from(*range.start())..=u128::from(*range.end());
            free(&numbers(range.dynamic_ports()), &numbers(range.ports()), |port| {
                let is_in =
                    |ports: &BTreeSet<u32>| u32::try_from(port).is_ok_and(|port| ports.contains(&port));
                is_in(&self.taken.ports) || is_in(&self.given.ports)
            })
            .and_then(|port| u32::try_from(port).ok())
        };
        let Some(port) = port else {
            let why = format!("failed to allocate a {what}: range is full");
            return Err(Box::new(Status::internal_error(&why)));
        };
        self.given.ports.insert(port);
        Ok(port)
    }
}
