//! Parses the flags of `admit serve` for authentication and for the serving certificate.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use harness::server::{Authentication, Authenticators, Tokens};
use kubernetes_api_listener::{ClientAuthorities, Credentials, server_config};

use super::log::Log;
use super::{administrator, tokens};
use crate::Failure;

/// The flags for additional users and for the serving certificate. They have the same names as in kube-apiserver.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Credentials")]
pub(super) struct CredentialFlags {
    /// Authenticate client certificates signed by a certificate authority in this PEM file: the common name is the
    /// user, and the organizations are the groups
    #[arg(long, value_name = "FILE")]
    client_ca_file: Option<PathBuf>,
    /// Authenticate the bearer tokens in this CSV file with the columns token, user, UID, and, in quotes, groups
    #[arg(long, value_name = "FILE")]
    token_auth_file: Option<PathBuf>,
    /// Treat requests without credentials as requests from the user system:anonymous in the group
    /// system:unauthenticated. kube-apiserver's default is true
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_value_t = false, default_missing_value = "true", action = clap::ArgAction::Set)]
    anonymous_auth: bool,
    /// Serve with the certificate in this PEM file; by default, one is generated at startup. The kubeconfig trusts the
    /// certificates in the file
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file")]
    tls_cert_file: Option<PathBuf>,
    /// Use the private key in this PEM file for the certificate in --tls-cert-file
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    tls_private_key_file: Option<PathBuf>,
}

/// The users who can make requests, and how the server authenticates them.
pub(super) struct Users {
    pub(super) authentication: Authentication,
    pub(super) tokens: Tokens,
    pub(super) clients: Option<ClientAuthorities>,
}

/// The serving certificate and the CA certificates that verify it.
pub(super) struct Serving {
    pub(super) config: rustls::ServerConfig,
    /// The CA certificates that clients must trust, in PEM.
    pub(super) certificate_authority: String,
}

impl CredentialFlags {
    /// Returns the users who can make requests; the bearer of `token` is the administrator.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or is invalid.
    pub(super) fn users(&self, token: &str, log: Log) -> Result<Users, Failure> {
        let mut known = Tokens::default();
        if let Some(path) = &self.token_auth_file {
            tokens::read(path, &mut known, log)?;
        }
        known.insert(token, administrator());
        let clients = self.client_ca_file.as_deref().map(client_authorities).transpose()?;
        let authentication =
            Authentication::Authenticators(Authenticators { anonymous: self.anonymous_auth });
        Ok(Users { authentication, tokens: known, clients })
    }

    /// Returns the serving certificate for `address`.
    ///
    /// # Errors
    /// Returns the same errors as [`CredentialFlags::users`], or an error if the certificate cannot be created.
    pub(super) fn serving(
        &self,
        address: SocketAddr,
        clients: Option<&ClientAuthorities>,
    ) -> Result<Serving, Failure> {
        let (Some(certificate), Some(key)) = (&self.tls_cert_file, &self.tls_private_key_file) else {
            let credentials = Credentials::new(address).map_err(Failure::environment)?;
            return Ok(Serving {
                config: credentials.server_config(clients).map_err(Failure::environment)?,
                certificate_authority: credentials.certificate_authority_pem().to_owned(),
            });
        };
        let read = |path: &PathBuf| {
            output::read_for_server(path)
                .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
        };
        let (certificate_pem, key_pem) = (read(certificate)?, read(key)?);
        let config = server_config(&certificate_pem, &key_pem, clients)
            .map_err(|why| Failure::usage(format!("--tls-cert-file {}: {why}", certificate.display())))?;
        let certificate_authority = String::from_utf8_lossy(&certificate_pem).into_owned();
        Ok(Serving { config, certificate_authority })
    }
}

/// Reads the CA certificates of `--client-ca-file`.
///
/// # Errors
/// Returns an error if the file cannot be read or does not contain a CA certificate.
pub(crate) fn client_authorities(path: &Path) -> Result<ClientAuthorities, Failure> {
    let wrong =
        |why: &dyn std::fmt::Display| Failure::usage(format!("--client-ca-file {}: {why}", path.display()));
    let bytes = output::read_for_server(path).map_err(|error| wrong(&error))?;
    ClientAuthorities::from_pem(&bytes).map_err(|error| wrong(&error))
}
