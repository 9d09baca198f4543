//! Validates the schedule of a `CronJob`.

/// The limits of a schedule field, and the names of its values.
struct Field {
    least: u32,
    most: u32,
    names: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    Field { least: 0, most: 59, names: &[] },
    Field { least: 0, most: 23, names: &[] },
    Field { least: 1, most: 31, names: &[] },
    Field {
        least: 1,
        most: 12,
        names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    },
    Field { least: 0, most: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] },
];

/// Checks that a schedule can be parsed.
///
/// # Errors
/// Returns the message of kube-apiserver's cron library if the schedule is invalid.
///
/// Source: github.com/robfig/cron/v3 parser.go, `Parse`.
pub(crate) fn parse(schedule: &str) -> Result<(), String> {
    let mut rest = schedule;
    if schedule.starts_with("TZ=") || schedule.starts_with("CRON_TZ=") {
        // The time zone is not checked because it is rejected in any case.
        rest = schedule.split_once(' ').map_or("", |(_, rest)| rest).trim();
    }
    if rest.starts_with('@') {
        return descriptor(rest);
    }
    let fields: Vec<&str> = rest.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
    }
    fields.into_iter().zip(&FIELDS).try_for_each(|(text, field)| {
        text.split(',').filter(|part| !part.is_empty()).try_for_each(|part| range(part, field))
    })
}

fn descriptor(text: &str) -> Result<(), String> {
    let known = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];
    if known.contains(&text) {
        return Ok(());
    }
    let Some(duration) = text.strip_prefix("@every ") else {
        return Err(format!("unrecognized descriptor: {text}"));
    };
    if is_duration(duration) {
        return Ok(());
    }
    let quoted = kubernetes_types::quoting::quote(duration);
    Err(format!("failed to parse duration {text}: time: invalid duration {quoted}"))
}

/// Returns whether Go can parse a string as a duration.
fn is_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let is_number = |character: char| character.is_ascii_digit() || character == '.';
        let after = rest.trim_start_matches(is_number);
        let number = rest.strip_suffix(after).unwrap_or_default();
        if number.parse::<f64>().is_err() {
            return false;
        }
        let unit = ["ns", "us", "µs", "μs", "ms", "s", "m", "h"]
            .into_iter()
            .find_map(|unit| after.strip_prefix(unit));
        let Some(left) = unit else { return false };
        rest = left;
    }
    true
}

/// Parses `*`, a number, or a range, with an optional step.
///
/// Source: github.com/robfig/cron/v3 parser.go, `getRange`.
fn range(text: &str, field: &Field) -> Result<(), String> {
    let mut parts = text.split('/');
    let bounds = parts.next().unwrap_or_default();
    let step = parts.next();
    let mut ends = bounds.split('-');
    let first = ends.next().unwrap_or_default();
    let last = ends.next();
    let is_too_long = ends.next().is_some();
    let (start, mut end) = if matches!(first, "*" | "?") {
        (field.least, field.most)
    } else {
        let start = value(first, field)?;
        let end = match last {
            _ if is_too_long => return Err(format!("too many hyphens: {text}")),
            None => start,
            Some(last) => value(last, field)?,
        };
        (start, end)
    };
    let mut by = 1;
    if let Some(step) = step {
        if parts.next().is_some() {
            return Err(format!("too many slashes: {text}"));
        }
        by = number(step)?;
        // A single number with a step means the range from this number to the maximum.
        if last.is_none() {
            end = field.most;
        }
    }
    if start < field.least {
        return Err(format!("beginning of range ({start}) below minimum ({}): {text}", field.least));
    }
    if end > field.most {
        return Err(format!("end of range ({end}) above maximum ({}): {text}", field.most));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {text}"));
    }
    if by == 0 {
        return Err(format!("step of range should be a positive number: {text}"));
    }
    Ok(())
}

fn value(text: &str, field: &Field) -> Result<u32, String> {
    let lower = text.to_lowercase();
    match field.names.iter().position(|name| *name == lower) {
        Some(index) => Ok(u32::try_from(index).unwrap_or(0) + field.least),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u32, String> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let quoted = kubernetes_types::quoting::quote(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!(
            "failed to parse int from {text}: strconv.Atoi: parsing {quoted}: invalid syntax"
        ));
    }
    match text.parse::<i64>() {
        Ok(number) if number < 0 => Err(format!("negative number ({number}) not allowed: {text}")),
        // A larger number exceeds every maximum.
        Ok(number) => Ok(u32::try_from(number).unwrap_or(u32::MAX)),
        Err(_) => Err(format!(
            "failed to parse int from {text}: strconv.Atoi: parsing {quoted}: value out of range"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_parsed_like_cron() {
        for sound in
            ["* * * * *", "*/5 1-3 ? JAN,feb sun", "@daily", "@every 1h30m", "0 0 1 1 1-5/2", "1/2 * * * *"]
        {
            assert_eq!(parse(sound), Ok(()), "{sound}");
        }
        for (wrong, why) in [
            ("a", "expected exactly 5 fields, found 1: [a]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("5-3 * * * *", "beginning of range (5) beyond end of range (3): 5-3"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("x * * * *", "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"),
            ("@often", "unrecognized descriptor: @often"),
        ] {
            assert_eq!(parse(wrong), Err(why.to_owned()), "{wrong}");
        }
    }
}
