//! Logs slow requests with their slow spans and steps.

use std::fmt::Write as _;

use jiff::{SignedDuration, Zoned};
use kubernetes_types::quoting::{printed, quote};
use serde_json::{Map, Value, json};

use crate::audit::go_duration;

/// Returns the duration above which a span with this name is logged; `None` for spans that are never logged.
///
/// Source: apiserver `pkg/endpoints/handlers/{create,update,patch,delete}.go` and
/// `pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go`, `span.End`; apiextensions-apiserver
/// `pkg/apiserver/conversion/webhook_converter.go`, `Convert`: 50 ms plus 8 ms for each object. There is one object.
pub fn threshold(span: &str) -> Option<SignedDuration> {
    match span {
        "Create" | "Update" | "Patch" | "Delete" | "Call mutating webhook" | "Call validating webhook" => {
            Some(SignedDuration::from_millis(500))
        }
        "Call conversion webhook" => Some(SignedDuration::from_millis(58)),
        _ => None,
    }
}

/// The maximum number of spans and steps to keep per request. kube-apiserver does not have a limit.
const MAX_ITEMS: usize = 1000;

/// The level of detail for a logged span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "kube-apiserver tells no more and no less")]
pub enum Detail {
    /// Only spans and steps that exceed their time limit, as kube-apiserver logs with `-v=2` and above.
    Slow,
    /// All spans and steps, as kube-apiserver logs with `-v=4` and above.
    All,
}

/// The fields of a log entry: names and values, in log order.
pub type Fields = Vec<(String, Value)>;

/// A span with its nested spans and steps. Times are relative to the start of the outermost span.
///
/// Source: k8s.io/utils trace/trace.go, `Trace`.
#[derive(Clone, Debug)]
pub struct TraceLog {
    began: Zoned,
    spans: Vec<Span>,
    items: usize,
}

/// The index of a span in a [`TraceLog`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanIndex(usize);

#[derive(Clone, Debug)]
struct Span {
    name: String,
    fields: Fields,
    threshold: SignedDuration,
    started: SignedDuration,
    /// The time from the start of the log until the span ended; `None` while the span is running.
    ended: Option<SignedDuration>,
    /// Nested spans and steps, in the order in which they started.
    items: Vec<Item>,
}

#[derive(Clone, Debug)]
enum Item {
    Step { name: String, fields: Fields, at: SignedDuration },
    Span(SpanIndex),
}

impl Span {
    /// Returns whether the span has ended and reached its threshold.
    ///
    /// Source: k8s.io/utils trace/trace.go, `durationIsWithinThreshold`.
    fn is_slow(&self) -> bool {
        self.ended.is_some_and(|ended| ended - self.started >= self.threshold)
    }
}

impl TraceLog {
    /// Creates a log whose outermost span starts at `began`.
    pub fn new(began: Zoned, name: String, fields: Fields, threshold: SignedDuration) -> Self {
        let started = SignedDuration::ZERO;
        let span = Span { name, fields, threshold, started, ended: None, items: Vec::new() };
        Self { began, spans: vec![span], items: 0 }
    }

    /// Returns the outermost span.
    pub fn root(&self) -> SpanIndex {
        SpanIndex(0)
    }

    /// Adds a nested span; returns `None` if the log already has the maximum number of spans and steps.
    pub fn nest(
        &mut self,
        parent: SpanIndex,
        started: SignedDuration,
        name: String,
        fields: Fields,
        threshold: SignedDuration,
    ) -> Option<SpanIndex> {
        let index = SpanIndex(self.spans.len());
        self.push(parent, Item::Span(index))?;
        self.spans.push(Span { name, fields, threshold, started, ended: None, items: Vec::new() });
        Some(index)
    }

    /// Adds a step that ended at `at` to a span.
    pub fn step(&mut self, span: SpanIndex, at: SignedDuration, name: String, fields: Fields) {
        self.push(span, Item::Step { name, fields, at });
    }

    fn push(&mut self, span: SpanIndex, item: Item) -> Option<()> {
        if self.items >= MAX_ITEMS {
            return None;
        }
        self.items += 1;
        self.spans.get_mut(span.0)?.items.push(item);
        Some(())
    }

    /// Records that a span ended at `at`.
    pub fn end(&mut self, span: SpanIndex, at: SignedDuration) {
        if let Some(span) = self.spans.get_mut(span.0) {
            span.ended = Some(at);
        }
    }

    /// Returns the log entries. The outermost span must have ended.
    ///
    /// If the outermost span was slow, it is the only entry. Otherwise, each slow span that is not nested in another
    /// slow span is an entry.
    ///
    /// Source: k8s.io/utils trace/trace.go, `logTrace`.
    /// Rule: HTTP-33.
    pub fn logged(&self, detail: Detail) -> Vec<Logged> {
        let now = self.spans.first().and_then(|root| root.ended).unwrap_or_default();
        let writing = Writing { log: self, detail, now };
        let mut logged = Vec::new();
        writing.log_span(self.root(), &mut logged);
        logged
    }
}

/// A [`TraceLog`] that is being formatted, with the level of detail and the current time.
#[derive(Clone, Copy)]
struct Writing<'a> {
    log: &'a TraceLog,
    detail: Detail,
    now: SignedDuration,
}

impl Writing<'_> {
    fn log_span(self, index: SpanIndex, logged: &mut Vec<Logged>) {
        let Some(span) = self.log.spans.get(index.0) else { return };
        if span.is_slow() {
            let took = span.ended.unwrap_or(self.now) - span.started;
            logged.push(self.logged(span, took, self.items(span, self.share(span))));
            return;
        }
        for item in &span.items {
            if let Item::Span(nested) = item {
                self.log_span(*nested, logged);
            }
        }
    }

    fn logged(self, span: &Span, took: SignedDuration, items: Vec<Logged>) -> Logged {
        let at = self.time(span.started);
        let (name, fields) = (span.name.clone(), span.fields.clone());
        Logged { name, fields, at, took, items: Some(items) }
    }

    fn time(self, at: SignedDuration) -> Zoned {
        self.log.began.checked_add(at).unwrap_or_else(|_beyond_all_times| self.log.began.clone())
    }

    /// Returns the steps and nested spans of `span` to log; `share` is the time limit for a step.
    ///
    /// Source: k8s.io/utils trace/trace.go, `writeTraceSteps`.
    fn items(self, span: &Span, share: SignedDuration) -> Vec<Logged> {
        let mut last = span.started;
        let mut items = Vec::new();
        for item in &span.items {
            match item {
                Item::Step { name, fields, at } => {
                    let took = *at - last;
                    last = *at;
                    if took >= share || self.detail == Detail::All {
                        let (name, fields, at) = (name.clone(), fields.clone(), self.time(*at));
                        items.push(Logged { name, fields, at, took, items: None });
                    }
                }
                Item::Span(index) => {
                    let Some(nested) = self.log.spans.get(index.0) else { continue };
                    self.write_span(nested, &mut items);
                    last = nested.ended.unwrap_or(nested.started);
                }
            }
        }
        items
    }

    /// Adds a nested span. As upstream does, measures the span's duration until the log is written.
    ///
    /// Source: k8s.io/utils trace/trace.go, `Trace.writeItem` and `TotalTime`.
    fn write_span(self, span: &Span, items: &mut Vec<Logged>) {
        if span.is_slow() || self.detail == Detail::All {
            items.push(self.logged(span, self.now - span.started, self.items(span, self.share(span))));
            return;
        }
        for item in &span.items {
            if let Item::Span(index) = item
                && let Some(nested) = self.log.spans.get(index.0)
            {
                self.write_span(nested, items);
            }
        }
    }

    /// Returns the duration above which a step of a span is logged.
    ///
    /// Source: k8s.io/utils trace/trace.go, `calculateStepThreshold`.
    fn share(self, span: &Span) -> SignedDuration {
        let mut left = span.threshold;
        let mut shares = span.items.len() + 1;
        for item in &span.items {
            if let Item::Span(index) = item
                && let Some(nested) = self.log.spans.get(index.0)
            {
                left -= nested.threshold;
                shares -= 1;
            }
        }
        let least = span.threshold / 4;
        if left < least {
            (left, shares) = (least, span.items.len() + 1);
        }
        left / i32::try_from(shares).unwrap_or(i32::MAX)
    }
}

/// A span or a step in the log.
#[derive(Clone, Debug)]
pub struct Logged {
    name: String,
    fields: Fields,
    /// The time at which the span started or the step ended.
    at: Zoned,
    took: SignedDuration,
    /// The items of a span; `None` for a step.
    items: Option<Vec<Logged>>,
}

impl Logged {
    /// Formats the lines that kube-apiserver logs. Each line contains `number`; kube-apiserver chooses it at random.
    ///
    /// Source: k8s.io/utils trace/trace.go, `logTrace`.
    pub fn text(&self, number: u32) -> String {
        let milliseconds = self.took.as_millis();
        let mut text = format!("Trace[{number}]: {} ", quote(&self.name));
        write_fields(&mut text, &self.fields);
        // Writing to a String cannot fail.
        let _ =
            write!(text, "({}) (total time: {milliseconds}ms):", self.at.strftime("%d-%b-%Y %H:%M:%S%.3f"));
        self.write_items(&mut text, &format!("\nTrace[{number}]: "));
        let took = go_duration(self.took.unsigned_abs());
        text + &format!("\nTrace[{number}]: [{took}] [{took}] END")
    }

    fn write_items(&self, text: &mut String, line: &str) {
        for item in self.items.iter().flatten() {
            *text += line;
            *text += if item.items.is_some() { "[" } else { "---" };
            *text += &quote(&item.name);
            *text += " ";
            write_fields(text, &item.fields);
            let _ = write!(text, "{}ms ({})", item.took.as_millis(), item.at.strftime("%H:%M:%S%.3f"));
            if item.items.is_some() {
                item.write_items(text, &format!("{line} "));
                *text += "]";
            }
        }
    }

    /// Returns the entry as JSON with `name`, `time`, `milliseconds`, `fields`, and, for a span, `steps`.
    pub fn document(&self) -> Value {
        let fields: Map<String, Value> = self.fields.iter().cloned().collect();
        let mut document = json!({
            "name": self.name, "time": self.at.timestamp().to_string(),
            "milliseconds": i64::try_from(self.took.as_millis()).unwrap_or(i64::MAX), "fields": fields,
        });
        if let (Some(items), Some(members)) = (&self.items, document.as_object_mut()) {
            members.insert("steps".to_owned(), items.iter().map(Self::document).collect());
        }
        document
    }
}

/// Appends the fields to a log line, as comma-separated pairs of the form `name:value`.
///
/// Characters that would break a line are escaped, because clients choose the values; kube-apiserver does not escape
/// them.
fn write_fields(text: &mut String, fields: &Fields) {
    for (index, (name, value)) in fields.iter().enumerate() {
        let separator = if index == 0 { "" } else { "," };
        let _ = write!(text, "{separator}{name}:{}", output::one_line(&printed(value)));
    }
    if !fields.is_empty() {
        *text += " ";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(milliseconds: i64) -> SignedDuration {
        SignedDuration::from_millis(milliseconds)
    }

    fn began() -> Zoned {
        "2026-11-23T08:17:04.369[UTC]".parse().unwrap()
    }

    /// Returns the log of a create whose mutating webhook takes 602 ms and whose validating webhook takes 641 ms.
    fn create() -> TraceLog {
        let threshold = |name| threshold(name).unwrap();
        let fields = vec![("accept".to_owned(), json!("*/*")), ("verb".to_owned(), json!("POST\n"))];
        let mut log = TraceLog::new(began(), "Create".to_owned(), fields, threshold("Create"));
        let root = log.root();
        log.step(root, ms(0), "limitedReadBody succeeded".to_owned(), vec![("len".to_owned(), json!(25))]);
        for (name, started, completed, ended) in
            [("Call mutating webhook", 1, 602, 603), ("Call validating webhook", 604, 1244, 1245)]
        {
            let span = log.nest(root, ms(started), name.to_owned(), Vec::new(), threshold(name)).unwrap();
            log.step(span, ms(completed), "Request completed".to_owned(), Vec::new());
            log.end(span, ms(ended));
        }
        log.step(root, ms(1246), "Writing http response done".to_owned(), Vec::new());
        log.end(root, SignedDuration::from_micros(1_249_588));
        log
    }

    #[test]
    fn a_slow_request_is_logged_with_its_slow_steps() {
        let [logged] = &create().logged(Detail::Slow)[..] else { panic!("one request") };
        // Recorded from kube-apiserver 1.37.1 with -v=2, except for the fields and the milliseconds.
        let expected = r#"Trace[7]: "Create" accept:*/*,verb:POST\n (23-Nov-2026 08:17:04.369) (total time: 1249ms):
Trace[7]: ["Call mutating webhook" 1248ms (08:17:04.370)
Trace[7]:  ---"Request completed" 601ms (08:17:04.971)]
Trace[7]: ["Call validating webhook" 645ms (08:17:04.973)
Trace[7]:  ---"Request completed" 640ms (08:17:05.613)]
Trace[7]: [1.249588s] [1.249588s] END"#;
        assert_eq!(logged.text(7), expected);
        let document = logged.document();
        assert_eq!(document["fields"], json!({"accept": "*/*", "verb": "POST\n"}));
        assert_eq!(document["steps"][1]["name"], "Call validating webhook");
        assert_eq!(
            document["steps"][1]["steps"],
            json!([{"name": "Request completed", "fields": {}, "milliseconds": 640,
                "time": "2026-11-23T08:17:05.613Z"}])
        );
    }

    #[test]
    fn all_steps_are_logged_on_request() {
        let [logged] = &create().logged(Detail::All)[..] else { panic!("one request") };
        let text = logged.text(7);
        let steps: Vec<&str> = text.lines().filter(|line| line.contains("---")).collect();
        assert_eq!(
            steps,
            [
                r#"Trace[7]: ---"limitedReadBody succeeded" len:25 0ms (08:17:04.369)"#,
                r#"Trace[7]:  ---"Request completed" 601ms (08:17:04.971)]"#,
                r#"Trace[7]:  ---"Request completed" 640ms (08:17:05.613)]"#,
                r#"Trace[7]: ---"Writing http response done" 1ms (08:17:05.615)"#,
            ]
        );
    }

    #[test]
    fn quick_and_unfinished_spans_are_not_logged() {
        let mut log = TraceLog::new(began(), "Create".to_owned(), Vec::new(), ms(500));
        assert!(log.logged(Detail::All).is_empty());
        log.end(log.root(), ms(499));
        assert!(log.logged(Detail::All).is_empty());
    }

    #[test]
    fn only_the_slow_span_in_a_quick_one_is_logged() {
        let mut log = TraceLog::new(began(), "outer".to_owned(), Vec::new(), ms(5000));
        let nested = log.nest(log.root(), ms(1), "inner".to_owned(), Vec::new(), ms(500)).unwrap();
        log.end(nested, ms(701));
        log.end(log.root(), ms(702));
        let [logged] = &log.logged(Detail::Slow)[..] else { panic!("one span") };
        assert!(
            logged
                .text(1)
                .starts_with(r#"Trace[1]: "inner" (23-Nov-2026 08:17:04.370) (total time: 700ms):"#)
        );
    }

    #[test]
    fn the_number_of_recorded_steps_is_limited() {
        let mut log = TraceLog::new(began(), "Delete".to_owned(), Vec::new(), ms(500));
        let root = log.root();
        for _ in 0..2 * MAX_ITEMS {
            log.step(root, ms(1), "step".to_owned(), Vec::new());
        }
        assert_eq!(log.nest(root, ms(1), "late".to_owned(), Vec::new(), ms(500)), None);
        log.end(root, ms(501));
        assert_eq!(log.logged(Detail::All)[0].text(1).lines().count(), MAX_ITEMS + 2);
    }
}
