//! The kubeconfig that lets kubectl in.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use base64::Engine as _;
use output::Readers;

use crate::Failure;

/// What a client needs to know.
pub(crate) struct Kubeconfig {
    /// The URL.
    pub(crate) server: String,
    /// Whom to trust: PEM.
    pub(crate) certificate_authority: String,
    /// The bearer token.
    pub(crate) token: String,
}

/// The first line, by which a file that may be overwritten is known.
const MARK: &str = "# Written by admit serve. The server and its token are gone when the command ends.";

impl Kubeconfig {
    /// Writes the whole file or nothing, readable by its owner alone. Somebody else's kubeconfig is never overwritten.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Failure> {
        let failure = |why: &dyn std::fmt::Display| {
            Failure::environment(format!("cannot write the kubeconfig {}: {why}", path.display()))
        };
        // Nothing is replaced of a device, and it may be without end.
        if path.is_file() && !is_replaceable(path).map_err(|error| failure(&error))? {
            return Err(failure(&"it holds something else; choose another file"));
        }
        output::write(path, self.text().as_bytes(), Readers::Owner).map_err(|error| failure(&error))
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

/// Whether a file is empty or begins as an earlier server left it.
fn is_replaceable(path: &Path) -> io::Result<bool> {
    let mut head = Vec::with_capacity(MARK.len());
    File::open(path)?.take(MARK.len() as u64).read_to_end(&mut head)?;
    Ok(head.is_empty() || head == MARK.as_bytes())
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
    fn a_client_can_read_it_and_nobody_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        // Twice, since a later server may take the file of an earlier one.
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
    fn somebody_elses_kubeconfig_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        std::fs::write(&path, "apiVersion: v1\n").unwrap();
        let failure = kubeconfig().write(&path).unwrap_err().to_string();
        assert!(failure.ends_with("it holds something else; choose another file"), "{failure}");
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
}
