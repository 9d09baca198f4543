//! Tests that the catalog of faults is complete and unambiguous, and that its fakes can start.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::Arc;

use fake_webhooks::{Behavior, Class, FakesFile, Fault, Fleet, Log, WebhookType, catalog};
use serde_json::{Value, json};

#[test]
fn ids_and_names_are_unambiguous_and_well_formed() {
    let mut seen = BTreeSet::new();
    for fault in catalog() {
        assert!(seen.insert(fault.id.to_lowercase()), "{} is there twice", fault.id);
        assert!(seen.insert(fault.name.clone()), "{} is there twice", fault.name);
        let is_kebab = |text: &str| {
            text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        };
        assert!(is_kebab(&fault.name), "{}", fault.name);
        let (number, variant) = fault.id.split_once('-').unwrap_or((&fault.id, "x"));
        let (letter, number) = number.split_at(1);
        assert!("THEPCMX".contains(letter), "{}", fault.id);
        assert!(number.len() == 2 && number.parse::<u8>().is_ok(), "{}", fault.id);
        assert!(!variant.is_empty() && is_kebab(variant), "{}", fault.id);
        assert!(!fault.help.ends_with('.') && fault.help.len() <= 100, "{}: {}", fault.id, fault.help);
        assert_eq!(Fault::find(&fault.id), Some(fault));
        assert_eq!(Fault::find(&fault.name), Some(fault));
    }
}

/// Starts a fake for every fault that a fakes file entry can have.
#[tokio::test]
async fn every_fault_starts_as_a_fake() {
    let log: Log = Arc::new(|_| {});
    for fault in catalog() {
        let kind = fault.kind.unwrap_or(WebhookType::Validating);
        let entry = json!({"name": "one", "type": kind, "fault": fault.id});
        let file = json!({"version": 1, "host": "hook.faults.svc", "webhooks": [entry]}).to_string();
        let file = FakesFile::parse(&file, &fault.id).unwrap();
        let fleet = Fleet::start(&[file], &log).await.unwrap_or_else(|error| panic!("{}: {error}", fault.id));
        assert_eq!(fleet.configurations().len(), 1, "{}", fault.id);
    }
}

#[test]
fn fault_is_a_behavior_if_it_sets_only_the_behavior() {
    let behavior: Behavior =
        serde_saphyr::from_str("sequence: [allow, {fault: E07-wrong}, {fault: uid-wrong}]").unwrap();
    let same: Behavior =
        serde_saphyr::from_str("sequence: [allow, {bad-response: wrong-uid}, {bad-response: wrong-uid}]")
            .unwrap();
    assert_eq!(behavior, same);
    for (fault, expected) in [
        ("T01", "of the connection; use `fault: T01` in the entry"),
        ("T05", "of the certificate"),
        ("E77", "unknown fault `E77`: `admit fakes list` lists all faults"),
        (
            "E07",
            "unknown fault `E07`: did you mean `E07-missing` (uid-missing), `E07-wrong` (uid-wrong), or `E07-capitals` (uid-in-capitals)? `admit fakes list`",
        ),
        ("wrong-uid", "unknown fault `wrong-uid`: did you mean `E07-wrong` (uid-wrong)? `admit fakes list`"),
    ] {
        let error = serde_saphyr::from_str::<Behavior>(&format!("fault: {fault}")).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn entry_overrides_its_fault() {
    let text = "version: 1\nwebhooks: [{name: one, type: mutating, fault: hang, timeoutSeconds: 3}]";
    let file = FakesFile::parse(text, "x").unwrap();
    assert_eq!(file.webhooks[0].fields.timeout_seconds, 3);
    for (entry, expected) in [
        ("{name: one, type: mutating, fault: hang, behavior: allow}", "not both"),
        ("{name: one, type: mutating, fault: hangs}", "unknown fault `hangs`"),
        ("{name: one, type: validating, fault: P06-undecodable}", "other webhook type"),
        ("{name: one, type: validating}", "needs a `behavior`"),
        (
            "{name: one, type: validating, behaviour: deny}",
            "unknown field `behaviour`: did you mean `behavior`?",
        ),
        ("{name: one, type: validating, behavior: slow}", "unknown value `slow`: did you mean `delay`?"),
        (
            "{name: one, type: validating, behavior: {timeout: 2s}}",
            "`timeout` needs a map of its parameters: expected `hang` or `then`",
        ),
        (
            "{name: one, type: validating, behavior: {sequence: [allow, {deny: no}]}}",
            "`deny` needs a map of its parameters: expected one of `code`, ",
        ),
        (
            "{name: one, type: validating, behavior: {deny: {message: no}}, metadata: a}",
            "unknown field `metadata`",
        ),
        (
            "{name: one, type: validating, behavior: {raw: {json: {}, headers: a}}}",
            "expected a map, such as `{field: value}`",
        ),
    ] {
        let text = format!("version: 1\nwebhooks: [{entry}]");
        let error = FakesFile::parse(&text, "x").unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn printed_classes_are_parsed_back() {
    for class in Class::ALL {
        assert_eq!(json!(class), json!(class.to_string()));
    }
}

/// Checks that the catalog contains the IDs of all planned faults.
#[test]
fn catalog_contains_all_planned_faults() {
    let numbers = |letter: &str, numbers: std::ops::RangeInclusive<u8>| {
        numbers.map(|number| format!("{letter}{number:02}")).collect::<Vec<_>>()
    };
    let list = [
        numbers("T", 1..=23),
        numbers("H", 1..=21),
        numbers("E", 1..=15),
        numbers("E", 20..=24),
        numbers("P", 1..=18),
        numbers("C", 1..=6),
        numbers("M", 1..=30),
        numbers("X", 1..=16),
    ]
    .concat();
    let there: BTreeSet<&str> =
        catalog().iter().map(|fault| fault.id.split_once('-').map_or(&*fault.id, |(id, _)| id)).collect();
    let missing: Vec<_> = list.iter().filter(|id| !there.contains(id.as_str())).collect();
    assert_eq!(missing, Vec::<&String>::new());
}

/// Checks the output of the `fake-webhooks` binary, which containers use without `admit`.
#[test]
fn fake_webhooks_binary_lists_the_catalog() {
    let binary = env!("CARGO_BIN_EXE_fake-webhooks");
    let output = Command::new(binary).args(["list", "-o", "json", "--class", "immune"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let immune = catalog().iter().filter(|fault| fault.class == Class::Immune);
    assert_eq!(document["faults"], json!(immune.collect::<Vec<_>>()));
}
