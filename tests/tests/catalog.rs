//! Compares the fault catalog with the recorded behavior of a real kube-apiserver.

use std::fs;

use fake_webhooks::catalog;
use tests::cases;
use tests::catalog::{CONCEPT, Measured, Page, case_name, case_text};

#[test]
fn the_case_of_every_fault_is_what_the_catalog_says() {
    for fault in catalog() {
        let path = cases::folder().join(case_name(fault)).join("case.yaml");
        let text = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(text, case_text(fault), "{}: make it with: cargo run -p tests -- faults", path.display());
    }
}

#[test]
fn every_case_is_one_of_a_fault() {
    for case in cases::find(&cases::folder(), &format!("{CONCEPT}/*")).expect("the folder is there") {
        assert!(catalog().iter().any(|fault| case_name(fault) == case.name), "{}: no such fault", case.name);
    }
}

#[test]
fn the_class_of_every_fault_is_what_its_recording_shows() {
    let mut contradictions = Vec::new();
    for fault in catalog() {
        match Measured::read(fault) {
            Ok(measured) => contradictions.extend(measured.contradiction(fault)),
            Err(error) => contradictions.push(format!("{}: {error}", case_name(fault))),
        }
    }
    assert!(contradictions.is_empty(), "{}", contradictions.join("\n"));
}

#[test]
fn the_page_of_faults_is_made_of_the_catalog_and_the_recordings() {
    let written = fs::read_to_string(Page::path()).unwrap_or_default();
    let page = Page::make("0000-00-00").expect("every fault is recorded");
    assert!(
        page.text == written,
        "docs/reference/faults.md is stale: make it with: cargo run -p tests -- faults --page"
    );
}
