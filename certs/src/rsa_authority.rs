//! Creates certificate authorities with RSA keys, including insecure keys.
//!
//! ring supports neither RSA key generation nor SHA-1 signatures, so the crates `rsa` and `sha1` are used.

use rcgen::{CertificateParams, Issuer, PKCS_RSA_SHA256, PublicKeyData, SignatureAlgorithm, SigningKey};
use rsa::pkcs1::EncodeRsaPublicKey;
use rsa::pkcs1v15;
use rsa::sha2::Sha256;
use rsa::signature::{SignatureEncoding, Signer};
use rsa::{RsaPrivateKey, rand_core::OsRng};
use sha1::Sha1;

use crate::Error;

/// The digest algorithm in the signatures of a certificate authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Digest {
    Sha1,
    Sha256,
}

/// An RSA key that signs certificates, with the digest of the signatures.
pub(crate) struct RsaKey {
    private: RsaPrivateKey,
    public_der: Vec<u8>,
    digest: Digest,
}

impl RsaKey {
    pub(crate) fn generate(bits: usize, digest: Digest) -> Result<Self, Error> {
        let private = RsaPrivateKey::new(&mut OsRng, bits)?;
        let public_der = private.to_public_key().to_pkcs1_der().map_err(rsa::Error::from)?.into_vec();
        Ok(Self { private, public_der, digest })
    }

    /// Creates a CA certificate in PEM format, and returns it with its issuer.
    pub(crate) fn authority(
        self,
        params: CertificateParams,
    ) -> Result<(String, Issuer<'static, Self>), Error> {
        let certificate = params.self_signed(&self)?;
        let pem = self.digest.pem(certificate.der());
        Ok((pem, Issuer::new(params, self)))
    }

    /// Signs a leaf certificate and returns it in PEM format.
    pub(crate) fn sign(
        issuer: &Issuer<'static, Self>,
        digest: Digest,
        params: &CertificateParams,
        key: &rcgen::KeyPair,
    ) -> Result<String, Error> {
        Ok(digest.pem(params.signed_by(key, issuer)?.der()))
    }
}

impl PublicKeyData for RsaKey {
    fn der_bytes(&self) -> &[u8] {
        &self.public_der
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_RSA_SHA256
    }
}

impl SigningKey for RsaKey {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        let message = self.digest.named_in(message);
        let private = self.private.clone();
        Ok(match self.digest {
            Digest::Sha1 => pkcs1v15::SigningKey::<Sha1>::new(private).sign(&message).to_vec(),
            Digest::Sha256 => pkcs1v15::SigningKey::<Sha256>::new(private).sign(&message).to_vec(),
        })
    }
}

/// The DER-encoded object identifier of `sha256WithRSAEncryption`.
///
/// Source: RFC 8017, appendix C.
const SHA256_WITH_RSA: [u8; 11] = [6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11];
const SHA1_WITH_RSA: [u8; 11] = [6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 5];

impl Digest {
    /// Replaces the signature algorithm in a certificate from rcgen, which supports only SHA-256, with this digest.
    ///
    /// The object identifiers of both algorithms have the same length.
    fn named_in(self, der: &[u8]) -> Vec<u8> {
        if self != Self::Sha1 {
            return der.to_vec();
        }
        let mut named = Vec::with_capacity(der.len());
        let mut rest = der;
        while let Some((byte, after)) = rest.split_first() {
            rest = if let Some(after) = rest.strip_prefix(&SHA256_WITH_RSA) {
                named.extend(SHA1_WITH_RSA);
                after
            } else {
                named.push(*byte);
                after
            };
        }
        named
    }

    fn pem(self, der: &[u8]) -> String {
        let (label, der) = ("CERTIFICATE", self.named_in(der));
        pem::encode(&pem::Pem::new(label, der))
    }
}
