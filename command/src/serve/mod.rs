//! `admit serve`: runs an API server without a cluster.

pub(crate) mod audit_file;
pub(crate) mod credential_flags;
pub(crate) mod kubeconfig;
mod limit_flags;
mod line_file;
mod log;
pub(crate) mod notices;
pub(crate) mod record_file;
pub(crate) mod running;
pub(crate) mod service_account_flags;
pub(crate) mod tokens;
pub(crate) mod traces;
pub(crate) mod ui;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use fake_webhooks::Fleet;
use harness::attributes::UserInfo;
use harness::server::{Advertised, AuthorizationMode, Controllers, Options, RequestObserver, ServiceRanges};
use kubernetes_api_listener::Socket;

use self::audit_file::{AuditFile, AuditFlags};
use self::credential_flags::CredentialFlags;
pub(crate) use self::kubeconfig::Kubeconfig;
use self::limit_flags::LimitFlags;
pub(crate) use self::log::{Log, LogFlags, TEXT};
use self::notices::Advice;
use self::record_file::{RecordFile, RecordFlags};
use self::running::Running;
use self::service_account_flags::ServiceAccountFlags;
use self::traces::{TraceFlags, Traces};
use self::ui::Ui;
use crate::admission_control::AdmissionControl;
use crate::admission_plugins::PluginFlags;
use crate::fakes::local;
use crate::request_report::line;
use crate::service_map::{self, ServiceMapping};
use crate::{ExitCode, Failure, exit_code, screen};

/// Start an API server that calls webhooks as kube-apiserver does.
///
/// Objects are kept in memory only. By default, requests need the random token in the kubeconfig.
#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    /// Listen on this address; port 0 uses a free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Allow --listen with an address that other hosts can reach
    #[arg(long)]
    allow_remote: bool,
    /// Write a kubeconfig to this file, readable only by its owner
    #[arg(long, value_name = "FILE")]
    kubeconfig_out: PathBuf,
    #[command(flatten)]
    audit: AuditFlags,
    #[command(flatten)]
    record: RecordFlags,
    /// Serve a page on loopback that shows requests as they arrive, and print a link to it. Values of Secrets and tokens
    /// are masked
    #[arg(long)]
    ui: bool,
    /// Run the controllers of kube-controller-manager for deleted namespaces, owner references, and the service account
    /// `default` and ConfigMap `kube-root-ca.crt` of each namespace. Webhooks see their requests
    #[arg(long)]
    with_controllers: bool,
    /// Call the webhooks behind this Service at this address; can be repeated
    #[arg(long, value_name = "NAMESPACE/NAME=HOST:PORT")]
    service: Vec<ServiceMapping>,
    /// Start the fakes in this file (see `admit fakes`), and create their webhook configurations; can be repeated. Adds
    /// the label admit-fakes=enabled to the namespace `default`. With --ui, the page shows the fakes, and lets you change
    /// their behavior
    #[arg(long, value_name = "FILE")]
    fakes: Vec<PathBuf>,
    #[command(flatten)]
    admission_control: AdmissionControl,
    /// Authorize requests by the roles and bindings in the server (`RBAC`), or allow all requests (`AlwaysAllow`).
    /// Users in the group system:masters, such as the one in the kubeconfig, may do everything
    #[arg(long, value_enum, value_name = "MODE", default_value = "RBAC")]
    authorization_mode: Mode,
    // An argument without a heading of its own would be listed under the heading of these flags.
    #[command(flatten)]
    plugins: PluginFlags,
    #[command(flatten)]
    credentials: CredentialFlags,
    #[command(flatten)]
    service_accounts: ServiceAccountFlags,
    #[command(flatten)]
    limits: LimitFlags,
    #[command(flatten)]
    log: LogFlags,
    #[command(flatten)]
    traces: TraceFlags,
}

/// The values of `--authorization-mode`, spelled as in kube-apiserver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Mode {
    #[value(name = "RBAC")]
    Rbac,
    #[value(name = "AlwaysAllow")]
    AlwaysAllow,
}

impl From<Mode> for AuthorizationMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Rbac => Self::Rbac,
            Mode::AlwaysAllow => Self::AlwaysAllow,
        }
    }
}

impl Serve {
    pub(crate) async fn run(self) -> Result<ExitCode, Failure> {
        let log = self.log.start();
        match self.serve(log).await {
            Err(failure) if log.is_json() => {
                log.failure(&failure);
                Ok(failure.code)
            }
            outcome => outcome,
        }
    }

    async fn serve(self, log: Log) -> Result<ExitCode, Failure> {
        if !self.listen.ip().is_loopback() && !self.allow_remote {
            let message = format!(
                "--listen {}: other hosts can reach that address; use --allow-remote to allow that",
                self.listen
            );
            return Err(Failure::usage(message));
        }
        let audit_policy = self.audit.policy()?;
        let selection = self.plugins.selection()?;
        let mut plugins = self.admission_control.read(&selection)?;
        // From now on, a signal stops the command cleanly, even before the first request.
        let mut signals = exit_code::install_signal_handlers(1)?;
        fake_webhooks::raise_open_file_limit();
        let traces = Traces::start(self.traces.file.as_deref(), log)?;
        self.log.watch_requests(log, &traces)?;
        let audit = self.audit.open(log)?;
        let record = self.record.open(log)?;
        let ui = self.ui.then(Ui::bind).transpose()?;
        let fakes = start_fakes(&self.fakes, log).await?;
        if let (Some(fleet), None) = (&fakes, &self.admission_control.file) {
            plugins.credentials = local::credentials(fleet).await?.unwrap_or_default();
        }
        let socket = Socket::bind(self.listen)?;
        let token = kubeconfig::random_token()?;
        let users = self.credentials.users(&token, log)?;
        let serving = self.credentials.serving(socket.address(), users.clients.as_ref())?;
        let root_certificates = serving.certificate_authority.clone();
        let controllers = self.with_controllers.then_some(Controllers { root_certificates });
        let kubeconfig = Kubeconfig {
            server: kubeconfig::client_url(socket.address()),
            certificate_authority: serving.certificate_authority,
            token,
        };
        let service_account_tokens = self.service_accounts.tokens(&kubeconfig.server, log)?;
        kubeconfig.write(&self.kubeconfig_out)?;
        let advertised = Advertised {
            port: socket.address().port(),
            client_authorities: users.clients.as_ref().map_or_else(String::new, |it| it.pem().to_owned()),
            ..Advertised::default()
        };
        let options = Options {
            services: service_map::by_service(self.service),
            callable_webhooks: None,
            credentials: plugins.credentials,
            manifests: plugins.manifests.manifests,
            plugins: selection,
            plugin_configuration: self.plugins.configuration(plugins.in_tree),
            hostname: crate::hostname(),
            audit: audit.as_ref().map(AuditFile::sink),
            audit_policy,
            record: None,
            notices: Some(notices::sink(log, Advice::Given)),
            spans: traces.contexts(),
            tokens: users.tokens,
            service_account_tokens,
            observer: observer(record.as_ref(), ui.as_ref()),
            controllers,
            authorization_mode: self.authorization_mode.into(),
            limits: self.limits.into(),
            advertised,
            service_ranges: ServiceRanges::default(),
            flags: BTreeMap::from([("secure-port".to_owned(), socket.address().port().to_string())]),
        };
        let running = Running {
            socket,
            tls: Arc::new(serving.config),
            authentication: users.authentication,
            clients: users.clients,
            options,
            folders: plugins.manifests.folders,
            audit,
            traces,
            record,
            ui,
            fakes,
            log,
        };
        let announce = || {
            // The shell in which the user pastes the line may have another working directory.
            let path = std::path::absolute(&self.kubeconfig_out).unwrap_or(self.kubeconfig_out);
            let file = shell_word(&path.to_string_lossy());
            let text = format!("admit serve: {}\nexport KUBECONFIG={file}\n", kubeconfig.server);
            if let Err(failure) = screen::print(&text) {
                screen::report(&failure);
            }
        };
        running.until(&mut signals, announce).await
    }
}

/// Starts the fakes of `--fakes`, if any. Their calls are logged.
async fn start_fakes(files: &[PathBuf], log: Log) -> Result<Option<Arc<Fleet>>, Failure> {
    if files.is_empty() {
        return Ok(None);
    }
    let write: fake_webhooks::Log = Arc::new(move |line| log.info(line));
    local::start(files, &write).await.map(|fleet| Some(Arc::new(fleet)))
}

/// Returns an observer that records requests and shows them on the page, if one of both is enabled.
pub(crate) fn observer(record: Option<&RecordFile>, ui: Option<&Ui>) -> Option<RequestObserver> {
    match (record.cloned(), ui.map(Ui::observer)) {
        (None, None) => None,
        (Some(record), None) => Some(Arc::new(move |request| record.write(line::report(request, false)))),
        (None, Some(show)) => Some(Arc::new(move |request| show(line::report(request, true)))),
        (Some(record), Some(show)) => Some(Arc::new(move |request| {
            let report = line::report(request, true);
            show(report.clone());
            record.write(report);
        })),
    }
}

/// Returns the user of the kubeconfigs that kubeadm and kind create, with its relevant groups.
pub(crate) fn administrator() -> UserInfo {
    UserInfo {
        username: "admin".to_owned(),
        groups: vec!["system:masters".to_owned(), "system:authenticated".to_owned()],
        ..UserInfo::default()
    }
}

/// Quotes `text` so that a shell parses it as one word.
pub(crate) fn shell_word(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+:@%,=".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_text_is_one_shell_word() {
        for (text, word) in [("/a/b.yaml", "/a/b.yaml"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("", "''")]
        {
            assert_eq!(shell_word(text), word);
        }
    }
}
