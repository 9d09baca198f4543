//! Defines the styles of results on the terminal.

use std::time::Duration;

use anstyle::{AnsiColor, Style};

/// The style of passed scenarios and steps, and of additions.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// The style of failed scenarios and steps, of errors, and of removals.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// The style of scenarios and steps that were not checked.
pub(crate) const NOT_DONE: Style = AnsiColor::Yellow.on_default();
/// The style of secondary details.
pub(crate) const FAINT: Style = Style::new().dimmed();

/// Formats a duration such as `12 ms` or `1.4 s`.
pub(crate) fn brief(duration: Duration) -> String {
    if duration < Duration::from_secs(1) {
        format!("{} ms", duration.as_millis())
    } else {
        format!("{:.1} s", duration.as_secs_f64())
    }
}
