//! Parses the flags of `admit serve` that limit its use of resources.

use std::fmt;
use std::str::FromStr;

use harness::server::Limits;

/// The resource limits of a server, with the defaults of [`Limits`].
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
pub(super) struct LimitFlags {
    /// Allow at most this many non-mutating requests in flight, not counting watches. Further requests are rejected
    /// with 429
    #[arg(long, value_name = "NUMBER", default_value_t = Limits::default().requests, value_parser = positive)]
    max_requests_inflight: usize,
    /// Allow at most this many mutating requests in flight. Further requests are rejected with 429
    #[arg(long, value_name = "NUMBER", default_value_t = Limits::default().mutating_requests, value_parser = positive)]
    max_mutating_requests_inflight: usize,
    /// Use at most this much memory for requests and responses in flight, including their objects and webhook calls,
    /// such as 512Mi. Further requests are rejected with 429
    #[arg(long, value_name = "BYTES", default_value_t = Bytes(Limits::default().in_flight_bytes))]
    max_inflight_bytes: Bytes,
    /// Limit the total size of stored objects, measured as JSON. A write that exceeds the limit is rejected with 500,
    /// as with etcd
    #[arg(long, value_name = "BYTES", default_value_t = Bytes(Limits::default().storage_bytes))]
    quota_backend_bytes: Bytes,
    /// Keep at most this many bytes of replaced objects, measured as JSON, for watches that have not sent them yet. A
    /// watch that falls further behind is closed
    #[arg(long, value_name = "BYTES", default_value_t = Bytes(Limits::default().watch_cache_bytes))]
    watch_cache_bytes: Bytes,
    /// Use at most this much memory for events larger than 8 KiB that are being sent. Watches wait until enough memory
    /// is available
    #[arg(long, value_name = "BYTES", default_value_t = Bytes(Limits::default().event_bytes))]
    max_event_bytes: Bytes,
    /// Allow at most this many watches. Further watches are rejected with 429
    #[arg(long, value_name = "NUMBER", default_value_t = Limits::default().watches, value_parser = positive)]
    max_watches: usize,
}

impl From<LimitFlags> for Limits {
    fn from(flags: LimitFlags) -> Self {
        Self {
            requests: flags.max_requests_inflight,
            mutating_requests: flags.max_mutating_requests_inflight,
            in_flight_bytes: flags.max_inflight_bytes.0,
            storage_bytes: flags.quota_backend_bytes.0,
            watch_cache_bytes: flags.watch_cache_bytes.0,
            event_bytes: flags.max_event_bytes.0,
            watches: flags.max_watches,
        }
    }
}

/// Parses a maximum number of requests or watches. The number must be positive.
fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(_) => Err("not a number, such as 400".to_owned()),
    }
}

/// The minimum value of a limit: the size of the largest object in a request.
const MIN_LIMIT: usize = 16 << 20;

/// A number of bytes. On the command line, it may have the suffix `Ki`, `Mi`, or `Gi`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bytes(usize);

const UNITS: [(&str, usize); 4] = [("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10), ("", 1)];

/// Formats the number with the largest unit that divides it.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, size) =
            UNITS.into_iter().find(|(_, size)| self.0.is_multiple_of(*size)).unwrap_or(("", 1));
        write!(f, "{}{unit}", self.0 / size)
    }
}

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = text.strip_suffix(unit).unwrap_or_default();
        let Some((_, size)) = UNITS.into_iter().find(|(name, _)| *name == unit) else {
            return Err(format!("unknown unit {unit}: expected bytes, Ki, Mi, or Gi, such as 96Mi"));
        };
        let number: usize =
            digits.parse().map_err(|_not_a_number| "not a number of bytes, such as 96Mi".to_owned())?;
        match number.checked_mul(size) {
            None => Err("too large".to_owned()),
            Some(bytes) if bytes < MIN_LIMIT => Err(format!("must be at least {}", Self(MIN_LIMIT))),
            Some(bytes) => Ok(Self(bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_sizes_are_parsed_as_quantities() {
        for (text, expected) in [
            ("16777216", Some(16 << 20)),
            ("16384Ki", Some(16 << 20)),
            ("96Mi", Some(96 << 20)),
            ("2Gi", Some(2 << 30)),
            ("", None),
            ("Mi", None),
            ("-1Mi", None),
            ("15Mi", None),
            ("0", None),
            ("96MB", None),
            ("99999999999Gi", None),
        ] {
            assert_eq!(text.parse().ok(), expected.map(Bytes), "{text}");
        }
    }

    #[test]
    fn byte_sizes_are_formatted_as_given() {
        for text in ["2Gi", "1536Mi", "20000Ki", "16777217"] {
            assert_eq!(text.parse::<Bytes>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn at_least_one_request_must_be_allowed() {
        assert_eq!(positive("1"), Ok(1));
        assert!(positive("0").is_err() && positive("x").is_err());
    }
}
