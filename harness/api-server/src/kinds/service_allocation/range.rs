//! The address range of Services and the range of node ports.

use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

/// The IPv4 address range of Services: `--service-cluster-ip-range`. The default is `10.0.0.0/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceRange {
    network: u32,
    prefix: u32,
}

impl Default for ServiceRange {
    fn default() -> Self {
        Self { network: Ipv4Addr::new(10, 0, 0, 0).to_bits(), prefix: 24 }
    }
}

impl ServiceRange {
    /// Parses a range such as `10.96.0.0/16`. Returns `None` unless it is an IPv4 range of at least 8 addresses.
    ///
    /// Source: kubernetes pkg/controlplane/services.go, `ServiceIPRange`.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = text.split_once('/')?;
        let address: Ipv4Addr = address.parse().ok()?;
        let prefix: u32 = prefix.parse().ok().filter(|prefix| (1..=29).contains(prefix))?;
        let mask = u32::MAX << (32 - prefix);
        Some(Self { network: address.to_bits() & mask, prefix })
    }

    fn size(self) -> u32 {
        1 << (32 - self.prefix)
    }

    /// Returns the network address, which a dry run returns as the cluster IP.
    pub(super) fn network(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.network)
    }

    /// Returns the address of the Service `kubernetes`.
    pub fn first(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.network + 1)
    }

    /// Returns the addresses without the network and broadcast addresses.
    pub(super) fn addresses(self) -> RangeInclusive<u32> {
        self.network + 1..=self.network + self.size() - 2
    }

    /// Returns the addresses that are allocated first; lower ones are reserved for Services that request one.
    ///
    /// Source: kubernetes pkg/registry/core/service/ipallocator/bitmap.go, `calculateRangeOffset`.
    pub(super) fn dynamic_addresses(self) -> RangeInclusive<u32> {
        let offset = offset(self.size(), 256, 16);
        self.network + 1 + offset..=self.network + self.size() - 2
    }
}

impl std::fmt::Display for ServiceRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.network(), self.prefix)
    }
}

/// Returns how many values of a range are reserved for Services that request one.
///
/// Source: kubernetes pkg/registry/core/service/portallocator/allocator.go, `calculateRangeOffset`.
fn offset(size: u32, most: u32, step: u32) -> u32 {
    const LEAST: u32 = 16;
    if size <= LEAST { 0 } else { (size / step).clamp(LEAST, most) }
}

/// The range of node ports: `--service-node-port-range`. The default is `30000-32767`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePortRange(RangeInclusive<u32>);

impl Default for NodePortRange {
    fn default() -> Self {
        Self(30_000..=32_767)
    }
}

impl NodePortRange {
    /// Parses a range such as `30000-32767` or `30000+100`, or one port. Returns `None` for other text.
    ///
    /// Source: apimachinery `pkg/util/net/port_range.go`, `Set`.
    pub fn parse(text: &str) -> Option<Self> {
        let number = |text: &str| text.trim().parse::<u32>().ok();
        let (first, last) = if let Some((first, last)) = text.split_once('-') {
            (number(first)?, number(last)?)
        } else if let Some((first, more)) = text.split_once('+') {
            let first = number(first)?;
            (first, first.saturating_add(number(more)?).min(65_535))
        } else {
            (number(text)?, number(text)?)
        };
        (first <= last && last <= 65_535).then_some(Self(first..=last))
    }

    pub(super) fn ports(&self) -> RangeInclusive<u32> {
        self.0.clone()
    }

    /// Returns the ports that are allocated first; lower ones are reserved for Services that request one.
    pub(super) fn dynamic_ports(&self) -> RangeInclusive<u32> {
        let size = self.0.end() - self.0.start() + 1;
        self.0.start() + offset(size, 128, 32)..=*self.0.end()
    }
}

/// The ranges from which Services get addresses and ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "each has a default")]
pub struct ServiceRanges {
    /// The addresses.
    pub addresses: ServiceRange,
    /// The node ports.
    pub node_ports: NodePortRange,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_parsed_and_normalized() {
        for (text, expected) in [
            ("10.0.0.0/24", Some("10.0.0.0/24")),
            ("10.96.1.2/12", Some("10.96.0.0/12")),
            ("10.0.0.0/8", Some("10.0.0.0/8")),
            ("10.0.0.0/30", None),
            ("fd00::/108", None),
            ("10.0.0.0", None),
        ] {
            let parsed = ServiceRange::parse(text).map(|range| range.to_string());
            assert_eq!(parsed.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn node_ports_have_the_syntax_of_the_flag() {
        for (text, expected) in [
            ("30000-32767", Some(30_000..=32_767)),
            ("30000+5", Some(30_000..=30_005)),
            ("80", Some(80..=80)),
            ("5-3", None),
            ("1-70000", None),
            ("x", None),
        ] {
            assert_eq!(NodePortRange::parse(text).map(|range| range.ports()), expected, "{text}");
        }
        assert_eq!(NodePortRange::default().dynamic_ports(), 30_086..=32_767);
    }

    #[test]
    fn low_addresses_are_reserved() {
        for (text, first, dynamic, last) in [
            ("10.0.0.0/24", "10.0.0.1", "10.0.0.17", "10.0.0.254"),
            ("10.96.0.0/12", "10.96.0.1", "10.96.1.1", "10.111.255.254"),
            ("10.0.0.0/28", "10.0.0.1", "10.0.0.1", "10.0.0.14"),
        ] {
            let range = ServiceRange::parse(text).unwrap();
            let address = |bits: &u32| Ipv4Addr::from_bits(*bits).to_string();
            let dynamic_addresses = range.dynamic_addresses();
            let found = (
                range.first().to_string(),
                address(dynamic_addresses.start()),
                address(dynamic_addresses.end()),
            );
            assert_eq!(found, (first.to_owned(), dynamic.to_owned(), last.to_owned()), "{text}");
            assert_eq!(range.addresses().end(), dynamic_addresses.end());
        }
    }
}
