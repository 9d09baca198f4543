//! Describes the certificate of a fake and the issuer of the certificate.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use certs::{CertificateAuthority, Defect};
use serde::{Deserialize, Serialize};

/// The certificate of a fake: `valid`, or the name of a [`Defect`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub enum Certificate {
    /// A certificate without a defect.
    #[default]
    Valid,
    /// A certificate with a defect.
    Defective(Defect),
}

/// The error for an unknown certificate name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid certificate `{0}`: must be valid, {defects}", defects = defects())]
pub struct UnknownCertificate(String);

fn defects() -> String {
    let names = Defect::ALL.map(Defect::as_str);
    let (last, others) = names.split_last().unwrap_or((&"", &[]));
    format!("{} or {last}", others.join(", "))
}

impl FromStr for Certificate {
    type Err = UnknownCertificate;

    fn from_str(text: &str) -> Result<Self, UnknownCertificate> {
        if text == "valid" {
            return Ok(Self::Valid);
        }
        Defect::ALL
            .into_iter()
            .find(|defect| defect.as_str() == text)
            .map(Self::Defective)
            .ok_or_else(|| UnknownCertificate(text.to_owned()))
    }
}

impl TryFrom<String> for Certificate {
    type Error = UnknownCertificate;

    fn try_from(text: String) -> Result<Self, UnknownCertificate> {
        text.parse()
    }
}

impl From<Certificate> for String {
    fn from(certificate: Certificate) -> Self {
        certificate.to_string()
    }
}

impl fmt::Display for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Valid => f.pad("valid"),
            Self::Defective(defect) => defect.fmt(f),
        }
    }
}

/// The issuer of a fake's certificate.
#[derive(Clone, Debug, Default)]
pub enum Authority {
    /// A new certificate authority for this fake.
    #[default]
    Own,
    /// A certificate authority that several fakes share.
    Shared(Arc<CertificateAuthority>),
}
