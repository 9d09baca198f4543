//! Provides the serving certificate of kube-apiserver. Generates the certificate if it does not exist.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use certs::{CertificateAuthority, Name};
use output::Readers;

use crate::Failure;

/// The DNS names of the API server in a cluster.
const NAMES: [&str; 4] = ["kubernetes.default.svc", "kubernetes.default", "kubernetes", "localhost"];

/// A serving certificate and its key in PEM.
pub(super) struct Serving {
    pub(super) certificate: Vec<u8>,
    pub(super) key: Vec<u8>,
    /// The path of the certificate if it has just been generated.
    pub(super) made: Option<PathBuf>,
}

pub(super) fn read(certificate: &Path, key: &Path) -> Result<Serving, Failure> {
    let read = |path: &Path| {
        output::read_for_server(path)
            .map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))
    };
    Ok(Serving { certificate: read(certificate)?, key: read(key)?, made: None })
}

/// Reads apiserver.crt and apiserver.key from `folder`, or generates them if neither exists.
///
/// A generated certificate is valid for the names of the API server in a cluster and for `addresses`. The CA
/// certificate follows it in the file.
///
/// Source: apiserver pkg/server/options/serving.go, `MaybeDefaultWithSelfSignedCerts`; client-go util/cert/cert.go.
pub(super) fn in_folder(folder: &Path, addresses: &[IpAddr]) -> Result<Serving, Failure> {
    let (certificate, key) = (folder.join("apiserver.crt"), folder.join("apiserver.key"));
    match (certificate.exists(), key.exists()) {
        (true, true) => return read(&certificate, &key),
        (false, false) => {}
        (has_certificate, _) => {
            let missing = if has_certificate { &key } else { &certificate };
            return Err(Failure::usage(format!(
                "error reading {}, certificate and key must be supplied as a pair",
                missing.display()
            )));
        }
    }
    let failure = |why: &dyn std::fmt::Display| {
        Failure::environment(format!("unable to generate self signed cert in {}: {why}", folder.display()))
    };
    let mut names = NAMES
        .iter()
        .map(|name| name.parse())
        .collect::<Result<Vec<Name>, _>>()
        .map_err(|error| failure(&error))?;
    for address in addresses {
        if !names.contains(&Name::from(*address)) {
            names.push(Name::from(*address));
        }
    }
    let authority = CertificateAuthority::new("admit kube-apiserver").map_err(|error| failure(&error))?;
    let leaf = authority.issue(&names).map_err(|error| failure(&error))?;
    let chain = format!("{}{}", leaf.certificate_pem, authority.certificate_pem());
    super::super::create_folder(folder).map_err(|error| failure(&error))?;
    output::write(&certificate, chain.as_bytes(), Readers::Umask).map_err(|error| failure(&error))?;
    output::write(&key, leaf.key_pem.as_bytes(), Readers::Owner).map_err(|error| failure(&error))?;
    Ok(Serving { certificate: chain.into_bytes(), key: leaf.key_pem.into_bytes(), made: Some(certificate) })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_certificate_is_generated_once() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("certs");
        let first = in_folder(&folder, &["127.0.0.1".parse().unwrap()]).unwrap();
        assert_eq!(first.made, Some(folder.join("apiserver.crt")));
        let mode = fs::metadata(folder.join("apiserver.key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let second = in_folder(&folder, &[]).unwrap();
        assert_eq!((second.certificate, second.key, second.made), (first.certificate, first.key, None));
        fs::remove_file(folder.join("apiserver.key")).unwrap();
        let failure = in_folder(&folder, &[]).err().unwrap().to_string();
        assert!(
            failure.contains("apiserver.key, certificate and key must be supplied as a pair"),
            "{failure}"
        );
    }
}
