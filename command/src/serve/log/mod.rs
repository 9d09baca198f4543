//! Writes the log of `admit serve` to standard error.

mod slow_requests;

use harness::trace_log::{Detail, Logged};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tracing_subscriber::layer::SubscriberExt as _;

use self::slow_requests::SlowRequests;
pub(super) use self::slow_requests::is_traced;
use super::traces::Traces;
use crate::Failure;
use crate::static_manifests::Change;

/// The format and verbosity of the log.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct LogFlags {
    /// Write the log on standard error in this format: text, or one JSON object per line with `ts`, `level`, and `msg`
    #[arg(long, visible_alias = "logging-format", value_enum, value_name = "FORMAT", default_value = "text")]
    log_format: Format,
    /// Set the log verbosity as in kube-apiserver. At level 2 and above, requests that take longer than 500 ms are
    /// logged with their webhook calls; at level 4 and above, with all steps. kube-apiserver's default is 0
    #[arg(short, long = "v", value_name = "LEVEL", default_value_t = 2)]
    verbosity: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

impl LogFlags {
    /// Creates the flags for a log format and a verbosity.
    pub(crate) fn new(is_json: bool, verbosity: u8) -> Self {
        Self { log_format: if is_json { Format::Json } else { Format::Text }, verbosity }
    }

    /// Creates the log, and installs a panic hook that writes panics to it if the format is JSON.
    pub(crate) fn start(self) -> Log {
        let log = Log(self.log_format);
        if log.0 == Format::Json {
            std::panic::set_hook(Box::new(move |panic| log.error(&panic.to_string())));
        }
        log
    }

    /// Logs slow requests and exports spans from now on.
    ///
    /// # Errors
    /// Returns an error if another subscriber of `tracing` is already set in this process.
    pub(crate) fn watch_requests(self, log: Log, traces: &Traces) -> Result<(), Failure> {
        let detail = match self.verbosity {
            0..2 => None,
            2..4 => Some(Detail::Slow),
            4.. => Some(Detail::All),
        };
        let slow_requests = detail.map(|detail| {
            SlowRequests::new(detail, move |request: &Logged| log.slow_request(request)).layer()
        });
        let exported = traces.layer();
        if slow_requests.is_none() && exported.is_none() {
            return Ok(());
        }
        tracing::subscriber::set_global_default(
            tracing_subscriber::registry().with(slow_requests).with(exported),
        )
        .map_err(|error| Failure::environment(format!("cannot set up the log of slow requests: {error}")))
    }
}

/// Writes log lines to standard error as text or JSON.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Log(Format);

/// The log in text format, for servers whose log format is not configured.
pub(crate) const TEXT: Log = Log(Format::Text);

impl Log {
    /// Returns whether the log format is JSON.
    pub(crate) fn is_json(self) -> bool {
        self.0 == Format::Json
    }

    /// Logs a message at info level.
    pub(crate) fn info(self, message: &str) {
        match self.0 {
            Format::Text => crate::screen::status!("admit serve: {message}"),
            Format::Json => write(&line("info", message, Map::new())),
        }
    }

    /// Logs a message at warning level.
    pub(crate) fn warning(self, message: &str) {
        match self.0 {
            Format::Text => self.info(&output::one_line(message)),
            Format::Json => write(&line("warning", message, Map::new())),
        }
    }

    /// Logs the result of a change in a manifest directory.
    pub(crate) fn change(self, change: Change, message: &str) {
        match (self.0, change) {
            (_, Change::Applied) | (Format::Text, Change::Failed) => self.info(message),
            (Format::Json, Change::Failed) => write(&line("error", message, Map::new())),
        }
    }

    /// Logs a message at error level.
    pub(crate) fn error(self, message: &str) {
        match self.0 {
            Format::Text => crate::screen::status!("error: {}", output::lines(message)),
            Format::Json => write(&line("error", message, Map::new())),
        }
    }

    /// Logs the failure that ends the command.
    pub(crate) fn failure(self, failure: &Failure) {
        match self.0 {
            Format::Text => self.error(&failure.to_string()),
            Format::Json => {
                let fields = Map::from_iter([("exitCode".to_owned(), json!(failure.code as u8))]);
                write(&line("error", &failure.to_string(), fields));
            }
        }
    }

    fn slow_request(self, request: &Logged) {
        match self.0 {
            Format::Text => {
                // 31 bits, as upstream.
                let number = uuid::Uuid::new_v4().as_fields().0 >> 1;
                self.info(&request.text(number));
            }
            Format::Json => {
                let fields = Map::from_iter([("trace".to_owned(), request.document())]);
                write(&line("info", "slow request", fields));
            }
        }
    }
}

/// A line of the log in JSON format.
#[derive(Serialize)]
struct Line<'a> {
    ts: String,
    level: &'a str,
    msg: &'a str,
    #[serde(flatten)]
    fields: Map<String, Value>,
}

fn line<'a>(level: &'a str, msg: &'a str, fields: Map<String, Value>) -> Line<'a> {
    Line { ts: Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string(), level, msg, fields }
}

fn write(line: &Line<'_>) {
    // Cannot fail, because the members are strings and JSON values.
    let line = serde_json::to_string(line).unwrap_or_default();
    crate::screen::status!("{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_json_begins_with_the_time() {
        let fields = Map::from_iter([("exitCode".to_owned(), json!(2))]);
        let text = serde_json::to_string(&line("error", "a\nb", fields)).unwrap();
        let (time, rest) = text.split_once(',').unwrap();
        let time = time.strip_prefix("{\"ts\":\"").and_then(|time| time.strip_suffix('"')).unwrap();
        time.parse::<Timestamp>().unwrap();
        assert_eq!(rest, r#""level":"error","msg":"a\nb","exitCode":2}"#);
    }
}
