//! What a TLS client makes of the leaves, and what stands in them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

use std::sync::Arc;
use std::time::SystemTime;

use certs::{CertificateAuthority, Defect, Error, Leaf, Name};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

fn names(texts: &[&str]) -> Vec<Name> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn authority() -> CertificateAuthority {
    CertificateAuthority::new("admit test CA").unwrap()
}

fn der(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}

/// What a client that trusts `authority` says of a server `name` that shows `leaf`.
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
fn a_valid_leaf_is_accepted_for_each_of_its_names_and_no_other() {
    let authority = authority();
    let leaf = authority.issue(&names(&["hooks.admit.svc", "127.0.0.1", "::1"])).unwrap();
    for name in ["hooks.admit.svc", "127.0.0.1", "::1"] {
        assert_eq!(verify(&authority, &leaf, name), Ok(()), "{name}");
    }
    assert!(verify(&authority, &leaf, "other.admit.svc").is_err());
    assert!(verify(&authority, &leaf, "127.0.0.2").is_err());
}

#[test]
fn each_defect_is_what_a_client_complains_of() {
    refused(Defect::Expired, "Expired");
    refused(Defect::NotYetValid, "NotValidYet");
    refused(Defect::WrongName, "NotValidForName");
    refused(Defect::CommonNameOnly, "NotValidForName");
    refused(Defect::UnknownIssuer, "UnknownIssuer");
    refused(Defect::NoServerAuth, "InvalidPurpose");
}

#[test]
fn a_leaf_carries_its_names_its_purpose_and_a_short_common_name() {
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
fn a_leaf_with_only_a_common_name_has_no_alternative_names() {
    let leaf = authority().issue_with(&names(&["hooks.admit.svc"]), Defect::CommonNameOnly).unwrap();
    let der = der(&leaf.certificate_pem);
    let (_, parsed) = X509Certificate::from_der(&der).unwrap();
    assert_eq!(parsed.subject().to_string(), "CN=hooks.admit.svc");
    assert!(parsed.subject_alternative_name().unwrap().is_none());
}

#[test]
fn the_authority_may_sign_leaves_and_nothing_that_signs() {
    let authority = authority();
    let der = der(authority.certificate_pem());
    let (_, parsed) = X509Certificate::from_der(&der).unwrap();
    let constraints = parsed.basic_constraints().unwrap().unwrap().value;
    assert!(constraints.ca);
    assert_eq!(constraints.path_len_constraint, Some(0));
}

#[test]
fn the_key_belongs_to_the_certificate_and_is_not_printed() {
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
fn nothing_is_issued_for_nobody_or_under_a_name_that_is_too_long() {
    assert!(matches!(authority().issue(&[]), Err(Error::NoNames)));
    assert!(matches!(CertificateAuthority::new(&"x".repeat(65)), Err(Error::CommonNameTooLong(_))));
}

#[test]
fn an_authority_that_is_taken_up_again_signs_for_those_who_trust_it() {
    let first = authority();
    let again = CertificateAuthority::from_pem(first.certificate_pem(), &first.key_pem()).unwrap();
    assert_eq!(again.certificate_pem(), first.certificate_pem());
    let leaf = again.issue(&names(&["localhost"])).unwrap();
    assert_eq!(verify(&first, &leaf, "localhost"), Ok(()));
}

#[test]
fn what_is_no_authority_is_not_taken_up() {
    let one = authority();
    let leaf = one.issue(&names(&["localhost"])).unwrap();
    let message = |certificate: &str, key: &str| {
        CertificateAuthority::from_pem(certificate, key).unwrap_err().to_string()
    };
    assert!(message("nothing", &one.key_pem()).starts_with("this is no certificate of an authority"));
    assert!(message(&leaf.certificate_pem, &leaf.key_pem).contains("basic constraints"));
    assert!(message(one.certificate_pem(), "nothing").starts_with("this is no private key"));
    assert!(message(one.certificate_pem(), &authority().key_pem()).contains("does not belong"));
}
