//! `--client-ca-file`: users by the certificates of their connections.

use std::path::Path;
use std::sync::Arc;

use harness::server::ClientCertificate;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme};

use crate::Failure;

/// The authorities whose certificates name users.
#[derive(Clone, Debug)]
pub(crate) struct ClientAuthorities {
    verifier: Arc<dyn ClientCertVerifier>,
    pem: String,
}

impl ClientAuthorities {
    /// Reads the authorities of a PEM file.
    ///
    /// # Errors
    /// It cannot be read, or has no certificate of an authority.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let wrong = |why: &dyn std::fmt::Display| {
            Failure::usage(format!("--client-ca-file {}: {why}", path.display()))
        };
        let bytes = output::read(path).map_err(|error| wrong(&error))?;
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&bytes) {
            let certificate = certificate.map_err(|error| wrong(&error))?;
            roots.add(certificate).map_err(|error| wrong(&error))?;
        }
        if roots.is_empty() {
            return Err(wrong(&"data does not contain any valid RSA or ECDSA certificates"));
        }
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .allow_unauthenticated()
            .build()
            .map_err(|error| wrong(&error))?;
        Ok(Self { verifier, pem: String::from_utf8_lossy(&bytes).into_owned() })
    }

    /// The file, as it is.
    pub(crate) fn pem(&self) -> &str {
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
