//! What a webhook's server shows in the TLS handshake, for people who ask before it is too late.

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
    /// Its subject, such as `CN=webhook`.
    pub subject: String,
    /// When it begins.
    pub not_before: Timestamp,
    /// When it ends.
    pub not_after: Timestamp,
    /// Whether its basic constraints make it the certificate of an authority.
    pub is_authority: bool,
    /// The certificate itself, as DER.
    pub der: Vec<u8>,
}

/// What a server shows in the handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// The name that the API server asks for: `NAME.NAMESPACE.svc`, or the host of the URL.
    pub server_name: String,
    /// Why the API server would not go on, in its words; none if all is well.
    pub complaint: Option<String>,
    /// The certificates that the server sent, its own first; empty if it sent none.
    pub chain: Vec<CertificateFacts>,
    /// The certificates of the `caBundle`; empty for the system's roots.
    pub trusted: Vec<CertificateFacts>,
    /// The version of TLS, such as `TLSv1_3`; none without a handshake.
    pub tls_version: Option<String>,
}

impl HttpsCaller {
    /// Shakes hands with the server of `config` and says what it shows. Sends no request.
    ///
    /// # Errors
    /// Why no connection came to be, in kube-apiserver's words where it has some.
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
        let seen = Arc::new(Seen::default());
        let judge = tls::verifier(&config.ca_bundle)?;
        let witness = Witness { judge, seen: Arc::clone(&seen) };
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
        let complaint = seen.complaint().or(complaint);
        let trusted = match config.ca_bundle.as_slice() {
            [] => Vec::new(),
            bundle => facts(&tls::trusted(bundle)?),
        };
        Ok(Inspection { server_name, complaint, chain: facts(&seen.chain()), trusted, tls_version })
    }
}

/// The certificates of a `caBundle` that is not empty.
///
/// # Errors
/// Why the API server calls no webhook that has it, in its words.
pub fn bundled(ca_bundle: &[u8]) -> Result<Vec<CertificateFacts>, String> {
    Ok(facts(&tls::bundle(ca_bundle)?))
}

/// Whether the API server would accept `served`, a certificate and those of intermediate authorities as PEM, of a server that
/// it calls as `server_name`; else why not, in its words. None if the first certificate is not for that name, or something
/// cannot be read.
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

/// What the verifier was shown.
#[derive(Debug, Default)]
struct Seen {
    chain: Mutex<Vec<CertificateDer<'static>>>,
    complaint: Mutex<Option<String>>,
}

impl Seen {
    fn chain(&self) -> Vec<CertificateDer<'static>> {
        self.chain.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn complaint(&self) -> Option<String> {
        self.complaint.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Decides as the judge does, and remembers what was shown.
#[derive(Debug)]
struct Witness {
    judge: Arc<dyn ServerCertVerifier>,
    seen: Arc<Seen>,
}

impl ServerCertVerifier for Witness {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let chain = std::iter::once(leaf).chain(intermediates);
        *self.seen.chain.lock().unwrap_or_else(PoisonError::into_inner) =
            chain.map(|certificate| certificate.clone().into_owned()).collect();
        let verdict = self.judge.verify_server_cert(leaf, intermediates, server_name, ocsp_response, now);
        if let Err(error) = &verdict {
            *self.seen.complaint.lock().unwrap_or_else(PoisonError::into_inner) = Some(words(error));
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
