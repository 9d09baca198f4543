//! Runs admit as `kube-apiserver`.

mod certificates;
mod service_ranges;
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

/// The deprecated flags and their messages.
///
/// Source: kubernetes cmd/kube-apiserver/app/options/options.go, pkg/kubeapiserver/options/admission.go; apiserver
/// `pkg/server/options`.
const DEPRECATED: [(&str, &str); 6] = [
    (
        "admission-control",
        "Use --enable-admission-plugins or --disable-admission-plugins instead. Will be removed in a future version.",
    ),
    ("apiserver-count", "apiserver-count is deprecated and will be removed in a future version."),
    ("audit-webhook-batch-initial-backoff", "Deprecated, use --audit-webhook-initial-backoff instead."),
    (
        "default-watch-cache-size",
        "Watch caches are sized automatically. This flag is no-op and it will be removed in a future version.",
    ),
    ("kubelet-port", "kubelet-port is deprecated and will be removed."),
    ("kubelet-read-only-port", "kubelet-read-only-port is deprecated and will be removed."),
];

/// Runs admit as kube-apiserver.
///
/// The exit status of an error is 1, as in kube-apiserver, except 5 for features that admit does not support.
///
/// Source: component-base cli/run.go; the messages of kube-apiserver 1.37.1.
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
    for (name, message) in DEPRECATED.iter().filter(|(name, _)| values.last(name).is_some()) {
        screen::status!("Flag --{name} has been deprecated, {message}");
    }
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
    let (running, certificate) = settings.running((values, values.shown(table)), socket, traces, log)?;
    if let Some(path) = certificate {
        log.info(&format!("generated a certificate and its key: {}", path.display()));
    }
    Running::until(running, &mut signals, || log.info(&format!("serving on {address}"))).await
}

/// Returns whether a flag has a value other than the empty string, false, or zero.
fn is_changed(values: &Values, name: &str) -> bool {
    values.text(name).is_some_and(|value| flags::boolean(value) != Some(false))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The names of the flags in `/flagz` of kube-apiserver 1.37.1.
    const RECORDED: &str = include_str!("../../../../harness/api-server/src/endpoints/documents/flagz.txt");

    #[test]
    fn each_flag_of_kube_apiserver_is_known() {
        let names = |text: &'static str| -> BTreeSet<&str> {
            let lines = text.lines().filter(|line| !line.starts_with(['#', '[']) && !line.is_empty());
            lines.filter_map(|line| line.split(' ').next()).filter(|name| *name != "help").collect()
        };
        assert_eq!(names(RECORDED), names(FLAGS));
    }

    #[test]
    fn only_flags_that_change_permissions_are_unsupported() {
        let unsupported = FLAGS.lines().filter_map(|line| line.strip_suffix(" unsupported"));
        let names: Vec<&str> = unsupported.filter_map(|line| line.split(' ').next()).collect();
        assert_eq!(
            names,
            [
                "authentication-config",
                "authentication-token-webhook-config-file",
                "enable-bootstrap-token-auth",
                "oidc-issuer-url",
                "requestheader-client-ca-file",
                "authorization-config",
                "authorization-policy-file",
                "authorization-webhook-config-file",
                "service-account-signing-endpoint",
            ]
        );
    }

    #[test]
    fn deprecated_flags_are_known() {
        let table = Table::read(FLAGS, Syntax::Pflag);
        for (name, _) in DEPRECATED {
            let parsed = table.parse([format!("--{name}=1")]);
            assert!(
                matches!(parsed, Ok(Parsed::Run(_))) || name == "audit-webhook-batch-initial-backoff",
                "{name}"
            );
        }
    }
}
