//! Writes the kubeconfig for clients of the server, with the server's URL and token.

use std::fs::File;
use std::io::{self, Read as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use base64::Engine as _;
use output::Readers;
use rustls::crypto::{GetRandomFailed, ring};

use crate::Failure;

/// The connection information that a client needs.
pub(crate) struct Kubeconfig {
    /// The URL of the server.
    pub(crate) server: String,
    /// The CA certificate to trust, in PEM.
    pub(crate) certificate_authority: String,
    /// The bearer token.
    pub(crate) token: String,
}

/// The first line of a kubeconfig. It marks files that admit may overwrite.
const MARK: &str = "# Written by admit. The server and its token exist only until the command ends.";

impl Kubeconfig {
    /// Writes the kubeconfig to `path` atomically; only its owner can read it.
    ///
    /// A kubeconfig that admit did not write is never overwritten.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Failure> {
        let failure = |why: &dyn std::fmt::Display| {
            Failure::environment(format!("cannot write the kubeconfig {}: {why}", path.display()))
        };
        // Devices are not replaced, and reading one might never end.
        if path.is_file() && !is_replaceable(path).map_err(|error| failure(&error))? {
            return Err(failure(&"it was not written by admit; choose another file"));
        }
        output::write(path, self.text().as_bytes(), Readers::Owner).map_err(|error| failure(&error))
    }

    /// Removes the kubeconfig of a server that has stopped, so that no later client uses it.
    ///
    /// Files that admit did not write, and devices, are not removed.
    pub(crate) fn remove(path: &Path) {
        if path.is_file() && is_replaceable(path).unwrap_or_default() {
            // A file that cannot be removed is useless but harmless.
            let _ = std::fs::remove_file(path);
        }
    }

    fn text(&self) -> String {
        let Self { server, token, .. } = self;
        let authority = base64::engine::general_purpose::STANDARD.encode(&self.certificate_authority);
        format!(
            "{MARK}
apiVersion: v1
kind: Config
clusters:
- name: admit
  cluster:
    server: {server}
    certificate-authority-data: {authority}
users:
- name: admit
  user:
    token: {token}
contexts:
- name: admit
  context:
    cluster: admit
    user: admit
current-context: admit
"
        )
    }
}

/// Returns whether a file is empty or starts with [`MARK`].
fn is_replaceable(path: &Path) -> io::Result<bool> {
    let mut head = Vec::with_capacity(MARK.len());
    File::open(path)?.take(MARK.len() as u64).read_to_end(&mut head)?;
    Ok(head.is_empty() || head == MARK.as_bytes())
}

/// Returns the URL at which a client on this host reaches a server that listens on `address`.
pub(crate) fn client_url(address: SocketAddr) -> String {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    format!("https://{}", SocketAddr::new(ip, address.port()))
}

/// Generates a token from 256 random bits.
pub(crate) fn random_token() -> Result<String, Failure> {
    let mut bytes = [0; 32];
    ring::default_provider().secure_random.fill(&mut bytes).map_err(|GetRandomFailed| {
        Failure::environment("the random number generator of the system failed")
    })?;
    Ok(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn kubeconfig() -> Kubeconfig {
        Kubeconfig {
            server: "https://127.0.0.1:1".to_owned(),
            certificate_authority: "PEM".to_owned(),
            token: "secret".to_owned(),
        }
    }

    #[test]
    fn only_the_owner_can_read_the_kubeconfig() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        // Twice, because a later server may overwrite the file of an earlier one.
        for _ in 0..2 {
            kubeconfig().write(&path).unwrap();
        }
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let parsed = kube::config::Kubeconfig::read_from(&path).unwrap();
        assert_eq!(parsed.current_context.as_deref(), Some("admit"));
        let cluster = parsed.clusters[0].cluster.as_ref().unwrap();
        assert_eq!(cluster.server.as_deref(), Some("https://127.0.0.1:1"));
        assert_eq!(cluster.certificate_authority_data.as_deref(), Some("UEVN"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn another_kubeconfig_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        std::fs::write(&path, "apiVersion: v1\n").unwrap();
        let failure = kubeconfig().write(&path).unwrap_err().to_string();
        assert!(failure.ends_with("it was not written by admit; choose another file"), "{failure}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "apiVersion: v1\n");
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let failure = kubeconfig().write(Path::new("/nowhere/config")).unwrap_err().to_string();
        assert!(
            failure.starts_with("cannot write the kubeconfig /nowhere/config: No such file"),
            "{failure}"
        );
    }

    #[test]
    fn tokens_are_unique() {
        let (one, other) = (random_token().unwrap(), random_token().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.len(), 43);
    }

    #[test]
    fn a_server_on_all_addresses_is_reached_by_loopback() {
        for (address, url) in [
            ("127.0.0.1:1", "https://127.0.0.1:1"),
            ("0.0.0.0:1", "https://127.0.0.1:1"),
            ("[::]:1", "https://[::1]:1"),
            ("192.0.2.1:1", "https://192.0.2.1:1"),
        ] {
            assert_eq!(client_url(address.parse().unwrap()), url);
        }
    }
}
