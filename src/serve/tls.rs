//! The certificate and the token of a server that lives as long as the command.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use base64::Engine as _;
use certs::{CertificateAuthority, Leaf, Name};
use rustls::crypto::{GetRandomFailed, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::clients::ClientAuthorities;
use crate::Failure;

/// A certificate and who signed it.
pub(crate) struct Credentials {
    authority: CertificateAuthority,
    leaf: Leaf,
}

impl Credentials {
    /// A certificate for `address`, and for the names under which a client on this machine reaches it.
    pub(crate) fn new(address: SocketAddr) -> Result<Self, Failure> {
        let failure =
            |error: certs::Error| Failure::environment(format!("cannot make a certificate: {error}"));
        let authority = CertificateAuthority::new("admit serve").map_err(failure)?;
        let localhost = "localhost".parse().map_err(|error: certs::InvalidName| {
            Failure::environment(format!("cannot make a certificate: {error}"))
        })?;
        let mut names = vec![localhost];
        for address in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST), address.ip()] {
            if !names.contains(&Name::from(address)) {
                names.push(Name::from(address));
            }
        }
        let leaf = authority.issue(&names).map_err(failure)?;
        Ok(Self { authority, leaf })
    }

    pub(crate) fn certificate_authority_pem(&self) -> &str {
        self.authority.certificate_pem()
    }

    /// As [`server_config`] makes it.
    pub(crate) fn server_config(&self) -> Result<rustls::ServerConfig, Failure> {
        self.server_config_for(None)
    }

    /// As [`server_config`] makes it.
    pub(crate) fn server_config_for(
        &self,
        clients: Option<&ClientAuthorities>,
    ) -> Result<rustls::ServerConfig, Failure> {
        let (certificate, key) = (self.leaf.certificate_pem.as_bytes(), self.leaf.key_pem.as_bytes());
        server_config(certificate, key, clients)
            .map_err(|why| Failure::environment(format!("cannot use the certificate: {why}")))
    }
}

/// HTTP/2 and HTTP/1.1, as kube-apiserver offers them, with a certificate and its key in PEM.
///
/// # Errors
/// The certificate or the key is none, or they do not belong together.
pub(crate) fn server_config(
    certificate_pem: &[u8],
    key_pem: &[u8],
    clients: Option<&ClientAuthorities>,
) -> Result<rustls::ServerConfig, String> {
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificate_pem)
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())?;
    let key = PrivateKeyDer::from_pem_slice(key_pem).map_err(|error| error.to_string())?;
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let config = match clients {
        Some(clients) => config.with_client_cert_verifier(clients.handshake()),
        None => config.with_no_client_auth(),
    };
    let mut config = config.with_single_cert(chain, key).map_err(|error| error.to_string())?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// How a client on this machine reaches a server that listens on `address`.
pub(crate) fn client_url(address: SocketAddr) -> String {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    format!("https://{}", SocketAddr::new(ip, address.port()))
}

/// 256 random bits.
pub(crate) fn random_token() -> Result<String, Failure> {
    let mut bytes = [0; 32];
    ring::default_provider()
        .secure_random
        .fill(&mut bytes)
        .map_err(|GetRandomFailed| Failure::environment("the system gives no random numbers"))?;
    Ok(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_tokens_are_alike() {
        let (one, other) = (random_token().unwrap(), random_token().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.len(), 43);
    }

    #[test]
    fn a_server_on_all_addresses_is_reached_by_loopback() {
        for (address, url) in [
            ("127.0.0.1:1", "https://127.0.0.1:1"),
            ("0.0.0.0:1", "https://127.0.0.1:1"),
            ("[::]:1", "https://[::1]:1"),
            ("192.0.2.1:1", "https://192.0.2.1:1"),
        ] {
            assert_eq!(client_url(address.parse().unwrap()), url);
        }
    }
}
