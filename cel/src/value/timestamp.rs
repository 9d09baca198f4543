//! Parses and formats points in time.

use std::fmt::Write as _;

use crate::error::Error;

use super::zone::{self, Civil};

/// A point in time with the UTC offset of its text; comparisons ignore the offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timestamp {
    seconds: i64,
    nanoseconds: u32,
    offset: i32,
}

/// The earliest valid time, 0001-01-01T00:00:00Z, in seconds since 1970.
const EARLIEST: i64 = -62_135_596_800;
/// The latest valid time, 9999-12-31T23:59:59Z, in seconds since 1970.
const LATEST: i64 = 253_402_300_799;
const NANOSECONDS: i64 = 1_000_000_000;

fn overflow() -> Error {
    Error::new("timestamp overflow".to_owned())
}

impl Timestamp {
    /// Creates a point in time in UTC from seconds since 1970 and nanoseconds.
    ///
    /// # Errors
    ///
    /// Returns the error `timestamp overflow` if the year is not from 1 to 9999.
    pub fn new(seconds: i64, nanoseconds: u32) -> Result<Self, Error> {
        if !(EARLIEST..=LATEST).contains(&seconds) {
            return Err(overflow());
        }
        Ok(Self { seconds, nanoseconds, offset: 0 })
    }

    /// Creates a point in time of any year that kube-apiserver accepts in documents, including the year 0.
    pub(super) fn of_any_year(seconds: i64, nanoseconds: u32) -> Self {
        Self { seconds, nanoseconds, offset: 0 }
    }

    /// Returns the seconds since 1970 and the nanoseconds.
    pub fn instant(&self) -> (i64, u32) {
        (self.seconds, self.nanoseconds)
    }

    /// Returns the same point in time with the offset of UTC.
    #[must_use]
    pub fn to_utc(self) -> Self {
        Self { offset: 0, ..self }
    }

    /// Returns whether Go uses one zone value for the offset, so that equal times are the same map key.
    ///
    /// Source: Go time/zoneinfo.go, `FixedZone`.
    pub(super) fn has_known_zone(self) -> bool {
        self.offset % 3600 == 0 && (-12..=14).contains(&(self.offset / 3600))
    }

    /// Returns whether the point in time is 0001-01-01T00:00:00Z, Go's zero time.
    pub(super) fn is_zero(self) -> bool {
        self.seconds == EARLIEST && self.nanoseconds == 0
    }

    /// Returns the time plus `nanoseconds`, with the same offset.
    ///
    /// # Errors
    ///
    /// Returns the error `timestamp overflow` if the year is not from 1 to 9999.
    ///
    /// Source: cel-go common/types/overflow.go, `addTimeDurationChecked`.
    pub(super) fn checked_add(self, nanoseconds: i64) -> Result<Self, Error> {
        let total = i64::from(self.nanoseconds) + nanoseconds % NANOSECONDS;
        let seconds = self.seconds + nanoseconds / NANOSECONDS + total.div_euclid(NANOSECONDS);
        let nanoseconds = u32::try_from(total.rem_euclid(NANOSECONDS)).unwrap_or_default();
        Self::new(seconds, nanoseconds).map(|time| Self { offset: self.offset, ..time })
    }

    /// Returns the nanoseconds since `earlier`, or `None` if the number does not fit into 64 bits.
    pub(super) fn since(&self, earlier: &Self) -> Option<i64> {
        let seconds = self.seconds - earlier.seconds;
        seconds
            .checked_mul(NANOSECONDS)?
            .checked_add(i64::from(self.nanoseconds) - i64::from(earlier.nanoseconds))
    }

    /// Returns the date and time in a time zone, or in UTC.
    ///
    /// # Errors
    ///
    /// Returns Go's message if the time zone is unknown or malformed.
    pub fn civil(&self, zone: Option<&str>) -> Result<Civil, Error> {
        let offset = zone.map_or(Ok(0), |zone| zone::offset(zone, self.seconds))?;
        Ok(Civil::from_seconds(self.seconds + i64::from(offset), self.nanoseconds))
    }

    /// Parses RFC 3339 as Go does; returns `None` if the text is invalid.
    ///
    /// # Errors
    ///
    /// Returns the error `timestamp overflow` if the year is not from 1 to 9999.
    ///
    /// Source: Go's time, `Parse` with the layout `RFC3339`.
    pub fn parse(text: &str) -> Option<Result<Self, Error>> {
        let time = Self::parse_any_year(text)?;
        Some(Self::new(time.seconds, time.nanoseconds).map(|_| time))
    }

    /// Parses RFC 3339, including years that expressions do not allow.
    pub(super) fn parse_any_year(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let (year, rest) = number(bytes, 4..=4)?;
        let (month, rest) = number(rest.strip_prefix(b"-")?, 2..=2)?;
        let (day, rest) = number(rest.strip_prefix(b"-")?, 2..=2)?;
        let (hour, rest) = number(rest.strip_prefix(b"T")?, 1..=2)?;
        let (minute, rest) = number(rest.strip_prefix(b":")?, 2..=2)?;
        let (second, rest) = number(rest.strip_prefix(b":")?, 2..=2)?;
        let (nanoseconds, rest) = fraction(rest);
        let offset = offset(rest)?;
        if !(1..=12).contains(&month) || day < 1 || day > zone::days_in_month(year, month) {
            return None;
        }
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let local = zone::days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
        let seconds = local - i64::from(offset);
        Some(Self { seconds, nanoseconds, offset })
    }

    /// Formats the time in RFC 3339 with its offset and as many fractional digits as needed.
    ///
    /// Source: Go's time, the layout `RFC3339Nano`.
    pub fn rfc3339(&self) -> String {
        let mut text = self.date_and_time('T');
        if self.offset == 0 {
            text.push('Z');
        } else {
            let (sign, hours, minutes) = self.offset_parts();
            let _ = write!(text, "{sign}{hours:02}:{minutes:02}");
        }
        text
    }

    /// Formats the time as Go's `%v` does, such as `2024-01-02 03:04:05 +0000 UTC`.
    pub(super) fn debug_text(&self) -> String {
        let (sign, hours, minutes) = self.offset_parts();
        let offset = format!("{sign}{hours:02}{minutes:02}");
        let name = if self.offset == 0 { "UTC" } else { &offset };
        format!("{} {offset} {name}", self.date_and_time(' '))
    }

    fn offset_parts(&self) -> (char, u32, u32) {
        let sign = if self.offset < 0 { '-' } else { '+' };
        let minutes = self.offset.unsigned_abs() / 60;
        (sign, minutes / 60, minutes % 60)
    }

    fn date_and_time(&self, separator: char) -> String {
        let Civil { year, month, day, hour, minute, second, .. } =
            Civil::from_seconds(self.seconds + i64::from(self.offset), self.nanoseconds);
        let mut text = format!("{year:04}-{month:02}-{day:02}{separator}{hour:02}:{minute:02}:{second:02}");
        if self.nanoseconds != 0 {
            let digits = format!("{:09}", self.nanoseconds);
            let _ = write!(text, ".{}", digits.trim_end_matches('0'));
        }
        text
    }
}

/// Parses a number of `digits` digits at the beginning, and returns it with the rest.
fn number(text: &[u8], digits: std::ops::RangeInclusive<usize>) -> Option<(i64, &[u8])> {
    let count = text.iter().take(*digits.end()).take_while(|byte| byte.is_ascii_digit()).count();
    if !digits.contains(&count) {
        return None;
    }
    let (number, rest) = text.split_at(count);
    Some((number.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')), rest))
}

/// Parses `.123` or `,123` as nanoseconds, truncated after nine digits.
pub(super) fn fraction(text: &[u8]) -> (u32, &[u8]) {
    let [b'.' | b',', rest @ ..] = text else { return (0, text) };
    let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if count == 0 {
        return (0, text);
    }
    let (digits, rest) = rest.split_at(count);
    let nanoseconds =
        (0..9).fold(0, |sum, place| sum * 10 + digits.get(place).map_or(0, |digit| u32::from(digit - b'0')));
    (nanoseconds, rest)
}

/// Parses `Z` or `+02:00` as seconds, or returns `None` if other text follows.
fn offset(text: &[u8]) -> Option<i32> {
    let (sign, rest) = match text {
        [b'Z'] => return Some(0),
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return None,
    };
    let (hours, rest) = number(rest, 2..=2)?;
    let (minutes, rest) = number(rest.strip_prefix(b":")?, 2..=2)?;
    if !rest.is_empty() || hours > 24 || minutes > 60 {
        return None;
    }
    i32::try_from(hours * 3_600 + minutes * 60).ok().map(|offset| sign * offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_parsed_and_formatted_as_in_go() {
        let cases = [
            ("2024-01-02T03:04:05Z", Some((1_704_164_645, "2024-01-02T03:04:05Z"))),
            ("2024-01-02T03:04:05.123456789123Z", Some((1_704_164_645, "2024-01-02T03:04:05.123456789Z"))),
            ("2024-01-02T03:04:05,5Z", Some((1_704_164_645, "2024-01-02T03:04:05.5Z"))),
            ("2024-01-02t03:04:05z", None),
            ("2024-01-02T03:04:05+02:00", Some((1_704_157_445, "2024-01-02T03:04:05+02:00"))),
            ("2024-01-02T03:04:05-00:30", Some((1_704_166_445, "2024-01-02T03:04:05-00:30"))),
            ("2024-01-02T03:04:05+23:60", Some((1_704_078_245, "2024-01-02T03:04:05+24:00"))),
            ("2024-01-02T24:04:05Z", None),
            ("2024-02-30T03:04:05Z", None),
            ("2024-1-2T3:4:5Z", None),
            ("2024-01-02T3:04:05Z", Some((1_704_164_645, "2024-01-02T03:04:05Z"))),
            ("9999-12-31T23:59:59.999999999Z", Some((253_402_300_799, "9999-12-31T23:59:59.999999999Z"))),
            ("2024-01-02T03:04:60Z", None),
            ("2024-01-02T03:04:05.Z", None),
            ("2024-01-02T03:04:05", None),
            ("2024-01-02T03:04:05+0200", None),
            ("2024-01-02T03:04:05+00:00", Some((1_704_164_645, "2024-01-02T03:04:05Z"))),
            ("2024-01-02T03:04:05Z ", None),
        ];
        for (text, expected) in cases {
            let time = Timestamp::parse(text).map(|time| time.expect("in range"));
            let seen = time.map(|time| (time.seconds, time.rfc3339()));
            assert_eq!(seen, expected.map(|(seconds, text)| (seconds, text.to_owned())), "{text:?}");
        }
    }

    #[test]
    fn times_end_with_year_9999() {
        assert!(matches!(Timestamp::parse("0000-01-01T00:00:00Z"), Some(Err(_))));
        let last = Timestamp::new(LATEST, 999_999_999).expect("in range");
        assert!(last.checked_add(1).is_err());
        assert_eq!(
            last.checked_add(-1_000_000_000).map(|time| time.instant()),
            Ok((LATEST - 1, 999_999_999))
        );
    }
}
