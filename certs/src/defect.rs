//! Lists the defects that a server certificate can have.

use std::fmt;
use std::str::FromStr;

/// A defect of an otherwise valid certificate. Callers accept some defects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Defect {
    /// `expired`: the certificate expired yesterday.
    Expired,
    /// `not-yet-valid`: the certificate becomes valid tomorrow.
    NotYetValid,
    /// `wrong-name`: the certificate is for a different name.
    WrongName,
    /// `cluster-local-name`: all DNS names end in `.cluster.local`, a suffix that the API server does not use.
    ClusterLocalName,
    /// `wildcard-name`: all DNS names start with `*.`, such as `*.ns.svc` for `hook.ns.svc`. Callers accept it.
    WildcardName,
    /// `no-address`: the certificate contains only DNS names and no addresses.
    NoAddress,
    /// `common-name-only`: the certificate has a common name but no subject alternative names.
    CommonNameOnly,
    /// `unknown-issuer`: the certificate authority that signed the certificate is not in the `caBundle`.
    UnknownIssuer,
    /// `rekeyed-issuer`: the issuer has the same name as the CA in the `caBundle` but a different key.
    RekeyedIssuer,
    /// `missing-intermediate`: the server does not send the certificate of the intermediate CA.
    MissingIntermediate,
    /// `intermediate`: the server sends the certificate of an intermediate CA. Callers accept it.
    Intermediate,
    /// `expired-issuer`: the CA certificate expired yesterday.
    ExpiredIssuer,
    /// `sha1`: the certificate is signed with SHA-1.
    Sha1,
    /// `rsa-1024`: the certificate authority has a 1024-bit RSA key. kube-apiserver accepts it.
    Rsa1024,
    /// `no-server-auth`: the extended key usage allows clients but not servers.
    NoServerAuth,
    /// `no-usage`: the certificate does not have an extended key usage. Callers accept it.
    NoUsage,
    /// `own-bundle`: the `caBundle` contains the server certificate. kube-apiserver accepts it.
    OwnBundle,
    /// `both-bundles`: the `caBundle` contains two CA certificates, as during a rotation. Callers accept it.
    BothBundles,
}

impl Defect {
    /// All defects, in the order in which the documentation lists them.
    pub const ALL: [Self; 18] = [
        Self::Expired,
        Self::NotYetValid,
        Self::WrongName,
        Self::ClusterLocalName,
        Self::WildcardName,
        Self::NoAddress,
        Self::CommonNameOnly,
        Self::UnknownIssuer,
        Self::RekeyedIssuer,
        Self::MissingIntermediate,
        Self::Intermediate,
        Self::ExpiredIssuer,
        Self::Sha1,
        Self::Rsa1024,
        Self::NoServerAuth,
        Self::NoUsage,
        Self::OwnBundle,
        Self::BothBundles,
    ];

    /// Returns whether kube-apiserver accepts a certificate with the defect.
    pub const fn is_accepted(self) -> bool {
        match self {
            Self::WildcardName
            | Self::NoAddress
            | Self::Intermediate
            | Self::Rsa1024
            | Self::NoUsage
            | Self::OwnBundle
            | Self::BothBundles => true,
            Self::Expired
            | Self::NotYetValid
            | Self::WrongName
            | Self::ClusterLocalName
            | Self::CommonNameOnly
            | Self::UnknownIssuer
            | Self::RekeyedIssuer
            | Self::MissingIntermediate
            | Self::ExpiredIssuer
            | Self::Sha1
            | Self::NoServerAuth => false,
        }
    }

    /// Returns the name that fakes files and steps use, such as `not-yet-valid`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::NotYetValid => "not-yet-valid",
            Self::WrongName => "wrong-name",
            Self::ClusterLocalName => "cluster-local-name",
            Self::WildcardName => "wildcard-name",
            Self::NoAddress => "no-address",
            Self::CommonNameOnly => "common-name-only",
            Self::UnknownIssuer => "unknown-issuer",
            Self::RekeyedIssuer => "rekeyed-issuer",
            Self::MissingIntermediate => "missing-intermediate",
            Self::Intermediate => "intermediate",
            Self::ExpiredIssuer => "expired-issuer",
            Self::Sha1 => "sha1",
            Self::Rsa1024 => "rsa-1024",
            Self::NoServerAuth => "no-server-auth",
            Self::NoUsage => "no-usage",
            Self::OwnBundle => "own-bundle",
            Self::BothBundles => "both-bundles",
        }
    }
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The error for an unknown defect name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid certificate defect `{0}`: must be {defects}", defects = names())]
pub struct UnknownDefect(String);

fn names() -> String {
    let names = Defect::ALL.map(Defect::as_str);
    let (last, others) = names.split_last().unwrap_or((&"", &[]));
    format!("{} or {last}", others.join(", "))
}

impl FromStr for Defect {
    type Err = UnknownDefect;

    fn from_str(text: &str) -> Result<Self, UnknownDefect> {
        Self::ALL
            .into_iter()
            .find(|defect| defect.as_str() == text)
            .ok_or_else(|| UnknownDefect(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_defects_are_parsed_back() {
        for defect in Defect::ALL {
            assert_eq!(defect.to_string().parse(), Ok(defect));
        }
    }

    #[test]
    fn error_for_an_unknown_defect_lists_all_defects() {
        let message = "Expired".parse::<Defect>().unwrap_err().to_string();
        assert!(message.contains("`Expired`"), "{message}");
        for defect in Defect::ALL {
            assert!(message.contains(defect.as_str()), "{message}");
        }
    }
}
