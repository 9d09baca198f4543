//! Loads, generates, and uses the keys that sign and verify service account tokens.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kubernetes_types::status::Unsupported;
use pem::Pem;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED,
    ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_SHA256, RsaKeyPair, UnparsedPublicKey,
};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use x509_parser::certificate::X509Certificate;
use x509_parser::oid_registry::{
    OID_EC_P256, OID_KEY_TYPE_EC_PUBLIC_KEY, OID_NIST_EC_P384, OID_NIST_EC_P521, OID_PKCS1_RSAENCRYPTION,
};
use x509_parser::prelude::FromDer as _;
use x509_parser::public_key::PublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;

/// The signature algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Rs256,
    Es256,
    Es384,
}

impl Algorithm {
    /// Returns the name of the algorithm in the `alg` header.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
        }
    }
}

/// The reason why a key cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(clippy::exhaustive_enums, reason = "callers use another exit status for unsupported keys")]
pub enum KeyError {
    /// The PEM data does not contain a key; the value is kube-apiserver's message.
    #[error("{0}")]
    None(&'static str),
    /// The PEM data contains a key that kube-apiserver supports but admit does not.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
}

/// A key that verifies tokens.
#[derive(Clone, PartialEq, Eq)]
pub struct VerifyingKey {
    pub(crate) id: String,
    pub(crate) algorithm: Algorithm,
    /// The bits of the `subjectPublicKey`.
    bits: Vec<u8>,
    jwk: Jwk,
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifyingKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A JSON Web Key with its members in kube-apiserver's order.
///
/// Source: go-jose jwk.go, `rawJSONWebKey`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Jwk {
    #[serde(rename = "use")]
    usage: &'static str,
    kty: &'static str,
    kid: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    crv: &'static str,
    alg: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    x: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    y: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    n: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    e: String,
}

/// kube-apiserver's error for a file without a public key.
const NO_PUBLIC_KEY: &str = "data does not contain any valid RSA or ECDSA public keys";
/// kube-apiserver's error for a file without a private key.
const NO_PRIVATE_KEY: &str = "data does not contain a valid RSA or ECDSA private key";

impl VerifyingKey {
    /// Loads all keys in PEM data: public keys, private keys, and keys of certificates. Ignores other blocks.
    ///
    /// # Errors
    /// Returns an error if the data does not contain a key, or contains a key that admit does not support.
    ///
    /// Source: client-go util/keyutil/key.go, `ParsePublicKeysPEM`.
    /// Rule: TOK-13.
    pub fn all_of_pem(pem: &[u8]) -> Result<Vec<Self>, KeyError> {
        let mut keys = Vec::new();
        for block in pem::parse_many(pem).unwrap_or_default() {
            if let Some(key) = SigningKey::of_block(&block)? {
                keys.push(key.public);
                continue;
            }
            let of_certificate = X509Certificate::from_der(block.contents());
            let key = match of_certificate {
                Ok((_, certificate)) => Self::of_info(certificate.public_key())?,
                Err(_) => Self::of_der(block.contents())?,
            };
            keys.extend(key);
        }
        if keys.is_empty() { Err(KeyError::None(NO_PUBLIC_KEY)) } else { Ok(keys) }
    }

    fn of_der(der: &[u8]) -> Result<Option<Self>, KeyError> {
        match SubjectPublicKeyInfo::from_der(der) {
            Ok((_, info)) => Self::of_info(&info),
            Err(_) => Ok(None),
        }
    }

    /// Loads a public key. Returns `None` for a key that cannot be parsed or has an unknown type or curve.
    ///
    /// Source: kubernetes pkg/serviceaccount/jwt.go, `keyIDFromPublicKey`; openidmetadata.go, `jwkFromPublicKey`.
    fn of_info(info: &SubjectPublicKeyInfo<'_>) -> Result<Option<Self>, KeyError> {
        let curve = info.algorithm.parameters.as_ref().and_then(|it| it.as_oid().ok());
        let algorithm = if info.algorithm.algorithm == OID_PKCS1_RSAENCRYPTION {
            Algorithm::Rs256
        } else if info.algorithm.algorithm != OID_KEY_TYPE_EC_PUBLIC_KEY {
            return Ok(None);
        } else if curve.as_ref() == Some(&OID_EC_P256) {
            Algorithm::Es256
        } else if curve.as_ref() == Some(&OID_NIST_EC_P384) {
            Algorithm::Es384
        } else if curve.as_ref() == Some(&OID_NIST_EC_P521) {
            return Err(unsupported("P-521 keys"));
        } else {
            return Ok(None);
        };
        let id = URL_SAFE_NO_PAD.encode(Sha256::digest(info.raw));
        let Ok(public) = info.parsed() else { return Ok(None) };
        let Some(jwk) = Jwk::new(id.clone(), algorithm, &public) else { return Ok(None) };
        let bits = info.subject_public_key.data.to_vec();
        Ok(Some(Self { id, algorithm, bits, jwk }))
    }

    pub(crate) fn jwk(&self) -> &Jwk {
        &self.jwk
    }

    /// Returns whether `signature` is a signature of `message` by this key with `algorithm`.
    pub(crate) fn verifies(&self, algorithm: &str, message: &[u8], signature: &[u8]) -> bool {
        let is_valid = match self.algorithm {
            Algorithm::Rs256 => {
                UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, &self.bits).verify(message, signature)
            }
            Algorithm::Es256 => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &self.bits).verify(message, signature)
            }
            Algorithm::Es384 => {
                UnparsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, &self.bits).verify(message, signature)
            }
        };
        algorithm == self.algorithm.as_str() && is_valid.is_ok()
    }
}

impl Jwk {
    fn new(kid: String, algorithm: Algorithm, key: &PublicKey<'_>) -> Option<Self> {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let number = |bytes: &[u8]| {
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            text(bytes.get(zeros..).unwrap_or_default())
        };
        let alg = algorithm.as_str();
        let none = String::new;
        match key {
            PublicKey::RSA(key) => {
                let (n, e) = (number(key.modulus), number(key.exponent));
                Some(Self { usage: "sig", kty: "RSA", kid, crv: "", alg, x: none(), y: none(), n, e })
            }
            PublicKey::EC(point) => {
                let coordinates = point.data().strip_prefix(&[4])?;
                let (x, y) = coordinates.split_at_checked(coordinates.len() / 2)?;
                let crv = if algorithm == Algorithm::Es256 { "P-256" } else { "P-384" };
                let (x, y) = (text(x), text(y));
                Some(Self { usage: "sig", kty: "EC", kid, crv, alg, x, y, n: none(), e: none() })
            }
            PublicKey::DSA(_)
            | PublicKey::GostR3410(_)
            | PublicKey::GostR3410_2012(_)
            | PublicKey::Unknown(_) => None,
        }
    }
}

/// A private key for signing service account tokens, and its public key.
pub struct SigningKey {
    pair: Pair,
    public: VerifyingKey,
}

enum Pair {
    Rsa(Box<RsaKeyPair>),
    Ecdsa(Box<EcdsaKeyPair>),
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("id", &self.public.id).finish_non_exhaustive()
    }
}

impl SigningKey {
    /// Loads the first private key in PEM data.
    ///
    /// # Errors
    /// Returns an error if the data does not contain a key, or contains a key that admit does not support.
    ///
    /// Source: client-go util/keyutil/key.go, `ParsePrivateKeyPEM`.
    /// Rule: TOK-13.
    pub fn of_pem(pem: &[u8]) -> Result<Self, KeyError> {
        for block in pem::parse_many(pem).unwrap_or_default() {
            if let Some(key) = Self::of_block(&block)? {
                return Ok(key);
            }
        }
        Err(KeyError::None(NO_PRIVATE_KEY))
    }

    /// Generates an ECDSA P-256 key. Returns `None` if the system cannot generate random numbers.
    pub(crate) fn generate() -> Option<Self> {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).ok()?;
        Self::ecdsa(key.as_ref(), Algorithm::Es256)
    }

    /// Loads the private key in a PEM block. Returns `None` for a block of a different type.
    fn of_block(block: &Pem) -> Result<Option<Self>, KeyError> {
        let der = block.contents();
        let rejected = |error: ring::error::KeyRejected| match error.to_string().as_str() {
            "InvalidEncoding" | "VersionNotSupported" => Ok(None),
            why => Err(unsupported(&format!("private keys other than RSA, P-256, and P-384 ({why})"))),
        };
        let curves = [Algorithm::Es256, Algorithm::Es384];
        match block.tag() {
            "RSA PRIVATE KEY" => RsaKeyPair::from_der(der).map_or_else(rejected, |pair| Ok(Self::rsa(pair))),
            "EC PRIVATE KEY" => {
                let of = |algorithm| Self::ecdsa(&as_pkcs8(der, algorithm), algorithm);
                match curves.into_iter().find_map(of) {
                    None if !der.is_empty() => Err(unsupported("keys on curves other than P-256 and P-384")),
                    key => Ok(key),
                }
            }
            "PRIVATE KEY" => match curves.into_iter().find_map(|algorithm| Self::ecdsa(der, algorithm)) {
                Some(key) => Ok(Some(key)),
                None => RsaKeyPair::from_pkcs8(der).map_or_else(rejected, |pair| Ok(Self::rsa(pair))),
            },
            _ => Ok(None),
        }
    }

    fn rsa(pair: RsaKeyPair) -> Option<Self> {
        let algorithm = [element(OBJECT_IDENTIFIER, &RSA), element(NULL, &[])].concat();
        let public = VerifyingKey::of_der(&info(&algorithm, pair.public_key().as_ref())).ok()??;
        Some(Self { pair: Pair::Rsa(Box::new(pair)), public })
    }

    fn ecdsa(pkcs8: &[u8], algorithm: Algorithm) -> Option<Self> {
        let signing = match algorithm {
            Algorithm::Es256 => &ECDSA_P256_SHA256_FIXED_SIGNING,
            Algorithm::Es384 => &ECDSA_P384_SHA384_FIXED_SIGNING,
            Algorithm::Rs256 => return None,
        };
        let pair = EcdsaKeyPair::from_pkcs8(signing, pkcs8, &SystemRandom::new()).ok()?;
        let public = VerifyingKey::of_der(&info(&curve(algorithm), pair.public_key().as_ref())).ok()??;
        Some(Self { pair: Pair::Ecdsa(Box::new(pair)), public })
    }

    /// Returns the public key for verifying the signatures of this key.
    pub fn public(&self) -> &VerifyingKey {
        &self.public
    }

    /// Signs a message. Returns `None` if the system cannot generate random numbers.
    pub(crate) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).ok()?;
                Some(signature)
            }
            Pair::Ecdsa(pair) => Some(pair.sign(&random, message).ok()?.as_ref().to_vec()),
        }
    }
}

fn unsupported(what: &str) -> KeyError {
    KeyError::Unsupported(Unsupported { what: what.to_owned() })
}

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const NULL: u8 = 0x05;
const OBJECT_IDENTIFIER: u8 = 0x06;
const SEQUENCE: u8 = 0x30;

/// The DER-encoded content of the object identifier `rsaEncryption`.
const RSA: [u8; 9] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
/// The DER-encoded content of the object identifier `id-ecPublicKey`.
const EC: [u8; 7] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
/// The DER-encoded content of the object identifier `secp256r1`.
const P256: [u8; 8] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
/// The DER-encoded content of the object identifier `secp384r1`.
const P384: [u8; 5] = [0x2b, 0x81, 0x04, 0x00, 0x22];

/// Returns the members of an ECDSA `AlgorithmIdentifier`.
fn curve(algorithm: Algorithm) -> Vec<u8> {
    let curve = if algorithm == Algorithm::Es384 { &P384[..] } else { &P256 };
    [element(OBJECT_IDENTIFIER, &EC), element(OBJECT_IDENTIFIER, curve)].concat()
}

/// Encodes a `SubjectPublicKeyInfo`.
fn info(algorithm: &[u8], key: &[u8]) -> Vec<u8> {
    let bits = [&[0], key].concat();
    element(SEQUENCE, &[element(SEQUENCE, algorithm), element(BIT_STRING, &bits)].concat())
}

/// Converts an `ECPrivateKey` of RFC 5915 to PKCS #8.
fn as_pkcs8(key: &[u8], algorithm: Algorithm) -> Vec<u8> {
    let version = element(INTEGER, &[0]);
    let members = [version, element(SEQUENCE, &curve(algorithm)), element(OCTET_STRING, key)];
    element(SEQUENCE, &members.concat())
}

/// Encodes a DER element.
fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let zeros = length.iter().take_while(|byte| **byte == 0).count();
    let length = length.get(zeros..).unwrap_or_default();
    let mut der = vec![tag];
    match (content.len(), u8::try_from(length.len())) {
        (short @ 0..0x80, _) => der.extend(u8::try_from(short)),
        (_, count) => {
            der.extend(count.map(|count| 0x80 | count));
            der.extend(length);
        }
    }
    der.extend(content);
    der
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn signs(key: &SigningKey, algorithm: &str) {
        let signature = key.sign(b"message").unwrap();
        assert!(key.public().verifies(algorithm, b"message", &signature));
        assert!(!key.public().verifies(algorithm, b"messagE", &signature));
        assert!(!key.public().verifies("none", b"message", &signature));
        assert_eq!(key.public().algorithm.as_str(), algorithm);
    }

    fn pem(tag: &str, der: &[u8]) -> Vec<u8> {
        pem::encode(&Pem::new(tag, der)).into_bytes()
    }

    #[test]
    fn generated_key_signs() {
        signs(&SigningKey::generate().unwrap(), "ES256");
    }

    #[test]
    fn ecdsa_keys_are_parsed() {
        for (curve, algorithm) in
            [(&rcgen::PKCS_ECDSA_P256_SHA256, "ES256"), (&rcgen::PKCS_ECDSA_P384_SHA384, "ES384")]
        {
            let pair = rcgen::KeyPair::generate_for(curve).unwrap();
            let key = SigningKey::of_pem(pair.serialize_pem().as_bytes()).unwrap();
            signs(&key, algorithm);
            let public = VerifyingKey::all_of_pem(pair.public_key_pem().as_bytes()).unwrap();
            assert_eq!(public, [key.public().clone()]);
            let of_private = VerifyingKey::all_of_pem(pair.serialize_pem().as_bytes()).unwrap();
            assert_eq!(of_private, public);
            let certificate = rcgen::CertificateParams::default().self_signed(&pair).unwrap();
            assert_eq!(VerifyingKey::all_of_pem(certificate.pem().as_bytes()).unwrap(), public);
        }
    }

    #[test]
    fn rsa_keys_are_parsed() {
        use rsa::pkcs1::EncodeRsaPrivateKey as _;
        use rsa::pkcs8::{EncodePrivateKey as _, EncodePublicKey as _};

        let private = rsa::RsaPrivateKey::new(&mut rsa::rand_core::OsRng, 2048).unwrap();
        let der = private.to_public_key().to_public_key_der().unwrap();
        let public = VerifyingKey::all_of_pem(&pem("PUBLIC KEY", der.as_bytes())).unwrap();
        let pkcs1 = pem("RSA PRIVATE KEY", private.to_pkcs1_der().unwrap().as_bytes());
        let pkcs8 = pem("PRIVATE KEY", private.to_pkcs8_der().unwrap().as_bytes());
        for text in [&pkcs1, &pkcs8] {
            let key = SigningKey::of_pem(text).unwrap();
            signs(&key, "RS256");
            assert_eq!(public, [key.public().clone()]);
        }
        let jwk = serde_json::to_string(public[0].jwk()).unwrap();
        assert!(jwk.starts_with(r#"{"use":"sig","kty":"RSA","kid":""#), "{jwk}");
        assert!(jwk.contains(r#","alg":"RS256","n":""#) && jwk.ends_with(r#","e":"AQAB"}"#), "{jwk}");
    }

    #[test]
    fn unsupported_keys_are_reported() {
        let small = rsa::RsaPrivateKey::new(&mut rsa::rand_core::OsRng, 1024).unwrap();
        let der = rsa::pkcs8::EncodePrivateKey::to_pkcs8_der(&small).unwrap();
        let read = SigningKey::of_pem(&pem("PRIVATE KEY", der.as_bytes()));
        assert!(matches!(read, Err(KeyError::Unsupported(_))), "{read:?}");
    }

    /// Parses a key in the format that `openssl ecparam -genkey` writes.
    #[test]
    fn sec1_ecdsa_keys_are_parsed() {
        let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
        let pkcs8 = pair.serialize_der();
        // Version, algorithm, and the key in an octet string.
        let key = &pkcs8[element(SEQUENCE, &curve(Algorithm::Es256)).len() + 3 + 3 + 2..];
        let own =
            [pem("EC PARAMETERS", &element(OBJECT_IDENTIFIER, &P256)), pem("EC PRIVATE KEY", key)].concat();
        signs(&SigningKey::of_pem(&own).unwrap(), "ES256");
    }

    #[test]
    fn files_without_keys_have_upstream_errors() {
        for text in ["", "nonsense", "-----BEGIN EC PARAMETERS-----\nAAAA\n-----END EC PARAMETERS-----\n"] {
            assert_eq!(SigningKey::of_pem(text.as_bytes()).unwrap_err().to_string(), NO_PRIVATE_KEY);
            assert_eq!(VerifyingKey::all_of_pem(text.as_bytes()).unwrap_err().to_string(), NO_PUBLIC_KEY);
        }
        assert!(matches!(SigningKey::of_pem(&pem("PRIVATE KEY", b"x")), Err(KeyError::None(_))));
    }
}
