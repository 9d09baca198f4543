//! Creates the TLS configuration of a fake.

use std::sync::{Arc, Mutex, PoisonError};

use certs::{CertificateAuthority, Name};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};

use crate::{Certificate, Connection, HttpVersions, Transport};

/// The reason why a TLS configuration could not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A certificate could not be created.
    #[error(transparent)]
    Certificate(#[from] certs::Error),
    /// The new certificate cannot be parsed.
    #[error("cannot parse the new certificate: {0}")]
    Pem(#[from] pem::Error),
    /// The TLS library rejects the certificate.
    #[error("cannot use the new certificate: {0}")]
    Tls(#[from] rustls::Error),
    /// Client certificates cannot be required.
    #[error("cannot require client certificates: {0}")]
    Clients(#[from] VerifierBuilderError),
}

/// The TLS configuration of a socket. It can change between handshakes.
#[derive(Debug)]
pub(crate) struct Tls {
    authority: Arc<CertificateAuthority>,
    names: Vec<Name>,
    transport: Transport,
    now: Mutex<Configurations>,
    ca_bundle: String,
}

#[derive(Debug)]
struct Configurations {
    next: Arc<ServerConfig>,
    /// The configuration after the first handshake, or `None` if the configuration does not change.
    later: Option<Arc<ServerConfig>>,
}

impl Tls {
    pub(crate) fn new(
        authority: Arc<CertificateAuthority>,
        names: Vec<Name>,
        transport: Transport,
    ) -> Result<Self, TlsError> {
        let (configuration, ca_bundle) = configuration(&authority, &names, transport)?;
        let later = match transport.rotate {
            Some(certificate) => {
                let later = Transport { certificate, ..transport };
                Some(Arc::new(self::configuration(&authority, &names, later)?.0))
            }
            None => None,
        };
        let now = Mutex::new(Configurations { next: Arc::new(configuration), later });
        Ok(Self { authority, names, transport, now, ca_bundle })
    }

    /// Returns the `caBundle` for the first certificate.
    pub(crate) fn ca_bundle(&self) -> &str {
        &self.ca_bundle
    }

    /// Issues a certificate for new handshakes. Open connections and the `caBundle` do not change.
    pub(crate) fn rotate(&self, certificate: Certificate) -> Result<(), TlsError> {
        let transport = Transport { certificate, ..self.transport };
        let (configuration, _) = configuration(&self.authority, &self.names, transport)?;
        let configurations = Configurations { next: Arc::new(configuration), later: None };
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = configurations;
        Ok(())
    }

    /// Returns the configuration for the next handshake.
    pub(crate) fn next(&self) -> Arc<ServerConfig> {
        let mut configurations = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        match configurations.later.take() {
            Some(later) => std::mem::replace(&mut configurations.next, later),
            None => Arc::clone(&configurations.next),
        }
    }
}

/// Creates the TLS configuration, and the `caBundle` for callers.
fn configuration(
    authority: &CertificateAuthority,
    names: &[Name],
    transport: Transport,
) -> Result<(ServerConfig, String), TlsError> {
    let leaf = match transport.certificate {
        Certificate::Valid => authority.issue(names)?,
        Certificate::Defective(defect) => authority.issue_with(names, defect)?,
    };
    let chain =
        CertificateDer::pem_slice_iter(leaf.certificate_pem.as_bytes()).collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(leaf.key_pem.as_bytes())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    let builder = if transport.connection == Connection::ClientCertificate {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.certificate_pem().as_bytes())?)?;
        builder.with_client_cert_verifier(
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build()?,
        )
    } else {
        builder.with_no_client_auth()
    };
    let mut configuration = builder.with_single_cert(chain, key)?;
    configuration.alpn_protocols = match transport.http {
        HttpVersions::Both => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        HttpVersions::Http1 => vec![b"http/1.1".to_vec()],
        HttpVersions::Http2 => vec![b"h2".to_vec()],
    };
    Ok((configuration, leaf.ca_bundle_pem))
}
