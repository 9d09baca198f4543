//! Tests that the documentation page of behaviors is complete and valid.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

use std::collections::{BTreeMap, BTreeSet};

use fake_webhooks::Behavior;

const PAGE: &str = include_str!("../../docs/reference/fake-behaviors.md");

/// A section of the page.
#[derive(Default)]
struct Section {
    /// The first cell of each row in the section's table.
    rows: BTreeSet<String>,
    examples: Vec<String>,
}

/// Returns the sections of the page by the code in their headings.
fn sections() -> BTreeMap<String, Section> {
    let quoted = |line: &str| line.split('`').nth(1).map(str::to_owned);
    let mut sections: BTreeMap<String, Section> = BTreeMap::new();
    let (mut name, mut example) = (String::new(), None::<String>);
    for line in PAGE.lines() {
        if let Some(text) = &mut example {
            if line == "```" {
                sections.entry(name.clone()).or_default().examples.extend(example.take());
            } else {
                text.push_str(line);
                text.push('\n');
            }
        } else if line == "```yaml" {
            example = Some(String::new());
        } else if line.starts_with("## Conditions") {
            "conditions".clone_into(&mut name);
        } else if line.starts_with("### ") {
            name = quoted(line).unwrap();
            assert!(sections.insert(name.clone(), Section::default()).is_none(), "`{name}` is there twice");
        } else if line.starts_with("| `") {
            sections.entry(name.clone()).or_default().rows.extend(quoted(line));
        }
    }
    sections
}

/// Returns the values that the error for an invalid behavior lists as expected.
fn expected(yaml: &str) -> BTreeSet<String> {
    let error = serde_saphyr::from_str::<Behavior>(yaml).unwrap_err();
    let message = error.without_snippet().to_string();
    let (_, names) = message.split_once("expected ").unwrap_or_else(|| panic!("{message}"));
    let names = names.split(" at line").next().unwrap_or(names);
    names
        .replace("one of ", "")
        .split([',', ' '])
        .map(|name| name.trim_matches('`').to_owned())
        .filter(|name| !name.is_empty() && name != "or")
        .collect()
}

#[test]
fn every_behavior_is_documented() {
    let mut written: BTreeSet<_> = sections().into_keys().collect();
    assert!(written.remove("conditions"));
    assert_eq!(written, expected("no-such-behavior: 1"));
}

#[test]
fn every_parameter_is_documented() {
    for (name, section) in sections() {
        let nonsense = match name.as_str() {
            "sequence" | "cycle" | "fault" => {
                assert!(section.rows.is_empty(), "{name}");
                continue;
            }
            "mutate" => "mutate: [{no-such-change: 1}]".to_owned(),
            "bad-response" => "bad-response: no-such-response".to_owned(),
            "conditions" => "when: {if: {no-such-condition: 1}, then: allow}".to_owned(),
            other => format!("{other}: {{no-such-parameter: 1}}"),
        };
        assert_eq!(section.rows, expected(&nonsense), "{name}");
    }
}

#[test]
fn every_documented_example_is_valid() {
    for (name, section) in sections() {
        assert!(!section.examples.is_empty(), "`{name}` has no example");
        for example in section.examples {
            if let Err(error) = serde_saphyr::from_str::<Behavior>(&example) {
                panic!("{example}\n{error}");
            }
            let shown = if name == "conditions" { "when" } else { &name };
            assert!(example.contains(&format!("{shown}:")), "no `{name}` in {example}");
        }
    }
}
