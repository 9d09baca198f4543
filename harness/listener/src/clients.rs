//! Authenticates users by client certificates.

use std::sync::Arc;

use kubernetes_api_server::ClientCertificate;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme};

/// The certificate authorities that verify client certificates.
#[derive(Clone, Debug)]
pub struct ClientAuthorities {
    verifier: Arc<dyn ClientCertVerifier>,
    pem: String,
}

/// The reason why a `--client-ca-file` is invalid.
#[derive(Debug, thiserror::Error)]
pub enum InvalidAuthorities {
    /// The file is not in PEM format.
    #[error(transparent)]
    Pem(#[from] pem::Error),
    /// A certificate cannot be parsed.
    #[error(transparent)]
    Certificate(#[from] rustls::Error),
    /// The file does not contain a certificate.
    #[error("data does not contain any valid RSA or ECDSA certificates")]
    None,
    /// The certificates cannot be used as trust anchors.
    #[error(transparent)]
    Unusable(#[from] VerifierBuilderError),
}

impl ClientAuthorities {
    /// Parses the content of the file in `--client-ca-file`: CA certificates in PEM.
    ///
    /// # Errors
    /// Returns [`InvalidAuthorities`] if the file is not in PEM format, or does not contain a CA certificate.
    pub fn from_pem(bytes: &[u8]) -> Result<Self, InvalidAuthorities> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(bytes) {
            roots.add(certificate?)?;
        }
        if roots.is_empty() {
            return Err(InvalidAuthorities::None);
        }
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .allow_unauthenticated()
            .build()?;
        Ok(Self { verifier, pem: String::from_utf8_lossy(bytes).into_owned() })
    }

    /// Returns the content of the `--client-ca-file`.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Returns a verifier that accepts any client certificate in the handshake.
    ///
    /// As in kube-apiserver, the handshake succeeds even if the issuer is unknown. In that case, requests on the
    /// connection get a 401 response.
    pub(crate) fn handshake(&self) -> Arc<dyn ClientCertVerifier> {
        Arc::new(AnyCertificate(Arc::clone(&self.verifier)))
    }

    /// Returns the verified client certificate, or [`ClientCertificate::Invalid`] if the chain is not trusted.
    ///
    /// The chain must start with the client's own certificate.
    pub(crate) fn user(&self, certificates: &[CertificateDer<'_>]) -> Option<ClientCertificate> {
        let (own, others) = certificates.split_first()?;
        match self.verifier.verify_client_cert(own, others, UnixTime::now()) {
            Ok(_verified) => ClientCertificate::verified(own),
            Err(_invalid) => Some(ClientCertificate::Invalid),
        }
    }
}

/// A verifier that checks only whether the client has the certificate's private key.
///
/// [`ClientAuthorities::user`] verifies the issuer.
#[derive(Debug)]
struct AnyCertificate(Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for AnyCertificate {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        _own: &CertificateDer<'_>,
        _others: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
