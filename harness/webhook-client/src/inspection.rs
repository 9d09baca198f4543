//! Inspects the TLS handshake of a webhook's server, to find problems before a webhook is called.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use kubernetes_admission::config::{ClientConfig, WebhookTarget};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use url::Url;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

use super::{HttpsCaller, certificate, tls};

/// A certificate in a chain or in a `caBundle`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFacts {
    /// The subject, such as `CN=webhook`.
    pub subject: String,
    /// The start of the validity period.
    pub not_before: Timestamp,
    /// The end of the validity period.
    pub not_after: Timestamp,
    /// Whether the basic constraints mark the certificate as a CA certificate.
    pub is_authority: bool,
    /// The certificate in DER.
    pub der: Vec<u8>,
}

/// The result of a TLS handshake with a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// The TLS server name that the API server uses: `NAME.NAMESPACE.svc`, or the host of the URL.
    pub server_name: String,
    /// The API server's message about the TLS handshake; `None` if the API server accepts the server.
    pub complaint: Option<String>,
    /// The certificates that the server sent, starting with its own; empty if the server sent no certificates.
    pub chain: Vec<CertificateFacts>,
    /// The certificates of the `caBundle`; empty if the system's root certificates are used.
    pub trusted: Vec<CertificateFacts>,
    /// The TLS version, such as `TLSv1_3`; `None` if the handshake failed.
    pub tls_version: Option<String>,
}

impl HttpsCaller {
    /// Performs a TLS handshake with the server of `config`, without sending a request.
    ///
    /// # Errors
    /// Returns a message if the connection fails: kube-apiserver's message, if possible.
    pub async fn inspect(&self, config: &ClientConfig, timeout: Duration) -> Result<Inspection, String> {
        let looking = self.look(config);
        tokio::time::timeout(timeout, looking)
            .await
            .map_err(|_elapsed| "context deadline exceeded".to_owned())?
    }

    async fn look(&self, config: &ClientConfig) -> Result<Inspection, String> {
        let (server_name, host, port) = match &config.target {
            WebhookTarget::Service(service) => {
                let (host, port) = self.connections.resolve(service)?;
                (service.host(), host, port)
            }
            WebhookTarget::Url(url) => {
                let url = Url::parse(url).map_err(|error| format!("Unparsable URL: {error}"))?;
                let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
                (host.clone(), host, url.port_or_known_default().unwrap_or(443))
            }
        };
        let name = ServerName::try_from(server_name.clone()).map_err(|error| error.to_string())?;
        let received = Arc::new(ReceivedCertificates::default());
        let judge = tls::verifier(&config.ca_bundle)?;
        let witness = RecordingVerifier { judge, received: Arc::clone(&received) };
        let client = tls::client_config_with(Arc::new(witness), &["http/1.1"])?;
        let tcp = TcpStream::connect((host.as_str(), port))
            .await
            .map_err(|error| format!("dial tcp {host}:{port}: {error}"))?;
        let connected = TlsConnector::from(Arc::new(client)).connect(name, tcp).await;
        let (complaint, tls_version) = match connected {
            Ok(stream) => {
                let version = stream.get_ref().1.protocol_version();
                (None, version.and_then(|version| version.as_str()).map(str::to_owned))
            }
            Err(error) => (Some(error.to_string()), None),
        };
        let complaint = received.complaint().or(complaint);
        let trusted = match config.ca_bundle.as_slice() {
            [] => Vec::new(),
            bundle => facts(&tls::trusted(bundle)?),
        };
        Ok(Inspection { server_name, complaint, chain: facts(&received.chain()), trusted, tls_version })
    }
}

/// Parses the certificates in a `caBundle`. The bundle must not be empty.
///
/// # Errors
/// Returns kube-apiserver's message for an invalid bundle. kube-apiserver never calls a webhook with such a bundle.
pub fn bundled(ca_bundle: &[u8]) -> Result<Vec<CertificateFacts>, String> {
    Ok(facts(&tls::bundle(ca_bundle)?))
}

/// Returns whether the API server would accept the certificate chain `served` for `server_name`.
///
/// `served` contains a certificate and intermediate CA certificates in PEM.
///
/// The error is the API server's message. Returns `None` if the first certificate is not valid for `server_name`, or if
/// an input cannot be parsed.
pub fn verified(
    ca_bundle: &[u8],
    served: &[u8],
    server_name: &str,
    now: Timestamp,
) -> Option<Result<(), String>> {
    let chain = tls::bundle(served).ok()?;
    let (leaf, intermediates) = chain.split_first()?;
    if !certificate::is_for(leaf, server_name) {
        return None;
    }
    let judge = tls::verifier(ca_bundle).ok()?;
    let name = ServerName::try_from(server_name).ok()?;
    let now = UnixTime::since_unix_epoch(Duration::from_secs(now.as_second().try_into().ok()?));
    let verdict = judge.verify_server_cert(leaf, intermediates, &name, &[], now);
    Some(verdict.map(drop).map_err(|error| words(&error)))
}

fn words(error: &rustls::Error) -> String {
    if let rustls::Error::InvalidCertificate(rustls::CertificateError::Other(other)) = error {
        other.0.to_string()
    } else {
        error.to_string()
    }
}

fn facts(certificates: &[CertificateDer<'_>]) -> Vec<CertificateFacts> {
    let facts = certificates.iter().filter_map(|der| {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let validity = certificate.validity();
        Some(CertificateFacts {
            subject: certificate.subject().to_string(),
            not_before: Timestamp::from_second(validity.not_before.timestamp()).ok()?,
            not_after: Timestamp::from_second(validity.not_after.timestamp()).ok()?,
            is_authority: certificate.is_ca(),
            der: der.to_vec(),
        })
    });
    facts.collect()
}

/// The certificates that the server sent, and the error that the verifier found.
#[derive(Debug, Default)]
struct ReceivedCertificates {
    chain: Mutex<Vec<CertificateDer<'static>>>,
    complaint: Mutex<Option<String>>,
}

impl ReceivedCertificates {
    fn chain(&self) -> Vec<CertificateDer<'static>> {
        self.chain.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn complaint(&self) -> Option<String> {
        self.complaint.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A verifier that records the certificates and the result of another verifier.
#[derive(Debug)]
struct RecordingVerifier {
    judge: Arc<dyn ServerCertVerifier>,
    received: Arc<ReceivedCertificates>,
}

impl ServerCertVerifier for RecordingVerifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let chain = std::iter::once(leaf).chain(intermediates);
        *self.received.chain.lock().unwrap_or_else(PoisonError::into_inner) =
            chain.map(|certificate| certificate.clone().into_owned()).collect();
        let verdict = self.judge.verify_server_cert(leaf, intermediates, server_name, ocsp_response, now);
        if let Err(error) = &verdict {
            *self.received.complaint.lock().unwrap_or_else(PoisonError::into_inner) = Some(words(error));
        }
        verdict
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.judge.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.judge.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.judge.supported_verify_schemes()
    }
}
