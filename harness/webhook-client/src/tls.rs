//! Creates TLS configurations that trust the `caBundle` or the system's root certificates.

use std::sync::Arc;

use rustls::client::ResolvesClientCert;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme,
};

use super::certificate;

/// A client certificate and its key, in PEM.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    pub(super) certificate: Vec<u8>,
    pub(super) key: Vec<u8>,
}

/// Creates a TLS configuration that trusts `ca_bundle` (PEM) or, if it is empty, the system's root certificates.
///
/// # Errors
/// Returns kube-apiserver's error if the bundle does not contain a valid certificate, or if `identity` is invalid.
///
/// Source: client-go transport/transport.go, `rootCertPool`.
pub(super) fn client_config(
    ca_bundle: &[u8],
    protocols: &[&str],
    identity: Option<&Identity>,
) -> Result<ClientConfig, String> {
    let mut config = client_config_with(verifier(ca_bundle)?, protocols)?;
    if let Some(identity) = identity {
        config.client_auth_cert_resolver = Arc::new(Always(Arc::new(certified_key(identity)?)));
    }
    Ok(config)
}

/// A resolver that sends its certificate to every server that requests a client certificate.
#[derive(Debug)]
struct Always(Arc<CertifiedKey>);

impl ResolvesClientCert for Always {
    fn resolve(&self, _issuers: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0.key.choose_scheme(schemes).map(|_signer| Arc::clone(&self.0))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// Parses a client certificate and its key.
///
/// # Errors
/// Returns the message of Go's `X509KeyPair` in crypto/tls/tls.go if the certificate or the key is invalid.
pub(super) fn certified_key(identity: &Identity) -> Result<CertifiedKey, String> {
    let chain =
        CertificateDer::pem_slice_iter(&identity.certificate).filter_map(Result::ok).collect::<Vec<_>>();
    if chain.is_empty() {
        return Err("tls: failed to find any PEM data in certificate input".to_owned());
    }
    let key = PrivateKeyDer::from_pem_slice(&identity.key)
        .map_err(|_error| "tls: failed to find any PEM data in key input".to_owned())?;
    let key = ring::sign::any_supported_type(&key)
        .map_err(|_error| "tls: failed to parse private key".to_owned())?;
    let certified = CertifiedKey::new(chain, key);
    match certified.keys_match() {
        Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::KeyMismatch)) => {
            Err("tls: private key does not match public key".to_owned())
        }
        Ok(()) | Err(_) => Ok(certified),
    }
}

/// Creates a TLS configuration that verifies servers with `verifier`.
///
/// Rule: HTTP-17.
///
/// # Errors
/// Returns a message if the TLS library does not support any TLS version.
pub(super) fn client_config_with(
    verifier: Arc<dyn ServerCertVerifier>,
    protocols: &[&str],
) -> Result<ClientConfig, String> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    Ok(config)
}

/// Creates a verifier that rejects the same certificates as Go.
///
/// # Errors
/// Returns an error in the same cases as [`bundle`].
pub(super) fn verifier(ca_bundle: &[u8]) -> Result<Arc<dyn ServerCertVerifier>, String> {
    let trusted = trusted(ca_bundle)?;
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(trusted.iter().cloned());
    Ok(Arc::new(Verifier { roots, trusted, provider: Arc::new(ring::default_provider()) }))
}

/// Returns the certificates in `ca_bundle` or, if it is empty, the system's root certificates.
///
/// Rule: HTTP-18.
///
/// # Errors
/// Returns an error in the same cases as [`bundle`].
pub(super) fn trusted(ca_bundle: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    if ca_bundle.is_empty() { Ok(system_roots()) } else { bundle(ca_bundle) }
}

/// Parses the certificates in a `caBundle`. Invalid certificates are ignored if at least one is valid.
///
/// Rule: HTTP-21.
///
/// # Errors
/// Returns kube-apiserver's error if the bundle does not contain a valid certificate.
pub(super) fn bundle(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(pem).filter_map(Result::ok).collect();
    let mut complaint = None;
    for certificate in &certificates {
        match x509_parser::parse_x509_certificate(certificate) {
            Ok(_) => return Ok(certificates),
            Err(error) => complaint = complaint.or(Some(error)),
        }
    }
    Err(match complaint {
        Some(error) => {
            format!("unable to load root certificates: failed to parse certificate: x509: {error}")
        }
        None => "unable to load root certificates: unable to parse bytes as PEM block".to_owned(),
    })
}

/// Checks that a `caBundle` contains a valid certificate.
///
/// # Errors
/// Returns kube-apiserver's error if the bundle does not contain a valid certificate.
///
/// Source: apiserver pkg/util/webhook/validation.go, `ValidateCABundle`.
pub fn check_bundle(pem: &[u8]) -> Result<(), String> {
    bundle(pem).map(drop)
}

fn system_roots() -> Vec<CertificateDer<'static>> {
    rustls_native_certs::load_native_certs().certs
}

/// A verifier with Go's checks and error messages, in Go's order.
#[derive(Debug)]
struct Verifier {
    roots: RootCertStore,
    trusted: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    fn chain(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), rustls::Error> {
        // Unlike webpki, Go trusts a server certificate that is in the bundle, regardless of its signature.
        if self.trusted.iter().any(|trusted| trusted == leaf) {
            return Ok(());
        }
        let algorithms = self.provider.signature_verification_algorithms.all;
        let parsed = ParsedCertificate::try_from(leaf)?;
        rustls::client::verify_server_cert_signed_by_trust_anchor(
            &parsed,
            &self.roots,
            intermediates,
            now,
            algorithms,
        )
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let chain = || self.chain(leaf, intermediates, now);
        match certificate::complaint(leaf, &self.trusted, server_name, now, chain) {
            None => Ok(ServerCertVerified::assertion()),
            Some(complaint) => Err(CertificateError::Other(OtherError(Arc::new(complaint))).into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
