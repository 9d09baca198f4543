//! All fakes of some files, running.

mod group;
mod running;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use certs::CertificateAuthority;
use serde_json::Value;

pub(crate) use self::running::{Missing, PutError, Running};
use crate::admin::{Admin, AdminOptions};
use crate::fakes_file::FakesFile;
use crate::kubeconfig::kubeconfig;
use crate::plan::{Plan, PlanError};
use crate::tls::TlsError;
use crate::{Authority, Certificate, Limits, StartError};

/// Who is told, line by line, what the fakes do. It must not block.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// All fakes of some files, running. Dropped means stopped.
#[derive(Debug)]
pub struct Fleet {
    running: Arc<Running>,
    configurations: Vec<Value>,
    admin: Option<Admin>,
}

/// How a fleet is started, beside what its files say.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FleetOptions {
    /// Who signs the certificates.
    pub authority: Authority,
    /// How much the fakes take and keep.
    pub limits: Limits,
    /// Where and by whom the running fleet is steered; by default nobody does.
    pub admin: Option<AdminOptions>,
}

/// Why the fakes of a file could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FleetError {
    /// The files cannot be served together.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A fake could not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The admin endpoint could not start.
    #[error("the admin endpoint cannot start: {0}")]
    Admin(StartError),
}

impl Fleet {
    /// Starts everything in `files`, as [`Plan`] places it.
    ///
    /// # Errors
    /// The files contradict each other, or an address is taken, not allowed or cannot be called.
    pub async fn start(files: &[FakesFile], log: &Log) -> Result<Self, FleetError> {
        Self::start_with(files, FleetOptions::default(), log).await
    }

    /// The same with options.
    ///
    /// # Errors
    /// As with [`Fleet::start`]; also if the admin endpoint cannot listen.
    pub async fn start_with(
        files: &[FakesFile],
        options: FleetOptions,
        log: &Log,
    ) -> Result<Self, FleetError> {
        let plan = Plan::new(files)?;
        let authority = match options.authority {
            Authority::Own => {
                let made = CertificateAuthority::new("admit test CA").map_err(TlsError::from);
                Arc::new(made.map_err(StartError::from)?)
            }
            Authority::Shared(authority) => authority,
        };
        let home = files.first().cloned().unwrap_or_default();
        let running = Arc::new(Running::new(&home, authority, options.limits, Arc::clone(log))?);
        let client_configs = running.start(&plan).await?;
        let admin = match options.admin {
            None => None,
            Some(options) => Some(Admin::start(options, &running).await.map_err(FleetError::Admin)?),
        };
        let mut client_configs = client_configs.into_iter();
        let configurations = plan.configurations(|_| client_configs.next().unwrap_or_default());
        Ok(Self { running, configurations, admin })
    }

    /// The configurations to apply, so that an API server calls the fakes of the files.
    pub fn configurations(&self) -> &[Value] {
        &self.configurations
    }

    /// A kubeconfig with the credentials that the fakes of the files demand; none if they demand none.
    ///
    /// # Errors
    /// A client certificate cannot be made.
    pub async fn kubeconfig(&self) -> Result<Option<Value>, TlsError> {
        let users = self.running.credentials().await;
        if users.is_empty() {
            return Ok(None);
        }
        Ok(Some(kubeconfig(&users, self.running.authority())?))
    }

    /// Where the admin endpoint listens; none if nobody asked for it.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(Admin::address)
    }

    /// The certificate of the authority as PEM: for callers of the fakes and of the admin endpoint.
    pub fn ca_bundle(&self) -> &str {
        self.running.authority_pem()
    }

    /// Shows another certificate in every TLS handshake from now on, on every port of a fake. Connections that are open
    /// stay, and the configurations are those of before.
    ///
    /// # Errors
    /// The certificate cannot be made.
    pub async fn rotate(&self, certificate: Certificate) -> Result<(), TlsError> {
        self.running.rotate(certificate).await
    }

    /// Stops everything. Calls under way may end within half a second.
    pub async fn stop(self) {
        if let Some(admin) = self.admin {
            admin.stop().await;
        }
        self.running.stop().await;
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").finish_non_exhaustive()
    }
}
