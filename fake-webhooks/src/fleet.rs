//! Runs the fakes of one or more files.

use std::net::SocketAddr;
use std::sync::Arc;

use certs::CertificateAuthority;
use serde_json::Value;

use crate::admin::{Admin, AdminOptions};
use crate::fakes_file::FakesFile;
use crate::kubeconfig::kubeconfig;
use crate::plan::{Plan, PlanError};
use crate::running::{BehaviorError, FakeStatus, Log, Running};
use crate::socket::{StartError, TlsError};
use crate::{Authority, Behavior, Certificate, Limits};

/// The running fakes of one or more files. They stop when this value is dropped.
#[derive(Debug)]
pub struct Fleet {
    running: Arc<Running>,
    configurations: Vec<Value>,
    admin: Option<Admin>,
}

/// The options of a fleet, apart from its files.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FleetOptions {
    /// The issuer of the certificates of all fakes.
    pub authority: Authority,
    /// The limits of the fakes.
    pub limits: Limits,
    /// The admin endpoint; disabled by default.
    pub admin: Option<AdminOptions>,
}

/// The reason why the fakes could not start.
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
    /// Starts all fakes in `files` according to their [`Plan`].
    ///
    /// # Errors
    ///
    /// Returns an error if the files conflict, or if an address is in use, not allowed, or not available.
    pub async fn start(files: &[FakesFile], log: &Log) -> Result<Self, FleetError> {
        Self::start_with(files, FleetOptions::default(), log).await
    }

    /// Starts all fakes in `files` with options.
    ///
    /// # Errors
    /// Returns an error in the cases of [`Fleet::start`], or if the admin endpoint cannot listen.
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

    /// Returns the webhook configurations that make an API server call the fakes.
    pub fn configurations(&self) -> &[Value] {
        &self.configurations
    }

    /// Returns the status of each fake, sorted by name.
    pub async fn fakes(&self) -> Vec<FakeStatus> {
        self.running.statuses().await
    }

    /// Changes the behavior of a fake for new calls. `name` is the full name of the fake.
    ///
    /// # Errors
    /// Returns an error if no fake has this name, or if the behavior requires another transport.
    pub async fn set_behavior(&self, name: &str, behavior: Behavior) -> Result<(), BehaviorError> {
        self.running.set_behavior(name, behavior).await.map(drop)
    }

    /// Returns a kubeconfig with the credentials that the fakes require, or `None` if they do not require any.
    ///
    /// # Errors
    /// Returns an error if a client certificate cannot be created.
    pub async fn kubeconfig(&self) -> Result<Option<Value>, TlsError> {
        let users = self.running.credentials().await;
        if users.is_empty() {
            return Ok(None);
        }
        Ok(Some(kubeconfig(&users, self.running.authority())?))
    }

    /// Returns the address of the admin endpoint, or `None` if the endpoint is disabled.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(Admin::address)
    }

    /// Returns the CA certificate in PEM format, for callers of the fakes and of the admin endpoint.
    pub fn ca_bundle(&self) -> &str {
        self.running.authority_pem()
    }

    /// Issues certificates of the kind `certificate` for new TLS handshakes on all ports of the fleet.
    ///
    /// Open connections and the configurations do not change.
    ///
    /// # Errors
    /// Returns an error if a certificate cannot be created.
    pub async fn rotate(&self, certificate: Certificate) -> Result<(), TlsError> {
        self.running.rotate(certificate).await
    }

    /// Stops all fakes after waiting up to half a second for calls in progress.
    pub async fn stop(self) {
        if let Some(admin) = self.admin {
            admin.stop().await;
        }
        self.running.stop().await;
    }
}
