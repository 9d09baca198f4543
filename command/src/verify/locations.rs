//! Finds the file and the line of each webhook's entry.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use harness::event::Phase;
use harness::verify::report::Location;
use harness::verify::with_phase;
use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::Spanned;

use crate::documents::{Document, DocumentLocation};

/// The parts of a document that are needed to find its webhooks.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Outline {
    kind: String,
    metadata: Named,
    webhooks: Vec<Spanned<Named>>,
    items: Vec<Outline>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Named {
    name: String,
}

/// Returns the location of each webhook, by [`harness::verify::Subject::name`].
///
/// If the line of an entry is unknown, its location is the line of its document. Webhooks from standard input do not
/// have a location.
pub(crate) fn locations<'a>(
    configurations: impl Iterator<Item = &'a Document>,
) -> BTreeMap<String, Location> {
    let mut outlines: HashMap<String, Vec<Outline>> = HashMap::new();
    let mut found = Vec::new();
    for Document { place, object } in configurations {
        let DocumentLocation { file, line } = place;
        if file == "STDIN" {
            continue;
        }
        let outlines = outlines.entry(file.clone()).or_insert_with(|| read(file));
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let configuration = text("/metadata/name");
        let entries = find(outlines, text("/kind"), configuration);
        let mut seen: HashMap<&str, usize> = HashMap::new();
        for (index, webhook) in object["webhooks"].as_array().into_iter().flatten().enumerate() {
            let name = webhook["name"].as_str().unwrap_or_default();
            let ordinal = seen.entry(name).and_modify(|count| *count += 1).or_default();
            let id = match ordinal {
                0 => format!("{configuration}/{name}"),
                ordinal => format!("{configuration}/{name}/{ordinal}"),
            };
            let own = entries.and_then(|entries| entries.get(index)).filter(|entry| entry.value.name == name);
            let line = own.map_or(*line, |entry| entry.referenced.line());
            let phase = match text("/kind") {
                "MutatingWebhookConfiguration" => Phase::Mutating,
                _ => Phase::Validating,
            };
            found.push((id, phase, Location { file: file.clone(), line }));
        }
    }
    let ids: HashSet<(String, Phase)> = found.iter().map(|(id, phase, _)| (id.clone(), *phase)).collect();
    let name = |id: String, phase| {
        let mut both = [Phase::Mutating, Phase::Validating].into_iter();
        let has_namesake = both.all(|phase| ids.contains(&(id.clone(), phase)));
        if has_namesake { with_phase(&id, phase) } else { id }
    };
    found.into_iter().map(|(id, phase, location)| (name(id, phase), location)).collect()
}

/// Returns the outlines of the documents in a file.
///
/// Returns an empty list if the file is not valid YAML, such as a sequence of JSON documents.
fn read(file: &str) -> Vec<Outline> {
    let text = output::read(Path::new(file)).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    text.and_then(|text| serde_saphyr::from_multiple(&text).ok()).unwrap_or_default()
}

fn find<'a>(outlines: &'a [Outline], kind: &str, name: &str) -> Option<&'a [Spanned<Named>]> {
    outlines.iter().find_map(|outline| {
        if outline.kind == kind && outline.metadata.name == name {
            return Some(&outline.webhooks[..]);
        }
        find(&outline.items, kind, name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, text: &str, expected: &[(&str, u64)]) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        let documents = crate::documents::read(&[file]).unwrap();
        let found: Vec<(String, u64)> =
            locations(documents.iter()).into_iter().map(|(name, location)| (name, location.line)).collect();
        let expected: Vec<(String, u64)> =
            expected.iter().map(|(name, line)| ((*name).to_owned(), *line)).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn a_webhook_is_where_its_entry_begins() {
        let text = "\
# mine
apiVersion: v1
kind: Namespace
metadata: {name: n}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata:
  name: c
webhooks:
- name: a
  rules: []
- sideEffects: None
  name: b
- name: a
";
        check("c.yaml", text, &[("c/a", 11), ("c/a/1", 15), ("c/b", 13)]);
    }

    #[test]
    fn webhooks_of_one_name_in_both_phases_have_their_own_lines() {
        let of = |kind: &str| {
            let head = "apiVersion: admissionregistration.k8s.io/v1\nkind: ";
            format!("{head}{kind}WebhookConfiguration\nmetadata: {{name: c}}\nwebhooks:\n- name: a\n")
        };
        let text = format!("{}---\n{}- name: b\n", of("Mutating"), of("Validating"));
        check("c.yaml", &text, &[("c/a (mutating)", 5), ("c/a (validating)", 11), ("c/b", 12)]);
    }

    #[test]
    fn lists_and_json_have_lines_too() {
        let list = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: K\n  metadata: {name: c}\n  webhooks:\n  - name: a\n";
        check("c.yaml", list, &[("c/a", 8)]);
        let json = "{\"apiVersion\": \"v1\", \"kind\": \"K\",\n\"metadata\": {\"name\": \"c\"},\n\"webhooks\": [\n{\"name\": \"a\"}]}";
        check("c.json", json, &[("c/a", 4)]);
        // The file is not a single YAML document, so the location is the line of the document.
        let second = json.replace("\"c\"", "\"d\"");
        check("c.json", &format!("{json}\n{second}"), &[("c/a", 1), ("d/a", 5)]);
    }
}
