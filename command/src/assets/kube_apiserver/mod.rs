//! Runs admit as `kube-apiserver`.

mod certificates;
mod settings;

use std::path::Path;
use std::process::ExitCode;

use kubernetes_api_listener::Socket;

use super::flags::{self, Effect, Parsed, Syntax, Table, Values};
use crate::exit_code::{self, Failure};
use crate::screen;
use crate::serve::running::Running;
use crate::serve::traces::Traces;

use self::settings::Settings;

const FLAGS: &str = include_str!("flags.txt");

/// Runs admit as kube-apiserver.
///
/// The exit status of an error is 1, as in kube-apiserver, except 5 for features that admit does not support.
///
/// Source: component-base cli/run.go; the words of kube-apiserver 1.37.1.
pub(super) fn main(arguments: impl Iterator<Item = String>) -> ExitCode {
    let table = Table::read(FLAGS, Syntax::Pflag);
    let values = match table.parse(arguments) {
        Err(why) => {
            screen::status!("Error: {}", output::lines(&why));
            return ExitCode::FAILURE;
        }
        Ok(Parsed::Help) => {
            let about = "Serves the Kubernetes API as admit does: objects are kept in memory.";
            let help = format!("{about}\n\nUsage:\n  kube-apiserver [flags]\n{}", flags::help(FLAGS));
            return super::printed(&help);
        }
        Ok(Parsed::Run(values)) => values,
    };
    if values.last("version").is_some_and(|value| flags::boolean(value) != Some(false)) {
        return super::printed(&format!("Kubernetes v{}+admit\n", harness::KUBERNETES_VERSION));
    }
    if !values.arguments.is_empty() {
        let quoted: Vec<String> = values.arguments.iter().map(|text| harness::quoting::quote(text)).collect();
        let list = quoted.join(" ");
        screen::status!(
            "Error: \"kube-apiserver\" does not take any arguments, got [{}]",
            output::lines(&list)
        );
        return ExitCode::FAILURE;
    }
    super::finish(exit_code::with_runtime(serve(&table, &values)))
}

async fn serve(table: &Table, values: &Values) -> Result<exit_code::ExitCode, Failure> {
    if let Some(name) =
        table.with_effect(values, Effect::Unsupported).into_iter().find(|name| is_changed(values, name))
    {
        return Err(Failure::unsupported(format!("admit does not support this: --{name}")));
    }
    let settings = Settings::new(values)?;
    let log = settings.log.start();
    let ignored = table.with_effect(values, Effect::Ignored);
    if !ignored.is_empty() {
        log.info(&format!("these flags have no effect: --{}", ignored.join(", --")));
    }
    if let Some(servers) = values.text("etcd-servers") {
        log.info(&format!("objects are kept in memory, not in etcd at {servers}"));
    }
    // From now on, a signal stops the command cleanly, even before the first request.
    let mut signals = exit_code::install_signal_handlers(1)?;
    fake_webhooks::raise_open_file_limit();
    let socket = Socket::bind(settings.listen)?;
    let address = socket.address();
    let traces = Traces::start(values.text("tracing-config-file").map(Path::new), log)?;
    settings.log.watch_requests(log, &traces)?;
    let (running, certificate) = settings.running(values, socket, traces, log)?;
    if let Some(path) = certificate {
        log.info(&format!("generated a certificate and its key: {}", path.display()));
    }
    Running::until(running, &mut signals, || log.info(&format!("serving on {address}"))).await
}

/// Returns whether a flag has a value other than the empty string, false, or zero.
fn is_changed(values: &Values, name: &str) -> bool {
    values.text(name).is_some_and(|value| flags::boolean(value) != Some(false))
}
