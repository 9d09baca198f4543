//! A certificate authority that lives in memory, and what it issues.

use std::fmt;
use std::time::SystemTime;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType,
};
use time::{Duration, OffsetDateTime};

use crate::{Defect, Name};

/// A certificate authority for tests. Its key (P-256) leaves the memory only by [`CertificateAuthority::key_pem`].
pub struct CertificateAuthority {
    common_name: String,
    certificate_pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A server's certificate with its key, both as PEM.
#[derive(Clone)]
pub struct Leaf {
    /// The certificate, and behind it what else the server shows: usually nothing, as the authority signed it directly.
    pub certificate_pem: String,
    /// The private key (PKCS #8).
    pub key_pem: String,
    /// What goes, base64-encoded, into a `caBundle`: usually the authority's own certificate.
    pub ca_bundle_pem: String,
}

/// Why no certificate could be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A certificate must be for somebody.
    #[error("a certificate needs at least one DNS name or IP address")]
    NoNames,
    /// X.509 allows no more than 64 bytes.
    #[error("the common name `{0}` is longer than 64 bytes")]
    CommonNameTooLong(String),
    /// A defect of names needs a name that can have it.
    #[error("a certificate with the defect `{0}` needs a DNS name, such as that of a service: `hook.ns.svc`")]
    NoSuchName(Defect),
    /// An RSA key or a signature with it could not be made.
    #[error("cannot make an RSA key: {0}")]
    Rsa(#[from] rsa::Error),
    /// What should be an authority's certificate is none.
    #[error("this is not the certificate of an authority in PEM: {0}")]
    NotAnAuthority(String),
    /// What should be an authority's key is none.
    #[error("this is not a private key in PEM: {0}")]
    NotAKey(rcgen::Error),
    /// The certificate is for another key.
    #[error("the private key does not belong to the certificate")]
    OtherKey,
    /// The key or the signature could not be made.
    #[error("cannot make a certificate: {0}")]
    Generation(#[from] rcgen::Error),
}

const LONGEST_COMMON_NAME: usize = 64;
pub(crate) const DAY: Duration = Duration::days(1);
/// The clocks of two machines differ: valid certificates begin an hour ago.
const CLOCK_SKEW: Duration = Duration::hours(1);

impl CertificateAuthority {
    /// Makes an authority whose subject is `common_name`, valid for ten years.
    ///
    /// # Errors
    /// `common_name` is longer than 64 bytes, or no key could be made.
    pub fn new(common_name: &str) -> Result<Self, Error> {
        if common_name.len() > LONGEST_COMMON_NAME {
            return Err(Error::CommonNameTooLong(common_name.to_owned()));
        }
        Self::of(common_name, authority(common_name))
    }

    /// Makes an authority that is as `params` say.
    pub(crate) fn of(common_name: &str, params: CertificateParams) -> Result<Self, Error> {
        let key = KeyPair::generate()?;
        let certificate_pem = params.self_signed(&key)?.pem();
        Ok(Self { common_name: common_name.to_owned(), certificate_pem, issuer: Issuer::new(params, key) })
    }

    /// Its subject.
    pub(crate) fn common_name(&self) -> &str {
        &self.common_name
    }

    /// Who signs.
    pub(crate) fn issuer(&self) -> &Issuer<'static, KeyPair> {
        &self.issuer
    }

    /// Takes up an authority that was made before, such as one that a cluster keeps in a Secret.
    ///
    /// # Errors
    /// One of the two is not what it should be, the certificate may not sign others, or they do not belong together.
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

    /// The authority's private key as PEM (PKCS #8), for whoever has to take it up again. It is a secret.
    pub fn key_pem(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// The authority's own certificate as PEM: what goes, base64-encoded, into a `caBundle`.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// Issues a server certificate for `names`, valid for one year.
    ///
    /// # Errors
    /// `names` is empty, or no key could be made.
    pub fn issue(&self, names: &[Name]) -> Result<Leaf, Error> {
        let (params, key) = leaf(names)?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Leaf::new(certificate.pem(), &key, self.certificate_pem.clone()))
    }

    /// Issues a client certificate for the user `common_name`, valid for one year.
    ///
    /// # Errors
    /// `common_name` is longer than 64 bytes, or no key could be made.
    pub fn issue_for_client(&self, common_name: &str) -> Result<Leaf, Error> {
        self.issue_for_member(common_name, None)
    }

    /// Issues a client certificate for the user `common_name` in the group `organization`, if there is one, valid for one
    /// year.
    ///
    /// # Errors
    /// `common_name` is longer than 64 bytes, or no key could be made.
    pub fn issue_for_member(&self, common_name: &str, organization: Option<&str>) -> Result<Leaf, Error> {
        if common_name.len() > LONGEST_COMMON_NAME {
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

/// Without the key, so that it cannot end up in a log.
impl fmt::Debug for Leaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leaf").field("certificate_pem", &self.certificate_pem).finish_non_exhaustive()
    }
}

/// An authority that signs leaves only.
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

/// Peers read the alternative names; the common name is for people, and a service's full name is often too long for it.
fn common_name(name: &Name) -> String {
    match name {
        Name::Dns(dns) if dns.as_str().len() > LONGEST_COMMON_NAME => dns.first_label().to_owned(),
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
