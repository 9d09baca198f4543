//! Implements the functions that return parts of timestamps and durations.

use crate::function::{Call, Error, Function, Implementation, Overload};
use crate::types::Type;
use crate::value::{Civil, Value};

const HOUR: i64 = 3_600_000_000_000;
const MINUTE: i64 = 60_000_000_000;
const SECOND: i64 = 1_000_000_000;
const MILLISECOND: i64 = 1_000_000;

/// Creates a function that returns a part of a timestamp, in UTC or in a given time zone.
fn part(
    name: &'static str,
    id: &'static str,
    zoned_id: &'static str,
    implementation: Implementation,
) -> (&'static str, Vec<Overload>) {
    let overloads = vec![
        Overload::member(id, vec![Type::Timestamp], Type::Int, implementation),
        Overload::member(zoned_id, vec![Type::Timestamp, Type::String], Type::Int, implementation),
    ];
    (name, overloads)
}

/// Adds an overload for durations to a function that returns a part of a timestamp.
fn with_duration(
    (name, mut overloads): (&'static str, Vec<Overload>),
    id: &'static str,
    implementation: Implementation,
) -> (&'static str, Vec<Overload>) {
    overloads.push(Overload::member(id, vec![Type::Duration], Type::Int, implementation));
    (name, overloads)
}

pub(super) fn functions() -> Vec<Function> {
    let functions = [
        part("getFullYear", "timestamp_to_year", "timestamp_to_year_with_tz", |call| {
            civil(call, |time| time.year)
        }),
        part("getMonth", "timestamp_to_month", "timestamp_to_month_with_tz", |call| {
            civil(call, |time| time.month - 1)
        }),
        part("getDayOfYear", "timestamp_to_day_of_year", "timestamp_to_day_of_year_with_tz", |call| {
            civil(call, |time| time.day_of_year)
        }),
        part("getDayOfMonth", "timestamp_to_day_of_month", "timestamp_to_day_of_month_with_tz", |call| {
            civil(call, |time| time.day - 1)
        }),
        part(
            "getDate",
            "timestamp_to_day_of_month_1_based",
            "timestamp_to_day_of_month_1_based_with_tz",
            |call| civil(call, |time| time.day),
        ),
        part("getDayOfWeek", "timestamp_to_day_of_week", "timestamp_to_day_of_week_with_tz", |call| {
            civil(call, |time| time.day_of_week)
        }),
        with_duration(
            part("getHours", "timestamp_to_hours", "timestamp_to_hours_with_tz", |call| {
                civil(call, |time| time.hour)
            }),
            "duration_to_hours",
            |call| duration(call, |nanoseconds| whole(nanoseconds, HOUR)),
        ),
        with_duration(
            part("getMinutes", "timestamp_to_minutes", "timestamp_to_minutes_with_tz", |call| {
                civil(call, |time| time.minute)
            }),
            "duration_to_minutes",
            |call| duration(call, |nanoseconds| whole(nanoseconds, MINUTE)),
        ),
        with_duration(
            part("getSeconds", "timestamp_to_seconds", "timestamp_to_seconds_tz", |call| {
                civil(call, |time| time.second)
            }),
            "duration_to_seconds",
            |call| duration(call, |nanoseconds| whole(nanoseconds, SECOND)),
        ),
        with_duration(
            part(
                "getMilliseconds",
                "timestamp_to_milliseconds",
                "timestamp_to_milliseconds_with_tz",
                |call| civil(call, |time| i64::from(time.nanosecond / 1_000_000)),
            ),
            "duration_to_milliseconds",
            |call| duration(call, |nanoseconds| nanoseconds / MILLISECOND),
        ),
    ];
    functions.into_iter().map(|(name, overloads)| Function::new(name, overloads)).collect()
}

fn civil<'a>(call: &Call<'_, 'a>, part: fn(Civil) -> i64) -> Result<Value<'a>, Error> {
    match call.arguments {
        [Value::Timestamp(time)] => time.civil(None).map(part).map(Value::Int),
        [Value::Timestamp(time), Value::String(zone)] => {
            time.civil(Some(zone.as_str())).map(part).map(Value::Int)
        }
        _ => Err(Error::no_such_overload()),
    }
}

/// Returns the number of whole units. Truncates a double, because Go's `Duration.Hours` and similar functions return
/// rounded doubles.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "Go's way")]
fn whole(nanoseconds: i64, unit: i64) -> i64 {
    ((nanoseconds / unit) as f64 + (nanoseconds % unit) as f64 / unit as f64) as i64
}

fn duration<'a>(call: &Call<'_, 'a>, part: fn(i64) -> i64) -> Result<Value<'a>, Error> {
    match call.arguments {
        [Value::Duration(nanoseconds)] => Ok(Value::Int(part(*nanoseconds))),
        _ => Err(Error::no_such_overload()),
    }
}
