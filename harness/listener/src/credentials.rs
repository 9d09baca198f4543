//! Generates the server certificate, and creates the TLS configuration.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use certs::{CertificateAuthority, InvalidName, Leaf, Name};
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::clients::ClientAuthorities;

/// A generated server certificate and the certificate authority that signed it.
#[derive(Debug)]
pub struct Credentials {
    authority: CertificateAuthority,
    leaf: Leaf,
}

/// The reason why a server certificate cannot be created or used.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    /// A certificate cannot be created for the address.
    #[error("cannot create a certificate: {0}")]
    Issue(#[from] certs::Error),
    /// A DNS name is invalid.
    #[error("cannot create a certificate: {0}")]
    Name(#[from] InvalidName),
    /// The certificate or its key is not in PEM format.
    #[error(transparent)]
    Pem(#[from] pem::Error),
    /// The certificate cannot be used, or the key does not match it.
    #[error(transparent)]
    Tls(#[from] rustls::Error),
}

impl Credentials {
    /// Creates a certificate for `address` and for the names that clients on this host use for it.
    ///
    /// # Errors
    /// Returns [`CredentialError`] if the system's random number generator fails.
    pub fn new(address: SocketAddr) -> Result<Self, CredentialError> {
        let authority = CertificateAuthority::new("admit serve")?;
        let mut names = vec!["localhost".parse()?];
        for address in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST), address.ip()] {
            if !names.contains(&Name::from(address)) {
                names.push(Name::from(address));
            }
        }
        let leaf = authority.issue(&names)?;
        Ok(Self { authority, leaf })
    }

    /// Returns the CA certificate, in PEM. Clients must trust it.
    pub fn certificate_authority_pem(&self) -> &str {
        self.authority.certificate_pem()
    }

    /// Creates a TLS configuration with this certificate. See the function [`server_config`].
    ///
    /// # Errors
    /// Returns an error in the same cases as the function [`server_config`].
    pub fn server_config(
        &self,
        clients: Option<&ClientAuthorities>,
    ) -> Result<rustls::ServerConfig, CredentialError> {
        server_config(self.leaf.certificate_pem.as_bytes(), self.leaf.key_pem.as_bytes(), clients)
    }
}

/// Creates a TLS configuration from a certificate and its key in PEM, with HTTP/2 and HTTP/1.1 as in kube-apiserver.
///
/// # Errors
/// Returns [`CredentialError`] if the certificate or key is invalid, or if they do not match.
pub fn server_config(
    certificate_pem: &[u8],
    key_pem: &[u8],
    clients: Option<&ClientAuthorities>,
) -> Result<rustls::ServerConfig, CredentialError> {
    let chain: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(certificate_pem).collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(key_pem)?;
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?;
    let config = match clients {
        Some(clients) => config.with_client_cert_verifier(clients.handshake()),
        None => config.with_no_client_auth(),
    };
    let mut config = config.with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
