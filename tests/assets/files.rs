//! Tests the files that flags of kube-apiserver name.

use std::fs;
use std::process::Command;

use certs::CertificateAuthority;
use rustix::fs::{CWD, FileType, mknodat};

use super::{admit, stand_ins};
use crate::helpers::ports;

#[test]
fn a_fifo_without_a_writer_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let apiserver = stand_ins(folder.path()).join("kube-apiserver");
    let path = |name: &str| folder.path().join(name).display().to_string();
    mknodat(CWD, folder.path().join("fifo"), FileType::Fifo, 0o600.into(), 0).unwrap();
    let issuer = CertificateAuthority::new("accounts").unwrap().issue_for_client("issuer").unwrap();
    fs::write(path("key"), issuer.key_pem).unwrap();
    let plugin = "apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- {name: PodSecurity, path: fifo}
";
    fs::write(path("plugin"), plugin).unwrap();
    for flags in [
        "--admission-control-config-file=fifo",
        "--admission-control-config-file=plugin",
        "--audit-log-path=- --audit-policy-file=fifo",
        "--client-ca-file=fifo",
        "--service-account-key-file=fifo",
        "--service-account-signing-key-file=fifo",
        "--tls-cert-file=fifo --tls-private-key-file=key",
        "--tls-cert-file=key --tls-private-key-file=fifo",
        "--token-auth-file=fifo",
        "--tracing-config-file=fifo",
    ] {
        let mut server = Command::new(&apiserver);
        server.current_dir(folder.path()).args([
            "--etcd-servers=http://127.0.0.1:1",
            "--service-account-issuer=https://x",
            "--service-account-key-file=key",
            "--service-account-signing-key-file=key",
            "--bind-address=127.0.0.1",
            "--cert-dir=certificates",
        ]);
        let port = format!("--secure-port={}", ports::free_port());
        let output = server.args(flags.split(' ')).arg(port).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{flags}: {text}");
        assert!(text.contains("no process writes to this FIFO"), "{flags}: {text}");
    }
    let output = admit(&["fakes", "-f", &path("fifo")]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        (output.status.code(), text.as_str()),
        (Some(2), format!("error: {}: no process writes to this FIFO\n", path("fifo")).as_str())
    );
}

#[cfg(not(feature = "otlp"))]
#[test]
fn tracing_has_no_effect_in_a_build_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let apiserver = stand_ins(folder.path()).join("kube-apiserver");
    let file = folder.path().join("tracing.yaml");
    fs::write(&file, "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n").unwrap();
    let (status, text) = super::run(
        &apiserver,
        &[
            "--etcd-servers=http://127.0.0.1:1",
            "--service-account-issuer=https://x",
            "--service-account-key-file=/none",
            "--service-account-signing-key-file=/none",
            "--bind-address=127.0.0.1",
            &format!("--tracing-config-file={}", file.display()),
        ],
    );
    // The server starts, and then reads the key that does not exist.
    assert!(status == Some(1) && text.contains("/none"), "{text}");
    assert!(text.contains("--tracing-config-file has no effect: "), "{text}");
}
