//! Reports the progress of long commands on standard error: a bar on a terminal, otherwise a line every few seconds.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::time::Instant;

use crate::screen;

/// The interval between lines if no bar is drawn, such as in the log of a CI workflow.
const PERIOD: Duration = Duration::from_secs(10);
/// The interval between frames of the spinner.
const TICK: Duration = Duration::from_millis(120);

/// Reports the progress of one command. Dropping it removes the bar.
#[derive(Debug)]
pub(crate) struct ProgressReporter {
    form: Form,
    /// The progress bar. It also estimates the remaining time, and is hidden if the reporter does not draw it.
    bar: ProgressBar,
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Quiet,
    Bar,
    Lines,
}

#[derive(Debug)]
struct State {
    /// The activity of the command.
    activity: String,
    /// The time at which the next line is due.
    next: Instant,
}

impl ProgressReporter {
    /// Creates a reporter that draws nothing before the first report.
    pub(crate) fn new(is_quiet: bool) -> Self {
        let form = match (is_quiet, screen::redraws()) {
            (true, _) => Form::Quiet,
            (false, true) => Form::Bar,
            (false, false) => Form::Lines,
        };
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let bar = if form == Form::Bar { screen::bars().add(bar) } else { bar };
        let state = State { activity: String::new(), next: Instant::now() + PERIOD };
        Self { form, bar, state: Mutex::new(state) }
    }

    /// Reports that `done` of `total` parts of `activity` are complete; `detail` is appended to the line.
    ///
    /// The estimated remaining time is the time for this activity only.
    pub(crate) fn report(&self, activity: &str, done: u64, total: Option<u64>, detail: &str) {
        if self.form == Form::Quiet {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.activity != activity {
            activity.clone_into(&mut state.activity);
            self.begin(total);
        }
        self.bar.set_position(done);
        let left = total.filter(|total| is_estimable(done, *total)).map(|_| self.bar.eta());
        let text = line(activity, done, total, left.filter(|left| !left.is_zero()), detail);
        let now = Instant::now();
        if self.form == Form::Bar {
            self.bar.set_message(text);
        } else if now >= state.next {
            state.next = now + PERIOD;
            screen::print_status(&text);
        }
    }

    /// Removes the progress bar.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn begin(&self, total: Option<u64>) {
        let template = match total {
            Some(_) => "{spinner} [{bar:20}] {wide_msg}",
            None => "{spinner} {wide_msg}",
        };
        // Before the other calls, which draw the bar.
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style.progress_chars("=> ").tick_chars("-\\|/ "));
        }
        self.bar.reset();
        if let Some(total) = total {
            self.bar.set_length(total);
        }
        if self.form == Form::Bar {
            self.bar.enable_steady_tick(TICK);
        }
    }
}

impl Drop for ProgressReporter {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Returns whether enough parts are complete to estimate the remaining time. The first parts are the slowest.
fn is_estimable(done: u64, total: u64) -> bool {
    done >= total.div_ceil(10) && done < total
}

fn line(activity: &str, done: u64, total: Option<u64>, left: Option<Duration>, detail: &str) -> String {
    let of = total.map(|total| format!(" ({done} of {total})")).unwrap_or_default();
    let left = left.map(|left| format!(", {} left for this step", about(left))).unwrap_or_default();
    let detail = if detail.is_empty() { String::new() } else { format!(": {detail}") };
    output::one_line(&format!("{activity}{of}{left}{detail}")).into_owned()
}

/// Formats an estimated duration, such as `about 40 s` or `about 3 min`.
fn about(left: Duration) -> String {
    match left.as_secs() {
        seconds @ 0..=9 => format!("about {} s", seconds + 1),
        seconds @ 10..=89 => format!("about {} s", seconds.div_ceil(10) * 10),
        seconds @ 90..=5399 => format!("about {} min", seconds.div_ceil(60)),
        seconds @ 5400..=359_999 => format!("about {} h", seconds.div_ceil(3600)),
        _ => "more than 100 h".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_rounded() {
        for (seconds, expected) in [
            (0, "about 1 s"),
            (9, "about 10 s"),
            (11, "about 20 s"),
            (90, "about 2 min"),
            (5400, "about 2 h"),
            (u64::MAX, "more than 100 h"),
        ] {
            assert_eq!(about(Duration::from_secs(seconds)), expected);
        }
    }

    #[test]
    fn a_line_names_the_activity_the_parts_and_the_time_left() {
        let left = Some(Duration::from_secs(35));
        assert_eq!(
            line("trying objects", 3, Some(12), left, "9 calls"),
            "trying objects (3 of 12), about 40 s left for this step: 9 calls"
        );
        assert_eq!(line("waiting for \u{1b}[2J", 0, None, None, ""), r"waiting for \u{1b}[2J");
    }

    #[test]
    fn time_left_is_estimated_after_a_tenth() {
        let estimable: Vec<u64> = (0..=20).filter(|done| is_estimable(*done, 20)).collect();
        assert_eq!(estimable, (2..20).collect::<Vec<_>>());
    }

    /// A terminal that keeps what is written to it.
    #[derive(Clone, Debug, Default)]
    struct Screen(std::sync::Arc<Mutex<String>>);

    impl indicatif::TermLike for Screen {
        fn width(&self) -> u16 {
            80
        }
        fn move_cursor_up(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn write_line(&self, line: &str) -> std::io::Result<()> {
            self.write_str(line)
        }
        fn write_str(&self, text: &str) -> std::io::Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> std::io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn every_frame_has_the_style_of_the_reporter() {
        let screen = Screen::default();
        let mut reporter = ProgressReporter::new(true);
        reporter.form = Form::Bar;
        reporter.bar.set_draw_target(ProgressDrawTarget::term_like(Box::new(screen.clone())));
        reporter.report("reading the configurations", 0, None, "");
        reporter.report("trying objects", 1, Some(2), "");
        reporter.bar.tick();
        reporter.finish();
        let drawn = screen.0.lock().unwrap().clone();
        assert!(drawn.contains("] trying objects (1 of 2)"), "{drawn}");
        assert!(!drawn.contains(['\u{2588}', '\u{2591}']) && !drawn.contains("0/0"), "{drawn}");
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_terminal_a_line_is_due_after_each_period() {
        // Standard error of a test may be a terminal.
        let mut reporter = ProgressReporter::new(false);
        reporter.form = Form::Lines;
        let next = |reporter: &ProgressReporter| reporter.state.lock().unwrap().next;
        let first = next(&reporter);
        assert_eq!(first, Instant::now() + PERIOD);
        reporter.report("trying objects", 1, Some(2), "");
        assert_eq!(next(&reporter), first);
        tokio::time::advance(PERIOD).await;
        reporter.report("trying objects", 1, Some(2), "");
        assert_eq!(next(&reporter), first + PERIOD);
    }
}
