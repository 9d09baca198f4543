//! Runs `admit verify` on webhooks of other projects over TLS, with the projects' own configuration.
//!
//! The webhooks are installed from published packages. A framework is started with a small program that is typical for
//! its users.
//!
//! `just verified` runs these tests. It needs the tools of each language and, unless the packages are already
//! installed, access to the registries. Without the variable that `just verified` sets, or if a tool is missing, a test
//! is skipped with a message. `NAME/found.json` contains the findings, and `NAME/review.yaml` the reviews of them;
//! docs/project/verified.md is generated from both. `UPDATE_EXPECT=1` writes `found.json` and the page.

#![expect(clippy::indexing_slicing, reason = "a wrong index fails the test")]
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test that cannot go on must stop, and it says what it does"
)]

mod found;
mod install;
mod manifest;
mod page;
mod ready;
mod review;
mod run;

use std::sync::{Mutex, PoisonError};

use expect_test::expect_file;

use self::found::VerificationFindings;
use self::manifest::Manifest;
use crate::helpers::machine;

/// The webhooks' directories next to this file, in the order in which the page lists them.
const NAMES: [&str; 13] = [
    "agnhost",
    "eks-pod-identity",
    "vault-agent-injector",
    "jobset",
    "vertical-pod-autoscaler",
    "prometheus-operator",
    "cert-manager",
    "gatekeeper",
    "controller-runtime",
    "kopf",
    "pepr",
    "java-operator-sdk",
    "kube-rs",
];

/// The lock for running one webhook at a time: responses are timed, and builds use all processors.
static ALONE: Mutex<()> = Mutex::new(());

/// Installs, starts, and verifies a webhook, and compares the findings with the recorded ones.
fn is_as_it_was(name: &str) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let manifest = Manifest::read(name);
    if !install::has_tools(&manifest.from) {
        return;
    }
    if let Some(reason) = run::no_mounts().filter(|_| manifest.in_cluster) {
        machine::skipped(&format!("{name} must find the files of a pod's service account: {reason}"));
        return;
    }
    let installed = match install::installed(&manifest) {
        Ok(installed) => installed,
        Err(reason) => return machine::skipped(&format!("{name} cannot be fetched: {reason}")),
    };
    let found = run::verify(&manifest, &installed);
    expect_file![manifest.folder().join("found.json")].assert_eq(&found.text());
    println!("{name} {}: verified, {} findings", manifest.from.version(), found.findings.len());
}

#[test]
fn the_webhooks_of_agnhost_are_as_they_were() {
    is_as_it_was("agnhost");
}

#[test]
fn the_eks_pod_identity_webhook_is_as_it_was() {
    is_as_it_was("eks-pod-identity");
}

#[test]
fn the_vault_agent_injector_is_as_it_was() {
    is_as_it_was("vault-agent-injector");
}

#[test]
fn the_jobset_webhooks_are_as_they_were() {
    is_as_it_was("jobset");
}

#[test]
fn the_vertical_pod_autoscaler_is_as_it_was() {
    is_as_it_was("vertical-pod-autoscaler");
}

#[test]
fn the_webhook_of_the_prometheus_operator_is_as_it_was() {
    is_as_it_was("prometheus-operator");
}

#[test]
fn the_webhook_of_cert_manager_is_as_it_was() {
    is_as_it_was("cert-manager");
}

#[test]
fn the_webhooks_of_gatekeeper_are_as_they_were() {
    is_as_it_was("gatekeeper");
}

#[test]
fn webhooks_of_controller_runtime_are_as_they_were() {
    is_as_it_was("controller-runtime");
}

#[test]
fn an_operator_of_kopf_is_as_it_was() {
    is_as_it_was("kopf");
}

#[test]
fn a_module_of_pepr_is_as_it_was() {
    is_as_it_was("pepr");
}

#[test]
fn controllers_of_the_java_operator_sdk_are_as_they_were() {
    is_as_it_was("java-operator-sdk");
}

#[test]
fn webhooks_of_kube_are_as_they_were() {
    is_as_it_was("kube-rs");
}

#[test]
fn every_finding_has_an_assessment() {
    let mut wrong = Vec::new();
    for name in NAMES {
        let manifest = Manifest::read(name);
        wrong.extend(review::departures(
            &review::read(&manifest),
            &VerificationFindings::read(&manifest),
            name,
        ));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn the_page_says_what_was_found() {
    expect_file!["../../docs/project/verified.md"].assert_eq(&page::page(&NAMES.map(Manifest::read)));
}
