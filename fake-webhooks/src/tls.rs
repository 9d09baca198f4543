//! The TLS configuration of a fake.

use std::sync::Arc;

use certs::{CertificateAuthority, Name};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};

use crate::{Certificate, HttpVersions};

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
}

/// Who a listener is: all that its certificates have in common.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) authority: Arc<CertificateAuthority>,
    pub(crate) names: Vec<Name>,
    pub(crate) versions: HttpVersions,
}

impl Identity {
    /// A configuration with a new certificate of this kind.
    pub(crate) fn configuration(&self, certificate: Certificate) -> Result<ServerConfig, TlsError> {
        configuration(&self.authority, certificate, &self.names, self.versions)
    }
}

fn configuration(
    authority: &CertificateAuthority,
    certificate: Certificate,
    names: &[Name],
    versions: HttpVersions,
) -> Result<ServerConfig, TlsError> {
    let leaf = match certificate {
        Certificate::Valid => authority.issue(names)?,
        Certificate::Defective(defect) => authority.issue_with(names, defect)?,
    };
    let chain =
        CertificateDer::pem_slice_iter(leaf.certificate_pem.as_bytes()).collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(leaf.key_pem.as_bytes())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut configuration = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    configuration.alpn_protocols = match versions {
        HttpVersions::Both => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        HttpVersions::Http1 => vec![b"http/1.1".to_vec()],
        HttpVersions::Http2 => vec![b"h2".to_vec()],
    };
    Ok(configuration)
}
