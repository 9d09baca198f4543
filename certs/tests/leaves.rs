//! Tests whether a TLS client accepts leaf certificates, and what the certificates contain.
#![expect(clippy::indexing_slicing, reason = "a wrong index fails the test")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

use std::sync::Arc;
use std::time::SystemTime;

use certs::{CertificateAuthority, Defect, Error, Leaf, Name};
use rsa::pkcs1::DecodeRsaPublicKey;
use rsa::sha2::Sha256;
use rsa::{Pkcs1v15Sign, RsaPublicKey};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use sha1::{Digest as _, Sha1};
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

fn names(texts: &[&str]) -> Vec<Name> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// Verifies `leaf` as a client that trusts its `caBundle` and connects to `name`.
fn verify_with_bundle(leaf: &Leaf, name: &str) -> Result<(), rustls::Error> {
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(leaf.ca_bundle_pem.as_bytes()) {
        roots.add(root.unwrap()).unwrap();
    }
    let shown: Vec<_> =
        CertificateDer::pem_slice_iter(leaf.certificate_pem.as_bytes()).collect::<Result<_, _>>().unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let now = UnixTime::since_unix_epoch(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap());
    verifier.verify_server_cert(&shown[0], &shown[1..], &name, &[], now).map(|_| ())
}

fn authority() -> CertificateAuthority {
    CertificateAuthority::new("admit test CA").unwrap()
}

fn der(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}

/// Verifies `leaf` as a client that trusts `authority` and connects to `name`.
fn verify(authority: &CertificateAuthority, leaf: &Leaf, name: &str) -> Result<(), rustls::Error> {
    let mut roots = RootCertStore::empty();
    roots.add(der(authority.certificate_pem())).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let now = UnixTime::since_unix_epoch(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap());
    verifier.verify_server_cert(&der(&leaf.certificate_pem), &[], &name, &[], now).map(|_| ())
}

#[track_caller]
fn refused(defect: Defect, reason: &str) {
    let authority = authority();
    let names = names(&["hooks.admit.svc", "127.0.0.1"]);
    let leaf = authority.issue_with(&names, defect).unwrap();
    for name in ["hooks.admit.svc", "127.0.0.1"] {
        let error = verify(&authority, &leaf, name).unwrap_err();
        assert!(format!("{error:?}").contains(reason), "{name}: {error:?}");
    }
}

#[test]
fn valid_leaf_is_accepted_only_for_its_names() {
    let authority = authority();
    let leaf = authority.issue(&names(&["hooks.admit.svc", "127.0.0.1", "::1"])).unwrap();
    for name in ["hooks.admit.svc", "127.0.0.1", "::1"] {
        assert_eq!(verify(&authority, &leaf, name), Ok(()), "{name}");
    }
    assert!(verify(&authority, &leaf, "other.admit.svc").is_err());
    assert!(verify(&authority, &leaf, "127.0.0.2").is_err());
}

#[test]
fn client_reports_each_defect() {
    refused(Defect::Expired, "Expired");
    refused(Defect::NotYetValid, "NotValidYet");
    refused(Defect::WrongName, "NotValidForName");
    refused(Defect::CommonNameOnly, "NotValidForName");
    refused(Defect::UnknownIssuer, "UnknownIssuer");
    refused(Defect::NoServerAuth, "InvalidPurpose");
}

#[test]
fn some_only_look_broken() {
    for defect in [Defect::WildcardName, Defect::Intermediate, Defect::NoUsage, Defect::BothBundles] {
        let leaf = authority().issue_with(&names(&["hooks.admit.svc", "127.0.0.1"]), defect).unwrap();
        assert_eq!(verify_with_bundle(&leaf, "hooks.admit.svc"), Ok(()), "{defect}");
    }
}

#[test]
fn client_reports_each_issuer_defect() {
    for (defect, reason) in [
        (Defect::RekeyedIssuer, "BadSignature"),
        (Defect::MissingIntermediate, "UnknownIssuer"),
        (Defect::ClusterLocalName, "NotValidForName"),
    ] {
        let leaf = authority().issue_with(&names(&["hooks.admit.svc"]), defect).unwrap();
        let error = verify_with_bundle(&leaf, "hooks.admit.svc").unwrap_err();
        assert!(format!("{error:?}").contains(reason), "{defect}: {error:?}");
    }
    let leaf = authority().issue_with(&names(&["a.b.svc", "127.0.0.1"]), Defect::NoAddress).unwrap();
    assert_eq!(verify_with_bundle(&leaf, "a.b.svc"), Ok(()));
    assert!(format!("{:?}", verify_with_bundle(&leaf, "127.0.0.1")).contains("NotValidForName"));
}

#[test]
fn rsa_authority_uses_the_requested_signature() {
    for (defect, algorithm, bits) in
        [(Defect::Sha1, "1.2.840.113549.1.1.5", 2048), (Defect::Rsa1024, "1.2.840.113549.1.1.11", 1024)]
    {
        let leaf = authority().issue_with(&names(&["a.b.svc"]), defect).unwrap();
        let (bundle, shown) = (der(&leaf.ca_bundle_pem), der(&leaf.certificate_pem));
        let (_, issuer) = X509Certificate::from_der(&bundle).unwrap();
        let (_, parsed) = X509Certificate::from_der(&shown).unwrap();
        assert_eq!(parsed.signature_algorithm.algorithm.to_id_string(), algorithm);
        assert_eq!(parsed.tbs_certificate.signature.algorithm.to_id_string(), algorithm);
        assert_eq!(issuer.public_key().parsed().unwrap().key_size(), bits);
        let key = RsaPublicKey::from_pkcs1_der(&issuer.public_key().subject_public_key.data).unwrap();
        let signed = parsed.tbs_certificate.as_ref();
        let padding_and_digest = if defect == Defect::Sha1 {
            (Pkcs1v15Sign::new::<Sha1>(), Sha1::digest(signed).to_vec())
        } else {
            (Pkcs1v15Sign::new::<Sha256>(), Sha256::digest(signed).to_vec())
        };
        key.verify(padding_and_digest.0, &padding_and_digest.1, &parsed.signature_value.data).unwrap();
    }
}

#[test]
fn bundle_can_be_the_leaf_or_an_expired_authority() {
    let leaf = authority().issue_with(&names(&["a.b.svc"]), Defect::OwnBundle).unwrap();
    assert_eq!(leaf.ca_bundle_pem, leaf.certificate_pem);
    let leaf = authority().issue_with(&names(&["a.b.svc"]), Defect::ExpiredIssuer).unwrap();
    let bundle = der(&leaf.ca_bundle_pem);
    let (_, issuer) = X509Certificate::from_der(&bundle).unwrap();
    assert!(!issuer.validity().is_valid());
}

#[test]
fn name_defect_requires_a_dns_name() {
    for defect in [Defect::WildcardName, Defect::ClusterLocalName, Defect::NoAddress] {
        let error = authority().issue_with(&names(&["127.0.0.1"]), defect).unwrap_err();
        assert!(matches!(error, Error::NoSuchName(_)), "{error}");
    }
}

#[test]
fn leaf_has_names_key_usage_and_short_common_name() {
    let service = format!("hooks.{}.svc.cluster.local", "n".repeat(63));
    let leaf = authority().issue(&names(&[&service, "127.0.0.1"])).unwrap();
    let der = der(&leaf.certificate_pem);
    let (_, parsed) = X509Certificate::from_der(&der).unwrap();
    let common_name = parsed.subject().iter_common_name().next().unwrap().as_str().unwrap();
    assert_eq!(common_name, "hooks");
    assert_eq!(parsed.issuer().to_string(), "CN=admit test CA");
    let alternatives = parsed.subject_alternative_name().unwrap().unwrap();
    assert_eq!(
        alternatives.value.general_names,
        [GeneralName::DNSName(&service), GeneralName::IPAddress(&[127, 0, 0, 1])]
    );
    let usage = parsed.extended_key_usage().unwrap().unwrap().value;
    assert!(usage.server_auth && !usage.client_auth);
    assert!(!parsed.is_ca());
    let days = parsed.validity().time_to_expiration().unwrap().whole_days();
    assert_eq!(days, 364);
}

#[test]
fn common_name_only_leaf_has_no_alternative_names() {
    let leaf = authority().issue_with(&names(&["hooks.admit.svc"]), Defect::CommonNameOnly).unwrap();
    let der = der(&leaf.certificate_pem);
    let (_, parsed) = X509Certificate::from_der(&der).unwrap();
    assert_eq!(parsed.subject().to_string(), "CN=hooks.admit.svc");
    assert!(parsed.subject_alternative_name().unwrap().is_none());
}

#[test]
fn authority_can_sign_only_leaves() {
    let authority = authority();
    let der = der(authority.certificate_pem());
    let (_, parsed) = X509Certificate::from_der(&der).unwrap();
    let constraints = parsed.basic_constraints().unwrap().unwrap().value;
    assert!(constraints.ca);
    assert_eq!(constraints.path_len_constraint, Some(0));
}

#[test]
fn key_matches_the_certificate_and_is_not_printed() {
    let leaf = authority().issue(&names(&["a.b.svc"])).unwrap();
    let key = PrivateKeyDer::from_pem_slice(leaf.key_pem.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![der(&leaf.certificate_pem)], key)
        .unwrap();
    assert!(!format!("{leaf:?}").contains("PRIVATE"));
}

#[test]
fn empty_names_and_long_common_names_are_rejected() {
    assert!(matches!(authority().issue(&[]), Err(Error::NoNames)));
    assert!(matches!(CertificateAuthority::new(&"x".repeat(65)), Err(Error::CommonNameTooLong(_))));
}

#[test]
fn loaded_authority_signs_valid_leaves() {
    let first = authority();
    let again = CertificateAuthority::from_pem(first.certificate_pem(), &first.key_pem()).unwrap();
    assert_eq!(again.certificate_pem(), first.certificate_pem());
    let leaf = again.issue(&names(&["localhost"])).unwrap();
    assert_eq!(verify(&first, &leaf, "localhost"), Ok(()));
}

#[test]
fn invalid_authorities_are_not_loaded() {
    let one = authority();
    let leaf = one.issue(&names(&["localhost"])).unwrap();
    let message = |certificate: &str, key: &str| {
        CertificateAuthority::from_pem(certificate, key).unwrap_err().to_string()
    };
    assert!(message("nothing", &one.key_pem()).starts_with("invalid CA certificate"));
    assert!(message(&leaf.certificate_pem, &leaf.key_pem).contains("basic constraints"));
    assert!(message(one.certificate_pem(), "nothing").starts_with("invalid private key"));
    assert!(message(one.certificate_pem(), &authority().key_pem()).contains("does not belong"));
}
