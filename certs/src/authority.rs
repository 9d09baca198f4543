//! Creates in-memory certificate authorities and issues certificates.

use std::fmt;
use std::time::SystemTime;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType,
};
use time::{Duration, OffsetDateTime};

use crate::{Defect, Name};

/// A certificate authority for tests. Only [`CertificateAuthority::key_pem`] returns its P-256 key.
pub struct CertificateAuthority {
    common_name: String,
    certificate_pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate with its key, in PEM format.
#[derive(Clone)]
pub struct Leaf {
    /// The certificate, followed by the intermediate certificates, if any.
    pub certificate_pem: String,
    /// The private key (PKCS #8).
    pub key_pem: String,
    /// The contents of the `caBundle` field, usually the CA certificate.
    pub ca_bundle_pem: String,
}

/// The reason why a certificate could not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The list of names is empty.
    #[error("missing names: a certificate must have at least one DNS name or IP address")]
    NoNames,
    /// The common name is longer than the 64 bytes that X.509 allows.
    #[error("invalid common name `{0}`: must be at most 64 bytes long")]
    CommonNameTooLong(String),
    /// None of the names can have the defect.
    #[error("the defect `{0}` requires a DNS name, for example `hook.ns.svc`")]
    NoSuchName(Defect),
    /// An RSA key or signature could not be created.
    #[error("cannot create an RSA key: {0}")]
    Rsa(#[from] rsa::Error),
    /// The PEM text is not the certificate of a certificate authority.
    #[error("invalid CA certificate: {0}")]
    NotAnAuthority(String),
    /// The PEM text is not a private key.
    #[error("invalid private key: {0}")]
    NotAKey(rcgen::Error),
    /// The certificate was issued for a different key.
    #[error("the private key does not belong to the certificate")]
    OtherKey,
    /// The key or the signature could not be created.
    #[error("cannot create a certificate: {0}")]
    Generation(#[from] rcgen::Error),
}

const MAX_COMMON_NAME_LENGTH: usize = 64;
pub(crate) const DAY: Duration = Duration::days(1);
/// The duration by which certificates are backdated, because clocks differ between machines.
const CLOCK_SKEW: Duration = Duration::hours(1);

impl CertificateAuthority {
    /// Creates a certificate authority with the subject `common_name`, valid for ten years.
    ///
    /// # Errors
    /// Returns an error if `common_name` is longer than 64 bytes, or if the key cannot be created.
    pub fn new(common_name: &str) -> Result<Self, Error> {
        if common_name.len() > MAX_COMMON_NAME_LENGTH {
            return Err(Error::CommonNameTooLong(common_name.to_owned()));
        }
        Self::with_params(common_name, authority(common_name))
    }

    /// Creates a self-signed certificate authority with a new key from certificate parameters.
    pub(crate) fn with_params(common_name: &str, params: CertificateParams) -> Result<Self, Error> {
        let key = KeyPair::generate()?;
        let certificate_pem = params.self_signed(&key)?.pem();
        Ok(Self { common_name: common_name.to_owned(), certificate_pem, issuer: Issuer::new(params, key) })
    }

    /// Returns the common name of the subject.
    pub(crate) fn common_name(&self) -> &str {
        &self.common_name
    }

    /// Returns the issuer that signs certificates for this certificate authority.
    pub(crate) fn issuer(&self) -> &Issuer<'static, KeyPair> {
        &self.issuer
    }

    /// Loads an existing certificate authority, for example from a Secret.
    ///
    /// # Errors
    /// Returns an error if the certificate or the key is invalid, if the certificate is not a CA certificate, or if it
    /// belongs to a different key.
    pub fn from_pem(certificate_pem: &str, key_pem: &str) -> Result<Self, Error> {
        let not_an_authority = |error: String| Error::NotAnAuthority(error);
        let (_, pem) = x509_parser::pem::parse_x509_pem(certificate_pem.as_bytes())
            .map_err(|error| not_an_authority(error.to_string()))?;
        let certificate = pem.parse_x509().map_err(|error| not_an_authority(error.to_string()))?;
        if !certificate.is_ca() {
            return Err(not_an_authority("its basic constraints do not allow it to sign".to_owned()));
        }
        let key = KeyPair::from_pem(key_pem).map_err(Error::NotAKey)?;
        if certificate.public_key().subject_public_key.data.as_ref() != key.public_key_raw() {
            return Err(Error::OtherKey);
        }
        let common_name = certificate.subject().iter_common_name().next().and_then(|name| name.as_str().ok());
        let common_name = common_name.unwrap_or_default().to_owned();
        let issuer = Issuer::from_ca_cert_pem(certificate_pem, key)?;
        Ok(Self { common_name, certificate_pem: certificate_pem.to_owned(), issuer })
    }

    /// Returns the secret private key in PEM format (PKCS #8).
    pub fn key_pem(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// Returns the CA certificate in PEM format. Its base64 encoding is the value of a `caBundle`.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// Issues a server certificate for `names`, valid for one year.
    ///
    /// # Errors
    /// Returns an error if `names` is empty, or if the key cannot be created.
    pub fn issue(&self, names: &[Name]) -> Result<Leaf, Error> {
        let (params, key) = leaf(names)?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Leaf::new(certificate.pem(), &key, self.certificate_pem.clone()))
    }

    /// Issues a client certificate for the user `common_name`, valid for one year.
    ///
    /// # Errors
    /// Returns an error if `common_name` is longer than 64 bytes, or if the key cannot be created.
    pub fn issue_for_client(&self, common_name: &str) -> Result<Leaf, Error> {
        self.issue_for_member(common_name, None)
    }

    /// Issues a client certificate for the user `common_name`, valid for one year.
    ///
    /// If `organization` is set, the user belongs to the group with that name.
    ///
    /// # Errors
    /// Returns an error if `common_name` is longer than 64 bytes, or if the key cannot be created.
    pub fn issue_for_member(&self, common_name: &str, organization: Option<&str>) -> Result<Leaf, Error> {
        if common_name.len() > MAX_COMMON_NAME_LENGTH {
            return Err(Error::CommonNameTooLong(common_name.to_owned()));
        }
        let (mut params, key) = end_entity(common_name, ExtendedKeyUsagePurpose::ClientAuth)?;
        if let Some(organization) = organization {
            params.distinguished_name.push(DnType::OrganizationName, organization);
        }
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Leaf::new(certificate.pem(), &key, self.certificate_pem.clone()))
    }
}

impl fmt::Debug for CertificateAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertificateAuthority")
            .field("certificate_pem", &self.certificate_pem)
            .finish_non_exhaustive()
    }
}

impl Leaf {
    pub(crate) fn new(certificate_pem: String, key: &KeyPair, ca_bundle_pem: String) -> Self {
        Self { certificate_pem, key_pem: key.serialize_pem(), ca_bundle_pem }
    }
}

/// Formats the certificate without the private key.
impl fmt::Debug for Leaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leaf").field("certificate_pem", &self.certificate_pem).finish_non_exhaustive()
    }
}

/// Returns the parameters of a certificate authority that signs only leaf certificates.
pub(crate) fn authority(common_name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = subject(common_name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.not_before = now() - CLOCK_SKEW;
    params.not_after = now() + 3_650 * DAY;
    params
}

pub(crate) fn leaf(names: &[Name]) -> Result<(CertificateParams, KeyPair), Error> {
    let name = common_name(names.first().ok_or(Error::NoNames)?);
    let (mut params, key) = end_entity(&name, ExtendedKeyUsagePurpose::ServerAuth)?;
    params.subject_alt_names = names.iter().map(alternative_name).collect::<Result<_, _>>()?;
    Ok((params, key))
}

fn end_entity(
    common_name: &str,
    usage: ExtendedKeyUsagePurpose,
) -> Result<(CertificateParams, KeyPair), Error> {
    let mut params = CertificateParams::default();
    params.distinguished_name = subject(common_name);
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![usage];
    params.use_authority_key_identifier_extension = true;
    params.not_before = now() - CLOCK_SKEW;
    params.not_after = now() + 365 * DAY;
    Ok((params, KeyPair::generate()?))
}

fn subject(common_name: &str) -> DistinguishedName {
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, common_name);
    subject
}

/// Returns the name for use as a common name, or only its first label if the name is too long.
fn common_name(name: &Name) -> String {
    match name {
        Name::Dns(dns) if dns.as_str().len() > MAX_COMMON_NAME_LENGTH => dns.first_label().to_owned(),
        Name::Dns(_) | Name::Ip(_) => name.to_string(),
    }
}

fn alternative_name(name: &Name) -> Result<SanType, rcgen::Error> {
    Ok(match name {
        Name::Dns(dns) => SanType::DnsName(dns.as_str().try_into()?),
        Name::Ip(address) => SanType::IpAddress(*address),
    })
}

pub(crate) fn now() -> OffsetDateTime {
    SystemTime::now().into()
}
