//! Parses IP addresses and prefixes as Go does.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::quote::quote;

/// An IP address and its zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address<'t> {
    /// The address without its zone.
    pub ip: IpAddr,
    /// The zone after `%` in an IPv6 address.
    pub zone: Option<&'t [u8]>,
}

/// Parses an address such as `10.0.0.1`, `::1`, or `fe80::1%eth0`.
///
/// # Errors
/// Returns Go's message if the text is not an address.
///
/// Source: Go net/netip/netip.go, `ParseAddr`.
pub fn parse_address(text: &[u8]) -> Result<Address<'_>, String> {
    match text.iter().find(|byte| matches!(byte, b'.' | b':' | b'%')) {
        Some(b'.') => {
            parse_ipv4(text, text).map(|octets| Address { ip: IpAddr::V4(octets.into()), zone: None })
        }
        Some(b':') => parse_ipv6(text),
        Some(_) => Err(address_error(text, "missing IPv6 address", b"")),
        None => Err(address_error(text, "unable to parse IP", b"")),
    }
}

/// Parses a prefix such as `10.0.0.0/8`.
///
/// # Errors
/// Returns Go's message if the text is not a prefix.
///
/// Source: Go net/netip/netip.go, `ParsePrefix`.
pub fn parse_prefix(text: &str) -> Result<Prefix, String> {
    let error = |message: &str| Err(format!("netip.ParsePrefix({}): {message}", quote(text)));
    let Some((address, length)) = text.rsplit_once('/') else { return error("no '/'") };
    let address = match parse_address(address.as_bytes()) {
        Ok(address) => address,
        Err(message) => return error(&message),
    };
    if address.zone.is_some() {
        return error("IPv6 zones cannot be present in a prefix");
    }
    let bad_bits = || format!("bad bits after slash: {}", quote(length));
    let is_number = match length.as_bytes() {
        [digit] => digit.is_ascii_digit(),
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    // strconv.Atoi rejects numbers that do not fit into an int.
    let Some(bits) = length.parse::<i64>().ok().filter(|_| is_number) else { return error(&bad_bits()) };
    match u8::try_from(bits) {
        Ok(bits) if bits <= bit_length(address.ip) => Ok(Prefix { address: address.ip, bits }),
        _ => error("prefix length out of range"),
    }
}

/// A network prefix: an address in the network, which need not be the first one, and the prefix length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// An address in the network.
    pub address: IpAddr,
    /// The prefix length: at most 32 for IPv4, and at most 128 for IPv6.
    pub bits: u8,
}

impl Prefix {
    /// Returns whether the address belongs to the network.
    pub fn contains(self, address: IpAddr) -> bool {
        bit_length(self.address) == bit_length(address) && mask(address, self.bits) == self.masked().address
    }

    /// Returns the network with its first address.
    #[must_use]
    pub fn masked(self) -> Self {
        Self { address: mask(self.address, self.bits), bits: self.bits }
    }

    /// Returns whether the networks overlap.
    pub fn overlaps(self, other: Self) -> bool {
        let bits = self.bits.min(other.bits);
        bit_length(self.address) == bit_length(other.address)
            && mask(self.address, bits) == mask(other.address, bits)
    }
}

/// Returns the number of bits in the address: 32 or 128.
pub fn bit_length(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Returns whether the address is an IPv4-mapped IPv6 address, such as `::ffff:10.0.0.1`.
pub fn is_ipv4_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some())
}

/// Returns the address with all bits after the prefix set to zero.
fn mask(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask))
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
        }
    }
}

fn address_error(text: &[u8], message: &str, at: &[u8]) -> String {
    let text = quote(text);
    if at.is_empty() {
        format!("ParseAddr({text}): {message}")
    } else {
        format!("ParseAddr({text}): {message} (at {})", quote(at))
    }
}

/// Parses the four numbers in an IPv4 address; `text` is the entire address, for error messages.
fn parse_ipv4(text: &[u8], fields: &[u8]) -> Result<[u8; 4], String> {
    let error = |message: &str, at: &[u8]| Err(address_error(text, message, at));
    let (mut address, mut octets) = (0_u32, 0);
    let (mut value, mut digits) = (0_u32, 0);
    for (index, byte) in fields.iter().enumerate() {
        let rest = fields.get(index..).unwrap_or_default();
        match byte {
            b'0'..=b'9' => {
                if digits == 1 && value == 0 {
                    return error("IPv4 field has octet with leading zero", b"");
                }
                value = value * 10 + u32::from(byte - b'0');
                digits += 1;
                if value > 255 {
                    return error("IPv4 field has value >255", b"");
                }
            }
            b'.' if digits == 0 || rest.len() == 1 => {
                return error("IPv4 field must have at least one digit", rest);
            }
            b'.' if octets == 3 => return error("IPv4 address too long", b""),
            b'.' => {
                address = address << 8 | value;
                octets += 1;
                (value, digits) = (0, 0);
            }
            _ => return error("unexpected character", rest),
        }
    }
    if octets < 3 {
        return error("IPv4 address too short", b"");
    }
    Ok((address << 8 | value).to_be_bytes())
}

fn parse_ipv6(text: &[u8]) -> Result<Address<'_>, String> {
    let (address, zone) = match text.iter().position(|byte| *byte == b'%') {
        None => (text, None),
        Some(at) => (text.get(..at).unwrap_or_default(), text.get(at + 1..)),
    };
    if zone.is_some_and(<[u8]>::is_empty) {
        return Err(address_error(text, "zone must be a non-empty string", b""));
    }
    let mut groups = Groups { text, rest: address, octets: Vec::with_capacity(16), ellipsis: None };
    if let Some(rest) = address.strip_prefix(b"::") {
        groups.ellipsis = Some(0);
        groups.rest = rest;
    }
    if !(groups.rest.is_empty() && groups.ellipsis.is_some()) {
        groups.read()?;
    }
    let octets = groups.expand()?;
    Ok(Address { ip: IpAddr::V6(octets.into()), zone })
}

/// The groups of an IPv6 address during parsing.
struct Groups<'t> {
    /// The entire address, for error messages.
    text: &'t [u8],
    /// The part of the text that has not been read.
    rest: &'t [u8],
    octets: Vec<u8>,
    /// The number of octets before `::`, if the address contains `::`.
    ellipsis: Option<usize>,
}

impl Groups<'_> {
    fn error<T>(&self, message: &str, at: &[u8]) -> Result<T, String> {
        Err(address_error(self.text, message, at))
    }

    /// Parses groups until there are 16 octets or the text ends.
    fn read(&mut self) -> Result<(), String> {
        while self.octets.len() < 16 {
            let digits = self.rest.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
            if digits > 4 {
                return self.error("each group must have 4 or less digits", self.rest);
            }
            if digits == 0 {
                return self.error("each colon-separated field must have at least one digit", self.rest);
            }
            let (group, rest) = self.rest.split_at_checked(digits).unwrap_or_default();
            if rest.first() == Some(&b'.') {
                return self.read_embedded_ipv4();
            }
            self.octets.extend(hexadecimal(group).to_be_bytes());
            self.rest = rest;
            let Some(first) = rest.first() else { break };
            if *first != b':' {
                return self.error("unexpected character, want colon", rest);
            }
            if rest.len() == 1 {
                return self.error("colon must be followed by more characters", rest);
            }
            self.rest = rest.get(1..).unwrap_or_default();
            if let Some(after) = self.rest.strip_prefix(b":") {
                if self.ellipsis.is_some() {
                    return self.error("multiple :: in address", self.rest);
                }
                self.ellipsis = Some(self.octets.len());
                self.rest = after;
                if after.is_empty() {
                    break;
                }
            }
        }
        Ok(())
    }

    fn read_embedded_ipv4(&mut self) -> Result<(), String> {
        if self.ellipsis.is_none() && self.octets.len() != 12 {
            let message = "embedded IPv4 address must replace the final 2 fields of the address";
            return self.error(message, self.rest);
        }
        if self.octets.len() > 12 {
            let message = "too many hex fields to fit an embedded IPv4 at the end of the address";
            return self.error(message, self.rest);
        }
        self.octets.extend(parse_ipv4(self.text, self.rest)?);
        self.rest = b"";
        Ok(())
    }

    /// Returns the octets of the address, with zeros in place of `::`.
    fn expand(self) -> Result<[u8; 16], String> {
        if !self.rest.is_empty() {
            return self.error("trailing garbage after address", self.rest);
        }
        let missing = 16_usize.saturating_sub(self.octets.len());
        match self.ellipsis {
            None if missing > 0 => self.error("address string too short", b""),
            Some(_) if missing == 0 => self.error("the :: must expand to at least one field of zeros", b""),
            ellipsis => {
                let (before, after) =
                    self.octets.split_at_checked(ellipsis.unwrap_or(16)).unwrap_or((&self.octets, &[]));
                let mut octets = [0; 16];
                for (octet, value) in octets.iter_mut().zip(before) {
                    *octet = *value;
                }
                for (octet, value) in octets.iter_mut().rev().zip(after.iter().rev()) {
                    *octet = *value;
                }
                Ok(octets)
            }
        }
    }
}

/// Parses at most four hexadecimal digits.
fn hexadecimal(digits: &[u8]) -> u16 {
    digits.iter().fold(0, |number, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => digit.wrapping_sub(b'A').wrapping_add(10),
        };
        (number << 4) | u16::from(value)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn invalid_address_has_the_error_of_go() {
        for (text, error) in [
            ("", "unable to parse IP"),
            ("1%e", "missing IPv6 address"),
            ("1.2.3", "IPv4 address too short"),
            ("1.2.3.4.5", "IPv4 address too long"),
            ("1.02.3.4", "IPv4 field has octet with leading zero"),
            ("1.256.3.4", "IPv4 field has value >255"),
            ("1..2.3", "IPv4 field must have at least one digit (at \".2.3\")"),
            ("1.2.3.", "IPv4 field must have at least one digit (at \".\")"),
            ("1.2.é.4", "unexpected character (at \"é.4\")"),
            ("::1%", "zone must be a non-empty string"),
            (":", "each colon-separated field must have at least one digit (at \":\")"),
            ("12345::", "each group must have 4 or less digits (at \"12345::\")"),
            ("1::2::3", "multiple :: in address (at \":3\")"),
            ("1:", "colon must be followed by more characters (at \":\")"),
            ("1:2x", "unexpected character, want colon (at \"x\")"),
            ("1:2:3:4:5:6:7:8:9", "trailing garbage after address (at \"9\")"),
            ("1:2:3:4:5:6:7::8", "the :: must expand to at least one field of zeros"),
            ("1:2", "address string too short"),
            (
                "1:1.2.3.4",
                "embedded IPv4 address must replace the final 2 fields of the address (at \"1.2.3.4\")",
            ),
            (
                "::1:2:3:4:5:6:7:1.2.3.4",
                "too many hex fields to fit an embedded IPv4 at the end of the address (at \"1.2.3.4\")",
            ),
        ] {
            let expected = format!("ParseAddr({}): {error}", quote(text));
            assert_eq!(parse_address(text.as_bytes()), Err(expected), "{text}");
        }
    }

    #[test]
    fn invalid_prefix_has_the_error_of_go() {
        for (text, error) in [
            ("10.0.0.0", "no '/'"),
            ("a/8", "ParseAddr(\"a\"): unable to parse IP"),
            ("::1%e/8", "IPv6 zones cannot be present in a prefix"),
            ("10.0.0.0/08", "bad bits after slash: \"08\""),
            ("10.0.0.0/", "bad bits after slash: \"\""),
            ("10.0.0.0/+8", "bad bits after slash: \"+8\""),
            ("10.0.0.0/99999999999999999999", "bad bits after slash: \"99999999999999999999\""),
            ("10.0.0.0/33", "prefix length out of range"),
        ] {
            let expected = format!("netip.ParsePrefix({}): {error}", quote(text));
            assert_eq!(parse_prefix(text), Err(expected), "{text}");
        }
    }

    #[test]
    fn prefix_contains_addresses_of_its_family_with_the_same_leading_bits() {
        let prefix = |text| parse_prefix(text).unwrap();
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        assert!(prefix("10.1.2.3/8").contains(address("10.9.9.9")));
        assert!(!prefix("10.1.2.3/8").contains(address("11.0.0.0")));
        assert!(prefix("10.1.2.3/0").contains(address("11.0.0.0")));
        assert!(!prefix("::/0").contains(address("11.0.0.0")));
        assert!(prefix("fe80::/10").contains(address("febf::1")));
        assert!(prefix("10.0.0.0/8").overlaps(prefix("10.1.0.0/16")));
        assert!(!prefix("0.0.0.0/0").overlaps(prefix("::/0")));
        assert_eq!(prefix("10.1.2.3/8").masked(), prefix("10.0.0.0/8"));
        assert_eq!(prefix("::1/0").masked(), prefix("::/0"));
    }

    proptest! {
        #[test]
        fn addresses_are_parsed_as_in_the_standard_library(text in "[0-9a-fA-F:.]{0,24}|[0-9]{1,3}(\\.[0-9]{1,3}){3}|[0-9a-f]{0,4}(::?[0-9a-f]{0,4}){2,7}") {
            let found = parse_address(text.as_bytes()).ok().map(|address| address.ip);
            prop_assert_eq!(found, text.parse::<IpAddr>().ok());
        }

        #[test]
        fn formatted_address_parses_to_the_same_address(bits in any::<u128>(), shift in 0..128_u32) {
            for address in [IpAddr::V6((bits >> shift).into()), IpAddr::V6((bits << shift).into())] {
                let text = address.to_string();
                prop_assert_eq!(parse_address(text.as_bytes()), Ok(Address { ip: address, zone: None }));
            }
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..30), text in "\\PC*") {
            let _ = parse_address(&bytes);
            let _ = parse_prefix(&text);
        }
    }
}
