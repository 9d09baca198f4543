//! Time zones and the Gregorian calendar.

use jiff::tz::TimeZoneDatabase;

use crate::error::Error;

/// A date and a time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Civil {
    /// The year, from 1 to 9999, or one year beyond for local times near these limits.
    pub year: i64,
    /// The month, from 1 to 12.
    pub month: i64,
    /// The day of the month, starting with 1.
    pub day: i64,
    /// The hour, from 0 to 23.
    pub hour: i64,
    /// The minute, from 0 to 59.
    pub minute: i64,
    /// The second, from 0 to 59.
    pub second: i64,
    /// The nanoseconds of the second.
    pub nanosecond: u32,
    /// The day of the year, starting with 0.
    pub day_of_year: i64,
    /// The day of the week; Sunday is 0.
    pub day_of_week: i64,
}

impl Civil {
    /// Creates the local date and time from seconds since 1970-01-01 00:00 local time.
    pub(super) fn from_seconds(local_seconds: i64, nanosecond: u32) -> Self {
        let (days, second_of_day) = (local_seconds.div_euclid(86_400), local_seconds.rem_euclid(86_400));
        let (year, month, day) = date(days);
        Self {
            year,
            month,
            day,
            hour: second_of_day / 3_600,
            minute: second_of_day / 60 % 60,
            second: second_of_day % 60,
            nanosecond,
            day_of_year: days - days_since_1970(year, 1, 1),
            day_of_week: (days + 4).rem_euclid(7),
        }
    }
}

/// Returns the number of days from 1970-01-01 to a date of the Gregorian calendar.
pub(super) fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March, so that the leap day is the last.
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Returns the date that is `days` days after 1970-01-01, as year, month, and day.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

/// Returns the number of days in a month.
pub(super) fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the seconds east of UTC in a time zone at a Unix time.
///
/// The zone is a name such as `Europe/Rome`, or an offset such as `-02:30`.
///
/// # Errors
///
/// Returns Go's message if the time zone is unknown or malformed.
///
/// Source: cel-go common/stdlib/standard.go, `inTimeZone`; Go's time, `LoadLocation`.
pub(super) fn offset(zone: &str, seconds: i64) -> Result<i32, Error> {
    let Some((hours, minutes)) = zone.split_once(':') else { return named(zone, seconds) };
    let hours = integer(hours)?;
    let minutes = integer(minutes)?;
    let total = hours.wrapping_mul(60);
    let total = if zone.starts_with('-') { total.wrapping_sub(minutes) } else { total.wrapping_add(minutes) };
    // Offsets that do not fit are treated as UTC; in Go, the duration can wrap around.
    Ok(total.checked_mul(60).and_then(|offset| i32::try_from(offset).ok()).unwrap_or_default())
}

fn integer(text: &str) -> Result<i64, Error> {
    let reason = |reason: &str| Error::new(format!("strconv.Atoi: parsing {text:?}: {reason}"));
    text.parse().map_err(|error: std::num::ParseIntError| match error.kind() {
        std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => {
            reason("value out of range")
        }
        _ => reason("invalid syntax"),
    })
}

fn named(name: &str, seconds: i64) -> Result<i32, Error> {
    if matches!(name, "" | "UTC" | "Local") {
        return Ok(0);
    }
    if name.contains("..") || name.starts_with(['/', '\\']) {
        return Err(Error::new("time: invalid location name".to_owned()));
    }
    // kube-apiserver reads time zones from files, so a name is treated as a path.
    let path: Vec<&str> = name.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let path = path.join("/");
    let zones = TimeZoneDatabase::bundled();
    let Some(zone) = zones.get(&path).ok().filter(|zone| zone.iana_name() == Some(path.as_str())) else {
        let folder = format!("{path}/");
        let is_folder = path.is_empty() || zones.available().any(|zone| zone.as_str().starts_with(&folder));
        let reason =
            if is_folder { "is a directory".to_owned() } else { format!("unknown time zone {name}") };
        return Err(Error::new(reason));
    };
    if name.ends_with(['/', '.']) {
        return Err(Error::new("not a directory".to_owned()));
    }
    // jiff's calendar extends beyond CEL's.
    let time = jiff::Timestamp::from_second(seconds).unwrap_or_default();
    Ok(zone.to_offset(time).seconds())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_are_inverse() {
        for days in (-719_162..2_932_896).step_by(97) {
            let (year, month, day) = date(days);
            assert_eq!(days_since_1970(year, month, day), days);
            assert!((1..=days_in_month(year, month)).contains(&day));
        }
        assert_eq!(date(0), (1970, 1, 1));
        assert_eq!(days_since_1970(1, 1, 1), -719_162);
    }

    #[test]
    fn zones_have_the_names_and_errors_of_go() {
        assert_eq!(offset("America/Los_Angeles", 1_704_164_645), Ok(-8 * 3_600));
        assert_eq!(offset("-02:30", 0), Ok(-9_000));
        assert_eq!(offset("02:30", 0), Ok(9_000));
        assert_eq!(offset("", 0), Ok(0));
        for (zone, error) in [
            ("america/los_angeles", "unknown time zone america/los_angeles"),
            ("Foo/Bar", "unknown time zone Foo/Bar"),
            ("../x", "time: invalid location name"),
            ("x:00", "strconv.Atoi: parsing \"x\": invalid syntax"),
            (":00", "strconv.Atoi: parsing \"\": invalid syntax"),
        ] {
            assert_eq!(offset(zone, 0), Err(Error::new(error.to_owned())));
        }
    }
}
