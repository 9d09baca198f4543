//! Tests the `admit certs` command.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::GeneralName;

fn certs(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_admit")).arg("certs").args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> &str {
    assert!(output.status.success(), "{output:?}");
    std::str::from_utf8(&output.stdout).unwrap()
}

#[track_caller]
fn refused(arguments: &[&str], status: i32, parts: &[&str]) {
    let output = certs(arguments);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(status), 0), "{stderr}");
    for part in parts {
        assert!(stderr.contains(part), "`{part}` is not in: {stderr}");
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn names(pem: &[u8]) -> Vec<String> {
    let (_, pem) = parse_x509_pem(pem).unwrap();
    let certificate = pem.parse_x509().unwrap();
    let alternatives = certificate.subject_alternative_name().unwrap().unwrap().value;
    let name = |name: &GeneralName<'_>| {
        if let GeneralName::DNSName(name) = name { (*name).to_owned() } else { format!("{name}") }
    };
    alternatives.general_names.iter().map(name).collect()
}

#[test]
fn the_files_are_written_and_the_ca_bundle_is_printed() {
    let temporary = tempfile::tempdir().unwrap();
    let out = temporary.path().join("deep/er");
    let output = certs(&["--service", "demo/hooks", "--ip", "10.0.0.1", "--out", out.to_str().unwrap()]);
    let authority = fs::read(out.join("ca.crt")).unwrap();
    assert_eq!(STANDARD.decode(stdout(&output).trim_end()).unwrap(), authority);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.starts_with(&format!("wrote ca.crt, tls.crt, and tls.key to {}\n", out.display())),
        "{stderr}"
    );
    assert!(stderr.ends_with("clientConfig.caBundle for the webhook configuration:\n"), "{stderr}");
    assert_eq!(mode(&out), 0o700);
    assert_eq!(mode(&out.join("tls.key")), 0o600);
    assert_eq!(fs::read_dir(&out).unwrap().count(), 3);
    let expected =
        ["hooks.demo.svc", "hooks.demo.svc.cluster.local", "hooks.demo", "hooks", "IPAddress(0a:00:00:01)"];
    assert_eq!(names(&fs::read(out.join("tls.crt")).unwrap()), expected);
}

#[test]
fn files_that_are_there_are_replaced_only_by_force() {
    let temporary = tempfile::tempdir().unwrap();
    let out = temporary.path().to_str().unwrap();
    fs::write(temporary.path().join("tls.key"), "mine").unwrap();
    refused(&["--service", "a.b", "--out", out], 2, &["tls.key already exists", "--force"]);
    assert_eq!(fs::read_dir(out).unwrap().count(), 1);
    assert_eq!(fs::read(temporary.path().join("tls.key")).unwrap(), b"mine");
    stdout(&certs(&["--service", "a.b", "--out", out, "--force"]));
    assert_eq!(mode(&temporary.path().join("tls.key")), 0o600);
    assert_ne!(fs::read(temporary.path().join("tls.key")).unwrap(), b"mine");
}

#[test]
fn a_secret_is_printed_as_yaml_or_json() {
    for (output, namespace) in [("secret", None), ("json", Some("other"))] {
        let mut arguments = vec!["--service", "hooks.demo", "-o", output];
        arguments.extend(namespace.into_iter().flat_map(|namespace| ["-n", namespace]));
        let output = certs(&arguments);
        let secret: Value = serde_saphyr::from_str(stdout(&output)).unwrap();
        assert_eq!(secret["type"], "kubernetes.io/tls");
        assert_eq!(secret["metadata"]["name"], "hooks-tls");
        assert_eq!(secret["metadata"]["namespace"], namespace.unwrap_or("demo"));
        let data = |key: &str| STANDARD.decode(secret["data"][key].as_str().unwrap()).unwrap();
        assert!(names(&data("tls.crt")).contains(&"hooks.demo.svc".to_owned()));
        assert!(data("ca.crt").starts_with(b"-----BEGIN CERTIFICATE"));
        assert!(data("tls.key").starts_with(b"-----BEGIN PRIVATE KEY"));
    }
}

#[test]
fn what_is_wrong_on_the_command_line_is_named() {
    refused(&["--out", "x"], 2, &["--service"]);
    refused(&["--service", "hooks.demo"], 2, &["--out"]);
    refused(&["--service", "hooks", "-o", "secret"], 2, &["hooks", "NAMESPACE/NAME"]);
    refused(&["--service", "Hooks.demo", "-o", "secret"], 2, &["`Hooks`", "lower-case letters"]);
    refused(&["--service", "a.b.c", "-o", "secret"], 2, &["`b.c`"]);
    refused(&["--dns", "a b", "-o", "secret"], 2, &["a b"]);
    refused(&["--dns", "10.0.0.1", "-o", "secret"], 2, &["--ip"]);
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let temporary = tempfile::NamedTempFile::new().unwrap();
    let out = temporary.path().join("below").display().to_string();
    refused(&["--service", "a.b", "--out", &out], 3, &[&out]);
}
