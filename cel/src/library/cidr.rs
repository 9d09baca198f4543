//! Implements the functions for networks in CIDR notation.
//!
//! Source: apiserver pkg/cel/library/cidr.go and pkg/cel/cidr.go.

use std::fmt;
use std::sync::Arc;

use go_std::netip::{Prefix, is_ipv4_mapped, parse_prefix};
use go_std::quote::quote;

use super::costs::{NOMINAL, ONE_PASS, passes, share};
use super::ip::{self, Ip, ip};
use crate::function::{Call, CallCost, Error, Function, Implementation, Overload};
use crate::types::Type;
use crate::value::{Opaque, Value};

const TYPE: &str = "net.CIDR";

pub(crate) fn functions() -> Vec<Function> {
    vec![
        conversion("cidr", "string_to_cidr", cidr(), |call| Ok(value(read(call.text(0)?.as_str())?))),
        Function::new(
            "containsIP",
            vec![
                contains("cidr_contains_ip_string", Type::String, |call| {
                    // As in kube-apiserver, the error does not say why the string is not an address.
                    let address =
                        ip::parse(call.text(1)?.as_str()).ok().ok_or_else(Error::no_such_overload)?;
                    Ok(Value::Bool(prefix(call, 0)?.contains(address)))
                }),
                contains("cidr_contains_ip_ip", ip(), |call| {
                    Ok(Value::Bool(prefix(call, 0)?.contains(call.opaque::<Ip>(1)?.0)))
                }),
            ],
        )
        .with_cost(COST_OF_CONTAINS_IP),
        Function::new(
            "containsCIDR",
            vec![
                contains("cidr_contains_cidr_string", Type::String, |call| {
                    let other = read(call.text(1)?.as_str())?;
                    Ok(Value::Bool(holds(prefix(call, 0)?, other)))
                }),
                contains("cidr_contains_cidr", cidr(), |call| {
                    Ok(Value::Bool(holds(prefix(call, 0)?, prefix(call, 1)?)))
                }),
            ],
        )
        .with_cost(COST_OF_CONTAINS_CIDR),
        Function::new("ip", vec![accessor("cidr_ip", ip(), |call| Ok(ip::value(prefix(call, 0)?.address)))])
            .with_cost(NOMINAL),
        Function::new(
            "prefixLength",
            vec![accessor("cidr_prefix_length", Type::Int, |call| {
                Ok(Value::Int(prefix(call, 0)?.bits.into()))
            })],
        )
        .with_cost(NOMINAL),
        Function::new(
            "masked",
            vec![accessor("cidr_masked", cidr(), |call| Ok(value(prefix(call, 0)?.masked())))],
        )
        .with_cost(NOMINAL),
        conversion("isCIDR", "is_cidr", Type::Bool, |call| {
            Ok(Value::Bool(parse(call.text(0)?.as_str()).is_ok()))
        }),
        Function::new(
            "string",
            vec![Overload::global("cidr_to_string", vec![cidr()], Type::String, |call| {
                Ok(Value::text(call.opaque::<Cidr>(0)?.to_string()))
            })],
        ),
    ]
}

/// Returns the type of networks; its name is also declared as a value.
pub(crate) fn cidr() -> Type {
    Type::opaque(TYPE)
}

#[derive(Debug)]
struct Cidr(Prefix);

impl Opaque for Cidr {
    fn type_name(&self) -> &'static str {
        TYPE
    }

    fn native_name(&self) -> &'static str {
        "CIDR"
    }

    fn is_text(&self) -> bool {
        true
    }

    fn is_key_by_text(&self) -> bool {
        true
    }

    fn go_type(&self) -> &'static str {
        "cel.CIDR"
    }

    fn equals(&self, other: &dyn Opaque) -> Option<bool> {
        let other = (other as &dyn std::any::Any).downcast_ref::<Self>()?;
        Some(self.0 == other.0)
    }

    fn size(&self) -> u64 {
        u64::from(self.0.bits.div_ceil(8))
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.0.address, self.0.bits)
    }
}

/// Parses a prefix; IPv4-mapped IPv6 addresses are not allowed.
///
/// Source: apiserver pkg/cel/library/cidr.go, `parseCIDR`.
fn parse(text: &str) -> Result<Prefix, String> {
    let prefix = parse_prefix(text)
        .map_err(|error| format!("network address parse error during conversion from string: {error}"))?;
    if is_ipv4_mapped(prefix.address) {
        return Err(format!("IPv4-mapped IPv6 address {} is not allowed", quote(text)));
    }
    Ok(prefix)
}

/// Parses a prefix. As in kube-apiserver, a parse error begins with the same phrase twice.
///
/// Source: apiserver pkg/cel/library/cidr.go, `stringToCIDR`.
fn read(text: &str) -> Result<Prefix, Error> {
    parse(text).map_err(|message| {
        Error::new(format!("network address parse error during conversion from string: {message}"))
    })
}

/// The cost of reading the bytes of the network twice and, if the argument is a string, of parsing the argument.
const COST_OF_CONTAINS_IP: CallCost = |overload, arguments, _| {
    let [network, other, ..] = arguments else { return None };
    let parsing = if overload == "cidr_contains_ip_string" { passes(other, 1.0) } else { 0 };
    Some(share(2 * network.size_or_one(), 0.1) + parsing)
};

/// The cost of reading the bytes of the network three times and, if the argument is a string, of parsing the argument.
///
/// The third pass masks the network.
const COST_OF_CONTAINS_CIDR: CallCost = |overload, arguments, _| {
    let [network, other, ..] = arguments else { return None };
    let parsing = if overload == "cidr_contains_cidr_string" { passes(other, 1.0) } else { 0 };
    Some(share(2 * network.size_or_one(), 0.1) + passes(network, 1.0) + 1 + parsing)
};

fn conversion(
    name: &'static str,
    id: &'static str,
    result: Type,
    implementation: Implementation,
) -> Function {
    Function::new(name, vec![Overload::global(id, vec![Type::String], result, implementation)])
        .with_cost(ONE_PASS)
}

fn contains(id: &'static str, other: Type, implementation: Implementation) -> Overload {
    Overload::member(id, vec![cidr(), other], Type::Bool, implementation)
}

fn accessor(id: &'static str, result: Type, implementation: Implementation) -> Overload {
    Overload::member(id, vec![cidr()], result, implementation)
}

fn value<'a>(prefix: Prefix) -> Value<'a> {
    Value::Opaque(Arc::new(Cidr(prefix)))
}

fn prefix(call: &Call<'_, '_>, index: usize) -> Result<Prefix, Error> {
    call.opaque::<Cidr>(index).map(|cidr| cidr.0)
}

/// Returns whether `outer` contains all addresses of `inner`.
fn holds(outer: Prefix, inner: Prefix) -> bool {
    outer.overlaps(inner) && outer.bits <= inner.bits
}
