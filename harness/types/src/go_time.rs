//! Parses and formats times as Go does: the errors of `time.Parse`, and the formats of `Time` and `MicroTime`.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::quoting::quote;

/// The format of a time. Go calls it a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// `Time`: whole seconds. When parsing, a fraction of any length is accepted.
    Seconds,
    /// `MicroTime`: six fractional digits.
    Micros,
}

impl Layout {
    const fn text(self) -> &'static str {
        match self {
            Self::Seconds => "2006-01-02T15:04:05Z07:00",
            Self::Micros => "2006-01-02T15:04:05.000000Z07:00",
        }
    }
}

/// Parses a time in the format `layout`.
///
/// # Errors
/// Returns the error of Go's `time.Parse` for an invalid time.
///
/// Source: Go time/format.go, `parse`.
pub(crate) fn parse(text: &str, layout: Layout) -> Result<Timestamp, String> {
    let mut reader = Reader { text, rest: text, layout };
    let year = reader.digits("2006", 4..=4)?;
    reader.literal("-")?;
    let month = reader.number("01", 2..=2, "month", 1..=12)?;
    reader.literal("-")?;
    let day = reader.digits("02", 2..=2)?;
    reader.literal("T")?;
    let hour = reader.number("15", 1..=2, "hour", 0..=23)?;
    reader.literal(":")?;
    let minute = reader.number("04", 2..=2, "minute", 0..=59)?;
    reader.literal(":")?;
    let second = reader.number("05", 2..=2, "second", 0..=59)?;
    let nanos = reader.fraction()?;
    let offset = reader.offset()?;
    if !reader.rest.is_empty() {
        return Err(reader.out_of(&format!("extra text: {}", quote(reader.rest))));
    }
    let small = |number: i64| i8::try_from(number).unwrap_or_default();
    let date = Date::new(i16::try_from(year).unwrap_or_default(), small(month), small(day))
        .map_err(|_range| reader.out_of("day out of range"))?;
    let civil = date.at(small(hour), small(minute), small(second), nanos);
    let here = civil.to_zoned(TimeZone::UTC).map_err(|error| error.to_string())?.timestamp();
    // A time after the year 9999 cannot be formatted either.
    Ok(here.checked_sub(SignedDuration::from_secs(offset)).unwrap_or(here))
}

/// Formats a time as Go does: in UTC, without fractional digits that are not part of `layout`.
///
/// Returns `None` for the start of the year 1, which is Go's zero time.
pub(crate) fn written(time: Timestamp, layout: Layout) -> Option<String> {
    const ZERO: i64 = -62_135_596_800;
    if time.as_second() == ZERO && time.subsec_nanosecond() == 0 {
        return None;
    }
    Some(match layout {
        Layout::Seconds => time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        Layout::Micros => time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string(),
    })
}

struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
    layout: Layout,
}

impl Reader<'_> {
    /// Returns the error for input that does not match `element` of the layout. `rest` is the unparsed input.
    fn unlike(&self, rest: &str, element: &str) -> String {
        let (text, layout) = (quote(self.text), quote(self.layout.text()));
        format!("parsing time {text} as {layout}: cannot parse {} as {}", quote(rest), quote(element))
    }

    /// Returns the error for a well-formed time that is out of range.
    fn out_of(&self, why: &str) -> String {
        format!("parsing time {}: {why}", quote(self.text))
    }

    fn literal(&mut self, text: &str) -> Result<(), String> {
        self.rest = self.rest.strip_prefix(text).ok_or_else(|| self.unlike(self.rest, text))?;
        Ok(())
    }

    /// Reads as many digits as possible. `count` is the range of allowed numbers of digits.
    fn digits(&mut self, element: &str, count: std::ops::RangeInclusive<usize>) -> Result<i64, String> {
        let there = digits(self.rest).min(*count.end());
        let parts = self.rest.split_at_checked(there).filter(|_| count.contains(&there));
        let (number, rest) = parts.ok_or_else(|| self.unlike(self.rest, element))?;
        self.rest = rest;
        Ok(number.parse().unwrap_or_default())
    }

    fn number(
        &mut self,
        element: &str,
        count: std::ops::RangeInclusive<usize>,
        what: &str,
        range: std::ops::RangeInclusive<i64>,
    ) -> Result<i64, String> {
        let number = self.digits(element, count)?;
        if range.contains(&number) { Ok(number) } else { Err(self.out_of(&format!("{what} out of range"))) }
    }

    /// Reads a fraction of a second and returns nanoseconds. [`Layout::Seconds`] accepts any number of digits.
    fn fraction(&mut self) -> Result<i32, String> {
        let after = self.rest.strip_prefix(['.', ',']);
        let count = after.map_or(0, digits);
        let taken = match self.layout {
            Layout::Seconds if count == 0 => return Ok(0),
            Layout::Seconds => count,
            Layout::Micros if count < 6 => return Err(self.unlike(self.rest, ".000000")),
            Layout::Micros => 6,
        };
        let (fraction, rest) = after.and_then(|after| after.split_at_checked(taken)).unwrap_or_default();
        self.rest = rest;
        let nanos: String = fraction.chars().chain(std::iter::repeat('0')).take(9).collect();
        Ok(nanos.parse().unwrap_or_default())
    }

    /// Reads the offset from UTC, in seconds.
    fn offset(&mut self) -> Result<i64, String> {
        const ELEMENT: &str = "Z07:00";
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }
        let bad = self.unlike(self.rest, ELEMENT);
        let parts = self.rest.split_at_checked(6).and_then(|(offset, rest)| {
            let (hours, minutes) = offset.split_at_checked(1)?.1.split_once(':')?;
            let is_number = |text: &str| text.len() == 2 && digits(text) == 2;
            (is_number(hours) && is_number(minutes)).then_some((offset, hours, minutes, rest))
        });
        let (offset, hours, minutes, rest) = parts.ok_or_else(|| bad.clone())?;
        let (hours, minutes): (i64, i64) =
            (hours.parse().unwrap_or_default(), minutes.parse().unwrap_or_default());
        if hours > 24 {
            return Err(self.out_of("time zone offset hour out of range"));
        }
        if minutes > 60 {
            return Err(self.out_of("time zone offset minute out of range"));
        }
        let seconds = (hours * 60 + minutes) * 60;
        let sign = match offset.as_bytes().first() {
            Some(b'+') => 1,
            Some(b'-') => -1,
            Some(_) | None => return Err(bad),
        };
        self.rest = rest;
        Ok(sign * seconds)
    }
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, layout: Layout, expect: &str) {
        let found = parse(text, layout).map(|time| written(time, layout).unwrap_or_default());
        assert_eq!(found.unwrap_or_else(|error| error), expect);
    }

    #[test]
    fn times_are_formatted_in_utc() {
        check("2026-01-02T03:04:05Z", Layout::Seconds, "2026-01-02T03:04:05Z");
        check("2026-01-02T03:04:05.987,", Layout::Seconds, &bad("2026-01-02T03:04:05.987,", ",", "Z07:00"));
        check("2026-01-02T03:04:05.9876543210Z", Layout::Seconds, "2026-01-02T03:04:05Z");
        check("2026-01-02T3:04:05+01:30", Layout::Seconds, "2026-01-02T01:34:05Z");
        check("2026-01-02T03:04:05.123456-01:00", Layout::Micros, "2026-01-02T04:04:05.123456Z");
        check("0001-01-01T00:00:00Z", Layout::Seconds, "");
    }

    fn bad(text: &str, rest: &str, element: &str) -> String {
        let layout = Layout::Seconds.text();
        format!("parsing time \"{text}\" as \"{layout}\": cannot parse \"{rest}\" as \"{element}\"")
    }

    // Recorded from Go 1.26.
    #[test]
    fn invalid_times_are_rejected_with_gos_errors() {
        for (text, rest, element) in [
            ("", "", "2006"),
            ("yesterday", "yesterday", "2006"),
            ("2026", "", "-"),
            ("2026-1-02T03:04:05Z", "1-02T03:04:05Z", "01"),
            ("2026-01-02 03:04:05Z", " 03:04:05Z", "T"),
            ("2026-01-02T03:04:05", "", "Z07:00"),
            ("2026-01-02T03:04:05+0100", "+0100", "Z07:00"),
            ("2026-01-02T03:04:05*01:00", "*01:00", "Z07:00"),
        ] {
            check(text, Layout::Seconds, &bad(text, rest, element));
        }
        for (text, why) in [
            ("2026-13-02T03:04:05Z", "month out of range"),
            ("2026-02-30T03:04:05Z", "day out of range"),
            ("2026-02-20T24:04:05Z", "hour out of range"),
            ("2026-02-20T03:04:05Zx", "extra text: \"x\""),
            ("2026-02-20T03:04:05+25:00", "time zone offset hour out of range"),
        ] {
            check(text, Layout::Seconds, &format!("parsing time \"{text}\": {why}"));
        }
        check(
            "2026-01-02T03:04:05Z",
            Layout::Micros,
            "parsing time \"2026-01-02T03:04:05Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"Z\" as \
             \".000000\"",
        );
    }
}
