//! Identifies users by their client certificates.

use sha2::{Digest as _, Sha256};
use x509_parser::certificate::X509Certificate;
use x509_parser::oid_registry::{OID_X509_COMMON_NAME, OID_X509_ORGANIZATION_NAME, Oid, asn1_rs::oid};
use x509_parser::prelude::FromDer as _;

use kubernetes_admission::attributes::UserInfo;

/// The result of verifying the client certificate of a connection.
///
/// The listener adds the result to the extensions of each request. The extension is absent if the client did not send a
/// certificate or the certificate does not name a user.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientCertificate {
    /// An authority in `--client-ca-file` signed the certificate for this user.
    Verified(UserInfo),
    /// The certificate is invalid. The server responds with 401 to requests without a valid token.
    Invalid,
}

/// The object identifier of the subject attribute that contains the UID of the user.
const UID: Oid<'static> = oid!(1.3.6.1.4.1.57683.2);
/// The key in `extra` that identifies the credentials.
const CREDENTIAL: &str = "authentication.kubernetes.io/credential-id";

impl ClientCertificate {
    /// Returns the user that a certificate identifies. The user name is the common name, and the groups are the
    /// organizations.
    ///
    /// The caller must have verified the signature of the certificate. Returns `None` if the certificate does not have
    /// a common name, and [`Self::Invalid`] if it cannot be parsed or has an invalid UID.
    ///
    /// Source: apiserver pkg/authentication/request/x509/x509.go, `CommonNameUserConversion`.
    /// Rule: RBAC-27.
    pub fn verified(der: &[u8]) -> Option<Self> {
        let Ok((_, certificate)) = X509Certificate::from_der(der) else { return Some(Self::Invalid) };
        let values = |wanted: &Oid<'static>| -> Option<Vec<String>> {
            let attributes = certificate.subject().iter_attributes();
            let found = attributes.filter(|attribute| attribute.attr_type() == wanted);
            found.map(|attribute| attribute.as_str().ok().map(str::to_owned)).collect()
        };
        // Go uses the last common name.
        let username = values(&OID_X509_COMMON_NAME)?.pop().filter(|name| !name.is_empty())?;
        let uid = match values(&UID).as_deref() {
            Some([]) => String::new(),
            Some([uid]) if !uid.is_empty() => uid.clone(),
            _ => return Some(Self::Invalid),
        };
        let sum = data_encoding::HEXLOWER.encode(&Sha256::digest(der));
        let extra = [(CREDENTIAL.to_owned(), vec![format!("X509SHA256={sum}")])].into();
        let groups = values(&OID_X509_ORGANIZATION_NAME).unwrap_or_default();
        Some(Self::Verified(UserInfo { username, uid, groups, extra }))
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, DnValue, KeyPair};

    use super::*;

    /// The expected name, UID, and groups.
    type Expected = (&'static str, &'static str, &'static [&'static str]);

    #[track_caller]
    fn check(subject: &[(DnType, &str)], expected: Option<Result<Expected, ()>>) {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, value) in subject {
            params.distinguished_name.push(kind.clone(), DnValue::Utf8String((*value).to_owned()));
        }
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let found = ClientCertificate::verified(certificate.der()).map(|certificate| match certificate {
            ClientCertificate::Verified(user) => {
                let id = &user.extra[CREDENTIAL][0];
                assert!(id.starts_with("X509SHA256=") && id.len() == 75, "{id}");
                Ok((user.username, user.uid, user.groups))
            }
            ClientCertificate::Invalid => Err(()),
        });
        let owned = |(name, uid, groups): Expected| {
            (name.to_owned(), uid.to_owned(), groups.iter().map(|&group| group.to_owned()).collect())
        };
        assert_eq!(found, expected.map(|expected| expected.map(owned)), "{subject:?}");
    }

    #[test]
    fn certificate_subject_is_the_user() {
        let uid = || DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2]);
        check(&[(DnType::CommonName, "joe")], Some(Ok(("joe", "", &[]))));
        check(
            &[(DnType::OrganizationName, "system:masters"), (DnType::CommonName, "joe")],
            Some(Ok(("joe", "", &["system:masters"]))),
        );
        check(&[(DnType::OrganizationName, "system:masters")], None);
        check(&[(DnType::CommonName, "")], None);
        check(&[(DnType::CommonName, "joe"), (uid(), "7")], Some(Ok(("joe", "7", &[]))));
        check(&[(DnType::CommonName, "joe"), (uid(), "")], Some(Err(())));
    }

    #[test]
    fn invalid_certificate_is_rejected() {
        assert_eq!(ClientCertificate::verified(b"x"), Some(ClientCertificate::Invalid));
    }
}
