//! Tests webhooks whose host does not resolve: both servers report the name server.
//!
//! Needs KUBEBUILDER_ASSETS for kube-apiserver, and a name server that reports the host as unknown. Skipped parts print
//! a message.

#![expect(
    clippy::expect_used,
    clippy::print_stderr,
    reason = "what is not there fails the test, and what is skipped is told"
)]

use std::fs;
use std::net::ToSocketAddrs as _;
use std::process::Command;

use crate::helpers::machine;

const FEATURE: &str = r#"
Feature: Unknown hosts
  Scenario Outline: The name server does not know <host>
    Given a validating webhook "policy" for configmaps
    And "policy" is configured with:
      """yaml
      clientConfig: {url: "https://<host>/validate", service: null}
      """
    When this object is created:
      """yaml
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: settings}
      """
    Then the request is rejected with 500 InternalError
    And the message contains 'Post "https://<host>/validate?timeout=10s": dial tcp: lookup <host> on <server>: no such host'

    Examples:
      | host                   |
      | webhook.invalid        |
      | kubernetes.default.svc |
"#;

/// Returns the address of the first name server in `resolv.conf`, as `ADDRESS:53`.
///
/// Returns `None` if the system does not report the hosts of the test as unknown.
fn name_server() -> Option<String> {
    for host in ["webhook.invalid:443", "kubernetes.default.svc:443"] {
        match host.to_socket_addrs() {
            Err(error) if error.to_string().contains("Name or service not known") => {}
            found => {
                eprintln!("skipped: this machine's name server says {found:?} of {host}");
                return None;
            }
        }
    }
    let configuration = fs::read_to_string("/etc/resolv.conf").ok()?;
    let address = configuration.lines().find_map(|line| line.strip_prefix("nameserver "))?.trim();
    Some(if address.contains(':') { format!("[{address}]:53") } else { format!("{address}:53") })
}

fn check(target: &str) {
    let Some(server) = name_server() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let feature = folder.path().join("hosts.feature");
    fs::write(&feature, FEATURE.replace("<server>", &server)).expect("it is written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
    let output = command.arg("run").arg(feature).args(["--target", target]).env("NO_COLOR", "1").output();
    let output = output.expect("the command runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text.lines().last(), Some("2 passed, 0 failed"), "{text}");
}

#[test]
fn admit_asks_the_name_server() {
    check("in-process");
}

#[test]
fn kube_apiserver_asks_the_name_server() {
    if machine::has_kube_apiserver() {
        check("envtest");
    }
}
