//! Decodes protobuf messages into numbered fields.

/// The reason why bytes are not a protobuf message. The error messages are those of kube-apiserver's decoder.
///
/// Source: apimachinery pkg/runtime/generated.pb.go.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WireError {
    #[error("unexpected EOF")]
    Truncated,
    #[error("proto: integer overflow")]
    Overflow,
    #[error("proto: negative length found during unmarshaling")]
    NegativeLength,
    #[error("proto: illegal wireType {0}")]
    IllegalWireType(u64),
    #[error("proto: {message}: illegal tag {number} (wire type {wire_type})")]
    IllegalTag { message: String, number: i32, wire_type: u64 },
    #[error("proto: {message}: wiretype end group for non-group")]
    EndOfNoGroup { message: String },
    #[error("proto: wrong wireType = {wire_type} for field {field}")]
    WrongWireType { wire_type: u8, field: String },
}

/// The value of one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    /// A 32-bit value. It is discarded, because API types do not use this encoding.
    Fixed32,
    /// A group. Its content is discarded, because API types do not use this encoding.
    Group,
}

impl<'a> Wire<'a> {
    /// Returns the error for a value that has the wrong wire type for `field`.
    pub(super) fn wrong(self, field: &str) -> WireError {
        let wire_type = match self {
            Self::Varint(_) => 0,
            Self::Fixed64(_) => 1,
            Self::Bytes(_) => 2,
            Self::Group => 3,
            Self::Fixed32 => 5,
        };
        WireError::WrongWireType { wire_type, field: field.to_owned() }
    }

    pub(super) fn bytes(self, field: &str) -> Result<&'a [u8], WireError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Varint(_) | Self::Fixed64(_) | Self::Fixed32 | Self::Group => Err(self.wrong(field)),
        }
    }

    pub(super) fn varint(self, field: &str) -> Result<u64, WireError> {
        match self {
            Self::Varint(number) => Ok(number),
            Self::Bytes(_) | Self::Fixed64(_) | Self::Fixed32 | Self::Group => Err(self.wrong(field)),
        }
    }

    /// Returns the value as a string. Replaces invalid UTF-8 as Go's JSON encoder does.
    pub(super) fn text(self, field: &str) -> Result<String, WireError> {
        self.bytes(field).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }
}

/// Iterates over the fields of a message in byte order; stops after an error.
#[derive(Clone, Debug)]
pub(super) struct Fields<'a> {
    message: &'a str,
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Creates an iterator over the fields of `bytes`; `message` is the name for error messages.
    pub(super) fn new(message: &'a str, bytes: &'a [u8]) -> Self {
        Self { message, rest: bytes }
    }

    fn read(&mut self) -> Result<(i32, Wire<'a>), WireError> {
        let tag = varint(&mut self.rest)?;
        let wire_type = tag & 7;
        let number = low_i32(tag >> 3);
        let message = || self.message.to_owned();
        if wire_type == 4 {
            return Err(WireError::EndOfNoGroup { message: message() });
        }
        if number <= 0 {
            return Err(WireError::IllegalTag { message: message(), number, wire_type });
        }
        let wire = match wire_type {
            0 => Wire::Varint(varint(&mut self.rest)?),
            1 => Wire::Fixed64(u64::from_le_bytes(fixed(&mut self.rest)?)),
            2 => Wire::Bytes(length_delimited(&mut self.rest)?),
            3 => skip_group(&mut self.rest)?,
            5 => {
                let _: [u8; 4] = fixed(&mut self.rest)?;
                Wire::Fixed32
            }
            other => return Err(WireError::IllegalWireType(other)),
        };
        Ok((number, wire))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(i32, Wire<'a>), WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.read();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

/// Returns the low 32 bits of a number as a signed integer, as a conversion in Go does.
pub(super) fn low_i32(number: u64) -> i32 {
    let [a, b, c, d, ..] = number.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

/// Decodes a varint and advances `rest` past it.
pub(super) fn varint(rest: &mut &[u8]) -> Result<u64, WireError> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first().ok_or(WireError::Truncated)?;
        *rest = after;
        // Only one bit of a tenth byte counts. Go also drops the other bits.
        number |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Ok(number);
        }
    }
    Err(WireError::Overflow)
}

fn fixed<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], WireError> {
    let (bytes, after) = rest.split_first_chunk::<N>().ok_or(WireError::Truncated)?;
    *rest = after;
    Ok(*bytes)
}

fn length_delimited<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], WireError> {
    let length = varint(rest)?.cast_signed();
    if length < 0 {
        return Err(WireError::NegativeLength);
    }
    let length = usize::try_from(length).ok().filter(|length| *length <= rest.len());
    let (bytes, after) = rest.split_at(length.ok_or(WireError::Truncated)?);
    *rest = after;
    Ok(bytes)
}

/// Skips the rest of a group and its nested groups without recursion.
fn skip_group(rest: &mut &[u8]) -> Result<Wire<'static>, WireError> {
    let mut depth = 1_usize;
    while depth > 0 {
        match varint(rest)? & 7 {
            0 => drop(varint(rest)?),
            1 => drop(fixed::<8>(rest)?),
            2 => drop(length_delimited(rest)?),
            3 => depth += 1,
            4 => depth -= 1,
            5 => drop(fixed::<4>(rest)?),
            other => return Err(WireError::IllegalWireType(other)),
        }
    }
    Ok(Wire::Group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expect: &Result<Vec<(i32, Wire<'_>)>, &str>) {
        let found: Result<Vec<_>, _> = Fields::new("Pod", bytes).collect();
        assert_eq!(found.map_err(|error| error.to_string()), expect.clone().map_err(ToOwned::to_owned));
    }

    #[test]
    fn fields_are_in_byte_order() {
        check(b"", &Ok(vec![]));
        check(b"\x0a\x02hi\x10\xac\x02", &Ok(vec![(1, Wire::Bytes(b"hi")), (2, Wire::Varint(300))]));
        check(b"\x09\x01\0\0\0\0\0\0\0\x15\0\0\0\0", &Ok(vec![(1, Wire::Fixed64(1)), (2, Wire::Fixed32)]));
        check(b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", &Ok(vec![(1, Wire::Varint(u64::MAX))]));
        check(b"\x0b\x13\x10\x01\x14\x0c\x10\x02", &Ok(vec![(1, Wire::Group), (2, Wire::Varint(2))]));
    }

    #[test]
    fn invalid_messages_have_upstream_errors() {
        check(b"\x0a\x50a", &Err("unexpected EOF"));
        check(b"\x0a", &Err("unexpected EOF"));
        check(b"\x09\x01", &Err("unexpected EOF"));
        check(b"\x0b\x10", &Err("unexpected EOF"));
        check(&[0xff; 11], &Err("proto: integer overflow"));
        check(b"\x02\x00", &Err("proto: Pod: illegal tag 0 (wire type 2)"));
        check(b"\x0c", &Err("proto: Pod: wiretype end group for non-group"));
        check(b"\x0e", &Err("proto: illegal wireType 6"));
        check(
            b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            &Err("proto: negative length found during unmarshaling"),
        );
    }
}
