//! Runs an API server on a socket until the process receives a signal.

use std::sync::Arc;

use fake_webhooks::{Fleet, StopSignals};
use harness::server::{ApiServer, Authentication, Options};
use kubernetes_api_listener::{ClientAuthorities, Listener, Socket};

use super::audit_file::AuditFile;
use super::log::Log;
use super::record_file::RecordFile;
use super::traces::Traces;
use super::ui::Ui;
use crate::fakes::local;
use crate::static_manifests::{Folder, Watch};
use crate::{ExitCode, Failure};

/// The server, its socket, and the files that it writes.
pub(crate) struct Running {
    pub(crate) socket: Socket,
    pub(crate) tls: Arc<rustls::ServerConfig>,
    pub(crate) authentication: Authentication,
    pub(crate) clients: Option<ClientAuthorities>,
    pub(crate) options: Options,
    /// The watched directories with webhook configurations.
    pub(crate) folders: Vec<Folder>,
    pub(crate) audit: Option<AuditFile>,
    pub(crate) traces: Traces,
    pub(crate) record: Option<RecordFile>,
    pub(crate) ui: Option<Ui>,
    /// The fakes whose configurations the server has from the start.
    pub(crate) fakes: Option<Arc<Fleet>>,
    pub(crate) log: Log,
}

impl Running {
    /// Serves requests until a signal arrives; calls `announce` when the server is ready to respond.
    ///
    /// # Errors
    /// Returns an error if the socket cannot be used, the server rejects the configuration of a fake, or the audit log is
    /// incomplete.
    pub(crate) async fn until(
        self,
        signals: &mut StopSignals,
        announce: impl FnOnce(),
    ) -> Result<ExitCode, Failure> {
        let Self {
            socket,
            tls,
            authentication,
            clients,
            options,
            folders,
            audit,
            record,
            ui,
            fakes,
            traces,
            log,
        } = self;
        let server = ApiServer::new(options);
        if let Some(fleet) = &fakes {
            local::configure(fleet, &server)?;
        }
        let router = server.router(authentication.clone());
        let authenticator = server.authenticator(authentication);
        let listener = Listener::start(socket, tls, router, authenticator, clients)?;
        let tell = move |change, line: &str| log.change(change, line);
        let _manifests = Watch::start(folders, &server, Arc::new(tell));
        let controllers = tokio::spawn(server.run_controllers());
        announce();
        let ui = ui.map(|ui| ui.start(server.clone(), fakes.clone())).transpose()?;
        signals.next().await;
        if let Some(ui) = ui {
            ui.stop().await;
        }
        server.end_watches();
        listener.stop().await;
        server.flush_abandoned_requests().await;
        if let Err(error) = controllers.await {
            return Err(Failure::environment(format!("the controllers ended: {error}")));
        }
        if let Some(fleet) = fakes.and_then(Arc::into_inner) {
            fleet.stop().await;
        }
        traces.stop().await;
        if let Some(audit) = audit {
            audit.check_complete()?;
        }
        if let Some(record) = record {
            record.check_complete()?;
        }
        Ok(ExitCode::Ok)
    }
}
