//! `admit explain-error`: explains errors from kube-apiserver about webhooks.

mod causes;
mod explanation;
mod messages;
mod narrowed;
mod pattern;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anstyle::Style;

pub(crate) use self::explanation::WebhookPlace;
use self::explanation::{Explanation, Explanations};
use crate::check_help::documentation;
use crate::diagnostic::several;
use crate::{ExitCode, Failure, documents, screen};

/// Explain a kube-apiserver error about a webhook or an admission policy.
///
/// Reads an error message from kubectl or a log, and prints which webhook failed or which admission policy denied the
/// request. Also prints common causes, commands for diagnosis, the faults of `admit fakes` that reproduce the error, and
/// the log lines that contain it. Works offline.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExplainError {
    /// Explain this message; several words are one message
    #[arg(value_name = "MESSAGE", required_unless_present = "files", conflicts_with = "files")]
    message: Vec<String>,
    /// Read messages, logs, or a Status as JSON from these files, or - for standard input
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print explanations in this format; json prints a list
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value = "text")]
    output: Output,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Output {
    Text,
    Json,
}

const EXAMPLES: &str = "\
Examples:
  admit explain-error 'failed calling webhook \"a.example.com\": failed to call webhook: Post
    \"https://hook.apps.svc:443/?timeout=10s\": context deadline exceeded'
  kubectl apply -f pod.yaml 2>&1 | admit explain-error -f -
  admit explain-error -f kube-apiserver.log -o json

Exit status: 0 if a message is recognized, 1 otherwise, 2 if the command line or an input file is invalid.";

/// The maximum number of printed messages whose cause is unknown.
const MAX_UNKNOWN: usize = 5;
/// The maximum number of lines to print as text.
const MAX_LINES: usize = 5;
/// The maximum number of faults to print as text.
const MAX_FAULTS: usize = 3;

impl ExplainError {
    /// Explains the messages on the command line and in the files.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read.
    pub(crate) fn run(&self) -> Result<ExitCode, Failure> {
        let Explanations { known: mut explanations, mut unknown } =
            explanation::explain(&self.message.join(" "), None);
        let mut unknown: Vec<String> = unknown.drain(..).map(|message| message.text).collect();
        for path in &self.files {
            let text = read(path)?;
            let shown = documents::name(path);
            // The line of a single message is obvious.
            let file = (text.lines().count() > 1).then_some(shown.as_str());
            let found = explanation::explain(&text, file);
            explanations.extend(found.known);
            unknown.extend(found.unknown.into_iter().map(|message| match file {
                Some(file) => format!("{file}:{}: {}", message.line, message.text),
                None => message.text,
            }));
        }
        match self.output {
            Output::Json => {
                let list = serde_json::to_string_pretty(&explanations).map_err(Failure::usage)?;
                screen::print_document(&format!("{}\n", output::json(&list)))?;
            }
            Output::Text => {
                screen::print(&explanations.iter().map(text).collect::<Vec<_>>().join("\n"))?;
            }
        }
        for message in unknown.iter().take(MAX_UNKNOWN) {
            screen::status!("unknown cause: {}", output::one_line(message));
        }
        if let Some(more) = unknown.len().checked_sub(MAX_UNKNOWN).filter(|more| *more > 0) {
            screen::status!("and {}", several(more, "more message"));
        }
        if explanations.is_empty() && unknown.is_empty() {
            screen::status!("no error about a webhook or an admission policy in the input");
            screen::status!("if the API server rejects a configuration, `admit lint -c FILE` explains it");
        }
        if explanations.is_empty() || !unknown.is_empty() {
            screen::status!("known causes: {}", documentation!("reference/faults.md#find-an-error"));
        }
        Ok(if explanations.is_empty() { ExitCode::Failed } else { ExitCode::Ok })
    }
}

/// The advice about an error message, for commands other than `admit explain-error`.
#[derive(Debug)]
pub(crate) struct Advice {
    /// Why the request failed, and how the failure policy applied.
    pub(crate) why: String,
    common_causes: Vec<String>,
    /// Whether a conversion webhook failed.
    pub(crate) is_about_conversion: bool,
    /// The admission policy that denied the request, with its binding.
    pub(crate) policy: Option<String>,
}

impl Advice {
    /// Returns the cause, or the common causes with numbers; empty if none is known.
    pub(crate) fn help(&self) -> String {
        one_or_numbered(&self.common_causes)
    }
}

/// Returns the only cause, or all causes with numbers, because a cause can be a long sentence.
fn one_or_numbered(causes: &[String]) -> String {
    match causes {
        [] => String::new(),
        [only] => only.clone(),
        several => {
            let numbered = several.iter().zip(1..).map(|(cause, number)| format!("({number}) {cause}"));
            format!("common causes: {}", numbered.collect::<Vec<_>>().join("; "))
        }
    }
}

/// Returns the advice about an error message of kube-apiserver, or `None` if the cause is not known.
///
/// `place` is where the webhook runs, if the message does not show it.
pub(crate) fn advice(message: &str, place: WebhookPlace) -> Option<Advice> {
    let found = explanation::explain_message_at(message, place)?;
    // A meaning without a period ends with a part of the message, which the reader has seen.
    let meaning = if found.meaning.ends_with('.') { &*found.meaning } else { "" };
    Some(Advice {
        why: format!("{meaning} {}", found.consequence).trim().to_owned(),
        common_causes: found.usually,
        is_about_conversion: found.converts.is_some(),
        policy: found.policy.map(|policy| match found.binding {
            Some(binding) => format!("{policy} (binding {binding})"),
            None => policy,
        }),
    })
}

/// Explains an error response whose body could not be read, because kube-apiserver's error does not contain its status.
///
/// Returns `None` if `reason` is not about the body, or if the status is not an error.
pub(crate) fn unread_response(status: Option<u16>, reason: &str, place: WebhookPlace) -> Option<String> {
    let status = status.filter(|status| *status >= 400)?;
    if !reason.contains("unexpected error when reading response body") {
        return None;
    }
    let mut text = format!("the webhook responded with status {status}, but its body could not be read");
    let causes = one_or_numbered(explanation::causes_of_status(status, place));
    if !causes.is_empty() {
        let _ = write!(text, "; {causes}");
    }
    Some(text)
}

fn read(path: &Path) -> Result<String, Failure> {
    let shown = documents::name(path);
    let bytes = output::read(path).map_err(|error| Failure::usage(format!("{shown}: {error}")))?;
    documents::text(bytes, shown)
}

/// Formats an explanation as text; escape sequences in messages are escaped.
fn text(explanation: &Explanation) -> String {
    const BOLD: Style = Style::new().bold();
    const REPRODUCE: &str = "Reproduce it with `admit fakes`";
    let Explanation {
        count,
        file,
        lines,
        webhook,
        policy,
        binding,
        converts,
        url,
        service,
        cause,
        meaning,
        ..
    } = explanation;
    let mut text = format!("{BOLD}{cause}{BOLD:#}: {}\n", output::one_line(meaning));
    let mut about = Vec::new();
    if let Some(webhook) = webhook {
        about.push(format!("webhook {}", output::one_line(webhook)));
    }
    if let Some(policy) = policy {
        about.push(format!("policy {}", output::one_line(policy)));
    }
    if let Some(binding) = binding {
        about.push(format!("binding {}", output::one_line(binding)));
    }
    if let Some(converts) = converts {
        about.push(format!("conversion webhook for {}", output::one_line(converts)));
    }
    // A host that cannot be resolved comes from a URL, even if it is the name of a Service.
    if let Some(service) = service.as_ref().filter(|_| *cause != "unknown-host") {
        about.push(format!("Service {}/{} port {}", service.namespace, service.name, service.port));
    } else if let Some(url) = url {
        about.push(output::one_line(url).to_string());
    }
    if *count > 1 {
        about.push(format!("{count} times"));
    }
    if !about.is_empty() {
        let _ = writeln!(text, "  {}", about.join(", "));
    }
    if let Some(file) = file {
        let shown: Vec<String> = lines.iter().take(MAX_LINES).map(u64::to_string).collect();
        let more = count.saturating_sub(shown.len() as u64);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let _ = writeln!(text, "  {}:{}{more}", output::one_line(file), shown.join(", "));
    }
    let _ = writeln!(text, "  {}", explanation.consequence);
    let mut list = |title: &str, lines: &mut dyn Iterator<Item = String>| {
        let mut lines = lines.peekable();
        if lines.peek().is_some() {
            let _ = writeln!(text, "\n  {BOLD}{title}{BOLD:#}");
        }
        for line in lines {
            let _ = writeln!(text, "  - {line}");
        }
    };
    list("Common causes", &mut explanation.usually.iter().cloned());
    list("How to investigate", &mut explanation.look.iter().map(|line| output::one_line(line).to_string()));
    if let Some(behavior) = explanation.behavior {
        list(REPRODUCE, &mut std::iter::once(format!("behavior: {{{behavior}}}")));
        return text;
    }
    let faults = explanation.faults.iter().take(MAX_FAULTS);
    list(REPRODUCE, &mut faults.map(|fault| format!("fault: {:<18} {}", fault.id, fault.help)));
    let more: Vec<&str> = explanation.faults.iter().skip(MAX_FAULTS).map(|fault| fault.id).collect();
    if !more.is_empty() {
        let _ = writeln!(text, "  and {} more: {}; see `admit fakes list`", more.len(), more.join(", "));
    }
    text
}

#[cfg(test)]
mod tests;
