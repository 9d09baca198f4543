//! Provides the `admit` command as a library, so that other tools in this workspace can use its targets.

mod admission_control;
mod admission_kinds;
mod admission_plugins;
mod assets;
mod baseline;
mod ca_bundle;
mod cel;
mod certs;
mod check_help;
mod cluster_client;
mod component_config;
mod connection_advice;
mod delivery;
mod diagnostic;
mod documents;
pub mod exit_code;
mod explain_error;
mod failure_cause;
mod fakes;
mod field_lines;
mod github;
#[cfg(test)]
mod hostile;
mod html_report;
mod junit;
mod lint;
mod machine_readable;
mod markdown;
mod narrator;
mod policy_outcome;
mod progress;
mod pull;
mod report_file;
mod request_report;
mod review;
mod run;
mod screen;
mod serve;
mod service_map;
mod similar_file;
mod skip_reason;
mod static_manifests;
mod steps;
mod style;
pub mod target;
#[doc(hidden)]
pub mod testing;
mod tls_advice;
mod unbound_policies;
mod unknown_fields;
mod unmatched_rules;
mod v1beta1;
mod verdict;
mod verify;
mod yaml_types;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Parser, Subcommand};

use crate::exit_code::{ExitCode, Failure};

/// Test admission webhooks as kube-apiserver calls them, without a cluster.
#[derive(Debug, Parser)]
#[command(name = "admit", version, after_help = exit_code::TABLE)]
struct Admit {
    #[command(subcommand)]
    command: Command,

    /// Choose when to use colors; `auto` uses them on a terminal unless NO_COLOR or CLICOLOR=0 is set
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value = "auto")]
    color: Color,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Run),
    Review(review::Review),
    Pull(pull::Pull),
    Steps(run::Steps),
    Fakes(fakes::Fakes),
    Verify(Box<verify::Verify>),
    Lint(lint::Lint),
    Serve(Box<serve::Serve>),
    Assets(assets::Assets),
    Report(html_report::ReportCommand),
    Cel(cel::Cel),
    ExplainError(explain_error::ExplainError),
    Certs(certs::Certs),
}

/// Runs the command line, or the program `kube-apiserver` or `etcd` if invoked by that name.
///
/// `admit run` without paths runs the `shipped` feature files, each with its path and text.
pub fn main(shipped: &[(&str, &str)]) -> std::process::ExitCode {
    let mut words = std::env::args_os();
    if let Some(program) = words.next().and_then(|name| assets::Program::from_name(&name)) {
        return program.run(words.map(|word| word.to_string_lossy().into_owned()));
    }
    let admit = match Admit::try_parse() {
        Ok(admit) => admit,
        Err(error) => return explain_usage(&error),
    };
    match admit.color {
        Color::Auto => anstream::ColorChoice::Auto,
        Color::Always => anstream::ColorChoice::Always,
        Color::Never => anstream::ColorChoice::Never,
    }
    .write_global();
    let outcome = exit_code::with_runtime(async {
        if matches!(
            admit.command,
            Command::Review(_)
                | Command::Pull(_)
                | Command::Steps(_)
                | Command::Lint(_)
                | Command::Cel(_)
                | Command::ExplainError(_)
                | Command::Certs(_)
                | Command::Assets(_)
                | Command::Report(_)
        ) {
            exit_code::end_on_signals_as_init()?;
        }
        match admit.command {
            Command::Run(run) => run.run(shipped).await,
            Command::Review(review) => review.run().await,
            Command::Pull(pull) => pull.run().await,
            Command::Steps(steps) => steps.run(),
            Command::Fakes(fakes) => fakes.run().await,
            Command::Verify(verify) => verify.run().await,
            Command::Lint(lint) => lint.run(),
            Command::Serve(serve) => serve.run().await,
            Command::Assets(assets) => assets.run(),
            Command::Report(report) => report.run(),
            Command::Cel(cel) => cel.run(),
            Command::ExplainError(explain) => explain.run(),
            Command::Certs(certs) => certs.run(),
        }
    });
    match outcome {
        Ok(code) => code.into(),
        Err(failure) => {
            screen::report(&failure);
            failure.code.into()
        }
    }
}

/// Prints the error in the command line, or the requested help or version.
fn explain_usage(error: &clap::Error) -> std::process::ExitCode {
    let mut text = error.render().ansi().to_string();
    if error.use_stderr() {
        let command = std::env::args().skip(1).find(|word| !word.starts_with('-')).unwrap_or_default();
        if command == "version" {
            "error: unrecognized subcommand 'version'".clone_into(&mut text);
        }
        if let Some(tip) = tip(error, &command) {
            text = format!("{}\n\n  tip: {tip}\n", text.trim_end());
        }
        screen::prompt(&text);
        return ExitCode::Usage.into();
    }
    match screen::print(&text) {
        Ok(()) => ExitCode::Ok.into(),
        Err(failure) => {
            screen::report(&failure);
            failure.code.into()
        }
    }
}

/// Returns advice for an invalid command line.
fn tip(error: &clap::Error, command: &str) -> Option<String> {
    match command {
        "version" => Some("`admit --version` prints the version".to_owned()),
        "explain-error" if error.kind() == ErrorKind::MissingRequiredArgument => {
            Some("pass a message, or -f - to read messages from standard input".to_owned())
        }
        command => file_tip(error, command),
    }
}

/// Returns advice for a file that the user passed to `command` without an option: the option to use.
fn file_tip(error: &clap::Error, command: &str) -> Option<String> {
    let given = [ContextKind::InvalidSubcommand, ContextKind::InvalidValue, ContextKind::InvalidArg];
    let file = given.into_iter().find_map(|kind| match error.get(kind) {
        Some(ContextValue::String(text)) if is_file(text) => Some(output::one_line(text).into_owned()),
        _ => None,
    })?;
    let (what, option) = match command {
        "verify" | "cel" => ("pass webhook configurations with -c, and objects with -f", "-c"),
        "lint" => ("pass webhook configurations with -c", "-c"),
        "review" => ("pass objects with -f, and webhook configurations with -c", "-f"),
        "fakes" => ("pass the fakes file with -f", "-f"),
        _ => return None,
    };
    Some(format!("{what}: admit {command} {option} {file}"))
}

/// Returns whether a word on the command line has the extension of a manifest or names an existing file.
fn is_file(word: &str) -> bool {
    let is_manifest = [".yaml", ".yml", ".json"].iter().any(|ending| word.ends_with(ending));
    !word.starts_with('-') && (is_manifest || std::path::Path::new(word).is_file())
}

/// Returns the name of this host.
fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
