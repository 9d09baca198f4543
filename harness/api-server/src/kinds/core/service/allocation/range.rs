//! Defines the address ranges and the node port range of Services.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use crate::kinds::common::addresses;

/// An IPv4 or IPv6 address range for Services. The default is `10.0.0.0/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceRange {
    network: IpAddr,
    prefix: u32,
}

impl Default for ServiceRange {
    fn default() -> Self {
        Self { network: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 0)), prefix: 24 }
    }
}

impl ServiceRange {
    /// Parses a CIDR such as `10.96.0.0/16` or `fd00::/108`. Numbers may have leading zeros.
    ///
    /// Source: k8s.io/utils/net `ParseCIDRSloppy`.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = addresses::parse_sloppy(text)?;
        let range = Self { network: address, prefix };
        Some(Self { network: range.address(bits(address) & !range.host_mask()), prefix })
    }

    /// Returns whether the range is IPv4.
    pub fn is_ipv4(self) -> bool {
        self.network.is_ipv4()
    }

    /// Returns the number of bits that differ among the addresses of the range.
    pub fn host_bits(self) -> u32 {
        (if self.is_ipv4() { 32 } else { 128 }) - self.prefix
    }

    fn host_mask(self) -> u128 {
        u128::MAX.checked_shr(128 - self.host_bits()).unwrap_or_default()
    }

    /// Returns whether kube-apiserver counts at least 8 addresses. Its count is zero for the largest ranges.
    ///
    /// Source: kubernetes pkg/controlplane/apiserver/options.go, `ServiceIPRange`; k8s.io/utils/net `RangeSize`.
    pub fn has_eight_addresses(self) -> bool {
        (3..=if self.is_ipv4() { 30 } else { 126 }).contains(&self.host_bits())
    }

    /// Returns the IP family as it is spelled in a Service: `IPv4` or `IPv6`.
    pub(crate) fn family(self) -> &'static str {
        family(self.network)
    }

    /// Converts the bits of an address to an address of the range's IP family.
    pub(crate) fn address(self, bits: u128) -> IpAddr {
        match self.network {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(u32::try_from(bits).unwrap_or(u32::MAX))),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(bits)),
        }
    }

    /// Returns the network address. A dry run returns it as the cluster IP.
    pub(crate) fn network(self) -> IpAddr {
        self.network
    }

    /// Returns the first address. It belongs to the Service `kubernetes`.
    pub fn first(self) -> IpAddr {
        self.address(bits(self.network).saturating_add(1))
    }

    /// Returns whether Services may have this address.
    pub(crate) fn contains(self, address: IpAddr) -> bool {
        address.is_ipv4() == self.is_ipv4() && self.addresses().contains(&bits(address))
    }

    /// Returns the addresses without the network address and without the broadcast address of IPv4.
    pub(crate) fn addresses(self) -> RangeInclusive<u128> {
        let last = bits(self.network) | self.host_mask();
        bits(self.network).saturating_add(1)..=last.saturating_sub(u128::from(self.is_ipv4()))
    }

    /// Returns the addresses that are allocated first. Lower addresses are reserved for Services that request them.
    ///
    /// Source: kubernetes pkg/registry/core/service/ipallocator/bitmap.go, `calculateRangeOffset`.
    pub(crate) fn dynamic_addresses(self) -> RangeInclusive<u128> {
        let offset = offset(self.host_mask().saturating_add(1), 256, 16);
        let all = self.addresses();
        all.start() + offset..=*all.end()
    }
}

impl std::fmt::Display for ServiceRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.network(), self.prefix)
    }
}

/// Returns the IP family of an address as it is spelled in a Service: `IPv4` or `IPv6`.
pub(crate) fn family(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "IPv4" } else { "IPv6" }
}

/// Converts an address to a number.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// Returns the number of values in a range that are reserved for Services that request a specific value.
///
/// Source: kubernetes pkg/registry/core/service/portallocator/allocator.go, `calculateRangeOffset`.
fn offset(size: u128, most: u128, step: u128) -> u128 {
    const LEAST: u128 = 16;
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

    pub(crate) fn ports(&self) -> RangeInclusive<u32> {
        self.0.clone()
    }

    /// Returns the ports that are allocated first. Lower ports are reserved for Services that request them.
    pub(crate) fn dynamic_ports(&self) -> RangeInclusive<u32> {
        let (first, last) = self.ports().into_inner();
        let offset = offset(u128::from(last - first) + 1, 128, 32);
        first + u32::try_from(offset).unwrap_or_default()..=last
    }
}

/// The ranges from which Services get addresses and ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "each has a default")]
pub struct ServiceRanges {
    /// The address range of the default IP family.
    pub addresses: ServiceRange,
    /// The address range of the other IP family, if the server is dual-stack.
    pub secondary_addresses: Option<ServiceRange>,
    /// The range of node ports.
    pub node_ports: NodePortRange,
}

impl ServiceRanges {
    /// Returns the range of each configured IP family; the first is the default.
    pub(crate) fn of_families(&self) -> impl Iterator<Item = ServiceRange> {
        [self.addresses].into_iter().chain(self.secondary_addresses)
    }
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
            ("10.96.1.2/0", Some("0.0.0.0/0")),
            ("10.0.0.9/32", Some("10.0.0.9/32")),
            ("010.0.0.0/024", Some("10.0.0.0/24")),
            ("fd00::1:2:3/108", Some("fd00::1:0:0/108")),
            ("fd00::1/0", Some("::/0")),
            ("fd00::1/128", Some("fd00::1/128")),
            ("10.0.0.0/33", None),
            ("fd00::/129", None),
            ("10.0.0.0/+8", None),
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
            ("fd00::/112", "fd00::1", "fd00::101", "fd00::ffff"),
            ("fd00::/64", "fd00::1", "fd00::101", "fd00::ffff:ffff:ffff:ffff"),
        ] {
            let range = ServiceRange::parse(text).unwrap();
            let address = |bits: &u128| range.address(*bits).to_string();
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

    /// kube-apiserver rejects these ranges, but they can be parsed.
    #[test]
    fn smallest_and_largest_ranges_do_not_overflow() {
        for (text, first, is_empty) in [
            ("0.0.0.0/0", "0.0.0.1", false),
            ("0.0.0.0/32", "0.0.0.1", true),
            ("255.255.255.255/32", "255.255.255.255", true),
            ("::/0", "::1", false),
            ("ffff::/128", "ffff::1", true),
            ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", false),
        ] {
            let range = ServiceRange::parse(text).unwrap();
            assert_eq!(range.first().to_string(), first, "{text}");
            assert_eq!(range.addresses().is_empty(), is_empty, "{text}");
            assert_eq!(range.dynamic_addresses().is_empty(), is_empty, "{text}");
        }
    }
}
