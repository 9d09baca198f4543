//! Users by the certificates of their connections.

use std::sync::Arc;

use kubernetes_api_server::ClientCertificate;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme};

/// The authorities whose certificates name users.
#[derive(Clone, Debug)]
pub struct ClientAuthorities {
    verifier: Arc<dyn ClientCertVerifier>,
    pem: String,
}

/// Why certificates name no authorities.
#[derive(Debug, thiserror::Error)]
pub enum InvalidAuthorities {
    /// It is not PEM.
    #[error(transparent)]
    Pem(#[from] pem::Error),
    /// A certificate cannot be read.
    #[error(transparent)]
    Certificate(#[from] rustls::Error),
    /// The file has no certificate.
    #[error("data does not contain any valid RSA or ECDSA certificates")]
    None,
    /// They cannot be used.
    #[error(transparent)]
    Unusable(#[from] VerifierBuilderError),
}

impl ClientAuthorities {
    /// The authorities of `--client-ca-file`: certificates in PEM.
    ///
    /// # Errors
    /// It is not PEM, or has no certificate of an authority.
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

    /// The file, as it is.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// What takes the certificates of a handshake without a look at who signed them: kube-apiserver answers a client with
    /// another one, and says 401.
    pub(crate) fn handshake(&self) -> Arc<dyn ClientCertVerifier> {
        Arc::new(AnyCertificate(Arc::clone(&self.verifier)))
    }

    /// Whose certificates these are, the client's own one first; none where they name nobody.
    pub(crate) fn user(&self, certificates: &[CertificateDer<'_>]) -> Option<ClientCertificate> {
        let (own, others) = certificates.split_first()?;
        match self.verifier.verify_client_cert(own, others, UnixTime::now()) {
            Ok(_verified) => ClientCertificate::verified(own),
            Err(_invalid) => Some(ClientCertificate::Refused),
        }
    }
}

/// Leaves it to [`ClientAuthorities::user`] who signed a certificate. Its key has to be the client's.
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
