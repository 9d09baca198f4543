//! Implements the functions for IP addresses.
//!
//! Source: apiserver pkg/cel/library/ip.go and pkg/cel/ip.go.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use go_std::netip::{bit_length, is_ipv4_mapped, parse_address};
use go_std::quote::quote;

use super::costs::{NOMINAL, ONE_PASS, TWO_PASSES, passes};
use crate::function::{Call, CallCost, Error, Function, Implementation, Overload};
use crate::types::Type;
use crate::value::{Opaque, Value};

const TYPE: &str = "net.IP";

pub(crate) fn functions() -> Vec<Function> {
    vec![
        conversion("ip", "string_to_ip", ip(), |call| {
            Ok(value(parse(call.text(0)?.as_str()).map_err(Error::new)?))
        })
        .with_cost(COST),
        accessor("family", "ip_family", Type::Int, |call| {
            Ok(Value::Int(if address(call)?.is_ipv4() { 4 } else { 6 }))
        }),
        conversion("ip.isCanonical", "ip_is_canonical", Type::Bool, is_canonical).with_cost(TWO_PASSES),
        test("isUnspecified", "ip_is_unspecified", |call| Ok(Value::Bool(address(call)?.is_unspecified()))),
        test("isLoopback", "ip_is_loopback", |call| Ok(Value::Bool(address(call)?.is_loopback()))),
        test("isLinkLocalMulticast", "ip_is_link_local_multicast", |call| {
            Ok(Value::Bool(is_link_local_multicast(address(call)?)))
        }),
        test("isLinkLocalUnicast", "ip_is_link_local_unicast", |call| {
            Ok(Value::Bool(is_link_local_unicast(address(call)?)))
        }),
        test("isGlobalUnicast", "ip_is_global_unicast", |call| {
            Ok(Value::Bool(is_global_unicast(address(call)?)))
        }),
        conversion("isIP", "is_ip", Type::Bool, |call| {
            Ok(Value::Bool(parse(call.text(0)?.as_str()).is_ok()))
        })
        .with_cost(ONE_PASS),
        Function::new(
            "string",
            vec![Overload::global("ip_to_string", vec![ip()], Type::String, |call| {
                Ok(Value::text(address(call)?.to_string()))
            })],
        ),
    ]
}

/// Returns the type of IP addresses; its name is also declared as a value.
pub(crate) fn ip() -> Type {
    Type::opaque(TYPE)
}

/// An IP address as a value of an expression.
#[derive(Debug)]
pub(super) struct Ip(pub(super) IpAddr);

impl Opaque for Ip {
    fn type_name(&self) -> &'static str {
        TYPE
    }

    fn native_name(&self) -> &'static str {
        "IP"
    }

    fn is_text(&self) -> bool {
        true
    }

    fn is_key_by_text(&self) -> bool {
        true
    }

    fn go_type(&self) -> &'static str {
        "cel.IP"
    }

    fn equals(&self, other: &dyn Opaque) -> Option<bool> {
        let other = (other as &dyn std::any::Any).downcast_ref::<Self>()?;
        Some(self.0 == other.0)
    }

    fn size(&self) -> u64 {
        u64::from(bit_length(self.0) / 8)
    }
}

impl fmt::Display for Ip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

pub(super) fn value<'a>(address: IpAddr) -> Value<'a> {
    Value::Opaque(Arc::new(Ip(address)))
}

/// Parses an address. Zones and IPv4-mapped IPv6 addresses are not allowed.
///
/// # Errors
/// Returns kube-apiserver's message if the text is not an allowed address.
///
/// Source: apiserver pkg/cel/library/ip.go, `parseIPAddr`.
pub(super) fn parse(text: &str) -> Result<IpAddr, String> {
    let quoted = || quote(text);
    let address = parse_address(text.as_bytes()).map_err(|error| {
        format!("IP Address {} parse error during conversion from string: {error}", quoted())
    })?;
    if address.zone.is_some() {
        return Err(format!("IP address {} with zone value is not allowed", quoted()));
    }
    if is_ipv4_mapped(address.ip) {
        return Err(format!("IPv4-mapped IPv6 address {} is not allowed", quoted()));
    }
    Ok(address.ip)
}

/// The cost of parsing an address; the address in a CIDR does not need parsing.
const COST: CallCost = |overload, arguments, _| {
    let argument = arguments.first()?;
    Some(if overload == "cidr_ip" { 1 } else { passes(argument, 1.0) })
};

fn conversion(
    name: &'static str,
    id: &'static str,
    result: Type,
    implementation: Implementation,
) -> Function {
    Function::new(name, vec![Overload::global(id, vec![Type::String], result, implementation)])
}

fn accessor(name: &'static str, id: &'static str, result: Type, implementation: Implementation) -> Function {
    Function::new(name, vec![Overload::member(id, vec![ip()], result, implementation)]).with_cost(NOMINAL)
}

fn test(name: &'static str, id: &'static str, implementation: Implementation) -> Function {
    accessor(name, id, Type::Bool, implementation)
}

fn address(call: &Call<'_, '_>) -> Result<IpAddr, Error> {
    call.opaque::<Ip>(0).map(|ip| ip.0)
}

fn is_canonical<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let text = call.text(0)?.as_str();
    Ok(Value::Bool(parse(text).map_err(Error::new)?.to_string() == text))
}

/// Returns whether the address is a link-local multicast address, such as `224.0.0.1` or `ff02::1`.
///
/// Source: Go net/netip/netip.go, `IsLinkLocalMulticast`.
fn is_link_local_multicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => matches!(address.octets(), [224, 0, 0, _]),
        IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    }
}

/// Returns whether the address is a link-local unicast address, such as `169.254.0.1` or `fe80::1`.
///
/// Source: Go net/netip/netip.go, `IsLinkLocalUnicast`.
fn is_link_local_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// Returns whether the address is a global unicast address; private addresses are included.
///
/// Source: Go net/netip/netip.go, `IsGlobalUnicast`.
fn is_global_unicast(address: IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !(is_broadcast
        || address.is_unspecified()
        || address.is_loopback()
        || address.is_multicast()
        || is_link_local_unicast(address))
}
