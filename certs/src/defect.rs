//! What can be wrong with a server's certificate.

use std::fmt;
use std::str::FromStr;

/// One thing that is wrong with a certificate that is otherwise valid, or that looks wrong and is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Defect {
    /// `expired`: its time ended yesterday.
    Expired,
    /// `not-yet-valid`: its time begins tomorrow.
    NotYetValid,
    /// `wrong-name`: it is for a name that nobody asks for.
    WrongName,
    /// `cluster-local-name`: its DNS names all end in `.cluster.local`, which the API server does not ask for.
    ClusterLocalName,
    /// `wildcard-name`: its DNS names all begin with `*.`, as `*.ns.svc` for `hook.ns.svc`. Callers accept it.
    WildcardName,
    /// `no-address`: it is for DNS names only, not for addresses.
    NoAddress,
    /// `common-name-only`: the name stands in the subject's common name, and there are no subject alternative names.
    CommonNameOnly,
    /// `unknown-issuer`: another authority signed it than the one whose certificate the caller is given.
    UnknownIssuer,
    /// `rekeyed-issuer`: an authority of the same name, but with another key, signed it.
    RekeyedIssuer,
    /// `missing-intermediate`: an intermediate authority signed it, which the server does not show.
    MissingIntermediate,
    /// `intermediate`: an intermediate authority signed it, which the server shows. Callers accept it.
    Intermediate,
    /// `expired-issuer`: the time of the authority itself ended yesterday.
    ExpiredIssuer,
    /// `sha1`: the authority signs with SHA-1.
    Sha1,
    /// `rsa-1024`: the key of the authority is RSA with 1024 bits. kube-apiserver accepts it.
    Rsa1024,
    /// `no-server-auth`: it may be used by clients, but not by servers.
    NoServerAuth,
    /// `no-usage`: it does not say what it may be used for. Callers accept it.
    NoUsage,
    /// `own-bundle`: the caller is given the certificate itself, not that of the authority. kube-apiserver accepts it.
    OwnBundle,
    /// `both-bundles`: the caller is given the certificates of two authorities, as while one replaces the other.
    /// Callers accept it.
    BothBundles,
}

impl Defect {
    /// Every defect, in the order in which they are documented.
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

    /// Whether a kube-apiserver accepts the certificate all the same, for a DNS name.
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

    /// The name in files and features, such as `not-yet-valid`.
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

/// A text that names no defect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a defect of a certificate: expected {defects}", defects = names())]
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
    fn a_defect_is_parsed_from_what_it_prints() {
        for defect in Defect::ALL {
            assert_eq!(defect.to_string().parse(), Ok(defect));
        }
    }

    #[test]
    fn an_unknown_defect_is_answered_with_every_known_one() {
        let message = "Expired".parse::<Defect>().unwrap_err().to_string();
        assert!(message.contains("`Expired`"), "{message}");
        for defect in Defect::ALL {
            assert!(message.contains(defect.as_str()), "{message}");
        }
    }
}
