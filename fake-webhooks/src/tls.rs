//! The TLS configuration of a fake.

use std::sync::{Arc, Mutex, PoisonError};

use certs::{CertificateAuthority, Name};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};

use crate::{Certificate, Connection, HttpVersions, Transport};

/// Why no TLS configuration could be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// No certificate could be made.
    #[error(transparent)]
    Certificate(#[from] certs::Error),
    /// The certificate that was made cannot be read.
    #[error("cannot read the certificate that was made: {0}")]
    Pem(#[from] pem::Error),
    /// TLS does not take the certificate.
    #[error("cannot use the certificate that was made: {0}")]
    Tls(#[from] rustls::Error),
    /// No certificates of clients can be asked for.
    #[error("cannot ask for certificates of clients: {0}")]
    Clients(#[from] VerifierBuilderError),
}

/// What a socket shows in its handshakes. It may change between two of them.
#[derive(Debug)]
pub(crate) struct Tls {
    authority: Arc<CertificateAuthority>,
    names: Vec<Name>,
    transport: Transport,
    now: Mutex<Shown>,
    ca_bundle: String,
}

#[derive(Debug)]
struct Shown {
    next: Arc<ServerConfig>,
    /// What is shown after that, if something else.
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
        let now = Mutex::new(Shown { next: Arc::new(configuration), later });
        Ok(Self { authority, names, transport, now, ca_bundle })
    }

    /// What goes into a caBundle, as the first certificate has it.
    pub(crate) fn ca_bundle(&self) -> &str {
        &self.ca_bundle
    }

    /// Shows another certificate in every handshake from now on. Connections that are open stay as they are, and so does
    /// the bundle, which callers have already.
    pub(crate) fn rotate(&self, certificate: Certificate) -> Result<(), TlsError> {
        let transport = Transport { certificate, ..self.transport };
        let (configuration, _) = configuration(&self.authority, &self.names, transport)?;
        let shown = Shown { next: Arc::new(configuration), later: None };
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = shown;
        Ok(())
    }

    /// What the next handshake shows.
    pub(crate) fn next(&self) -> Arc<ServerConfig> {
        let mut shown = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        match shown.later.take() {
            Some(later) => std::mem::replace(&mut shown.next, later),
            None => Arc::clone(&shown.next),
        }
    }
}

/// The configuration, and what goes into the caBundle of those who call.
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
