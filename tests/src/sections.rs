//! Maps sections of the admission webhook documentation to scenarios in `features/`.
//!
//! The result is the page `docs/project/coverage.md`.
//!
//! The description of a feature, rule, or scenario may end with a paragraph `Source:`. It lists the documents that are
//! covered, separated by semicolons, each with the titles of its sections in quotes. Without this paragraph, the
//! paragraph of the parent applies.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use gherkin::{Feature, GherkinEnv};
use serde::Deserialize;

/// A document and the scenarios that cover its sections.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    #[serde(rename = "document")]
    name: String,
    address: String,
    sections: Vec<Section>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    title: String,
    /// The reason why the section does not have a scenario.
    without: Option<String>,
    #[serde(skip)]
    shown: Vec<RuleCoverage>,
}

/// The scenarios of one rule that cover a section.
#[derive(Clone, Debug)]
struct RuleCoverage {
    file: String,
    rule: Option<String>,
    scenarios: Vec<String>,
}

/// Reads the list of sections and the features, and finds the scenarios of each section.
///
/// # Errors
/// Returns an error if a file cannot be read, a scenario names an unknown section, or a section has neither a
/// scenario nor a reason, or both. The error lists all problems, one per line.
pub fn read(list: &Path, features: &Path) -> io::Result<Vec<Document>> {
    let mut documents: Vec<Document> = serde_saphyr::from_str(&fs::read_to_string(list)?)
        .map_err(|error| io::Error::other(format!("{}: {error}", list.display())))?;
    let mut files =
        fs::read_dir(features)?.map(|entry| entry.map(|it| it.path())).collect::<Result<Vec<_>, _>>()?;
    files.sort();
    let mut problems = Vec::new();
    for file in files {
        let feature = Feature::parse_path(&file, GherkinEnv::default())
            .map_err(|error| io::Error::other(format!("{}: {error}", file.display())))?;
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        problems.extend(collect(&mut documents, &name, &feature));
    }
    problems.extend(contradictions(&documents));
    if problems.is_empty() { Ok(documents) } else { Err(io::Error::other(problems.join("\n"))) }
}

/// Adds the scenarios of a feature to the sections that they cover. Returns the unknown sections in the feature.
fn collect(documents: &mut [Document], file: &str, feature: &Feature) -> Vec<String> {
    let mut problems = Vec::new();
    let of_feature = source(feature.description.as_deref()).unwrap_or_default();
    let own = feature.scenarios.iter().map(|scenario| (None, of_feature.clone(), scenario));
    let of_rules = feature.rules.iter().flat_map(|rule| {
        let of_rule = source(rule.description.as_deref()).unwrap_or_else(|| of_feature.clone());
        rule.scenarios.iter().map(move |scenario| (Some(rule.name.clone()), of_rule.clone(), scenario))
    });
    for (rule, above, scenario) in own.chain(of_rules) {
        for (document, title) in source(scenario.description.as_deref()).unwrap_or(above) {
            let Some(known) = documents.iter_mut().find(|it| it.name == document) else { continue };
            match known.sections.iter_mut().find(|section| section.title == title) {
                Some(section) => section.is_shown_by(file, rule.as_ref(), &scenario.name),
                None => problems.push(format!(
                    "features/{file}:{}: {document} has no section \"{title}\"; tests/sections.yaml lists them",
                    scenario.position.line
                )),
            }
        }
    }
    problems
}

fn contradictions(documents: &[Document]) -> Vec<String> {
    let sections = documents.iter().flat_map(|it| it.sections.iter().map(|section| (&it.name, section)));
    let problem = |(document, section): (&String, &Section)| {
        let what = match (section.shown.is_empty(), &section.without) {
            (true, None) => "no scenario names it in its Source, and no reason says why",
            (false, Some(_)) => "scenarios show it, and a reason says that there are none",
            (true, Some(_)) | (false, None) => return None,
        };
        Some(format!("tests/sections.yaml: {document}, \"{}\": {what}", section.title))
    };
    sections.filter_map(problem).collect()
}

impl Section {
    fn is_shown_by(&mut self, file: &str, rule: Option<&String>, scenario: &str) {
        match self.shown.iter_mut().find(|place| place.file == file && place.rule.as_ref() == rule) {
            Some(place) => place.scenarios.push(scenario.to_owned()),
            None => self.shown.push(RuleCoverage {
                file: file.to_owned(),
                rule: rule.cloned(),
                scenarios: vec![scenario.to_owned()],
            }),
        }
    }
}

/// Returns the documents and titles in the paragraph `Source:`; `None` if there is no such paragraph.
fn source(description: Option<&str>) -> Option<Vec<(String, String)>> {
    // The parser removes blank lines, so the paragraph ends with the description.
    let lines = description?.lines().map(str::trim).skip_while(|line| !line.starts_with("Source:"));
    let text = lines.collect::<Vec<_>>().join(" ");
    let text = text.strip_prefix("Source:")?;
    let mut named = Vec::new();
    for part in text.split(';') {
        let mut pieces = part.split('"');
        let document = pieces.next().unwrap_or_default().trim().trim_end_matches(',').to_owned();
        named.extend(pieces.step_by(2).map(|title| (document.clone(), title.to_owned())));
    }
    Some(named)
}

/// Formats the page as Markdown.
pub fn page(documents: &[Document]) -> String {
    let mut page = "<!-- Written by `just sections`; change the features or tests/sections.yaml instead. -->
# What the features cover

This page lists the sections of the Kubernetes documents about admission webhooks, and for each section the scenarios in
[features](https://github.com/admit-dev/admit/tree/main/features) that show its behavior. All scenarios run in process, on a
kube-apiserver from `KUBEBUILDER_ASSETS`, and on a cluster, unless a tag of the scenario says otherwise. Only the titles are taken from the
documents.
"
    .to_owned();
    for document in documents {
        let (shown, without): (Vec<_>, Vec<_>) =
            document.sections.iter().partition(|section| section.without.is_none());
        let _ = writeln!(page, "\n## {}\n\n<{}>", document.name, document.address);
        for section in shown {
            let _ = writeln!(page, "\n### {}\n", escaped(&section.title));
            for place in &section.shown {
                let rule = place.rule.as_ref().map(|rule| format!(", {}", escaped(rule))).unwrap_or_default();
                let _ = writeln!(
                    page,
                    "- [{0}](https://github.com/admit-dev/admit/blob/main/features/{0}){rule}",
                    place.file
                );
                for scenario in &place.scenarios {
                    let _ = writeln!(page, "  - {}", escaped(scenario));
                }
            }
        }
        let _ = writeln!(page, "\n### Without a scenario\n\n| Section | Reason |\n|---|---|");
        for section in without {
            let reason = section.without.as_deref().unwrap_or_default();
            let _ = writeln!(page, "| {} | {} |", escaped(&section.title), reason);
        }
    }
    page
}

/// Escapes the placeholders of scenario outlines, because Markdown would interpret them as HTML.
fn escaped(text: &str) -> String {
    text.replace('<', "\\<").replace('*', "\\*")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feature(text: &str) -> Feature {
        Feature::parse(text, GherkinEnv::default()).unwrap()
    }

    fn documents() -> Vec<Document> {
        serde_saphyr::from_str(
            "[{document: Page, address: a, sections: [{title: One}, {title: Two}, {title: Three, without: why}]}]",
        )
        .unwrap()
    }

    #[test]
    fn a_rule_shows_what_its_own_source_names_or_that_of_its_feature() {
        let mut all = documents();
        let text = "Feature: F\n  Words.\n\n  Source: Page, \"One\"; other pkg/x.go, \"y\"\n\n  Rule: R\n    Scenario: first\n      * x\n  \
            Rule: S\n    Source: Page, \"One\",\n    \"Two\"\n\n    Scenario: second\n      * x\n";
        assert_eq!(collect(&mut all, "f.feature", &feature(text)), [""; 0]);
        assert_eq!(contradictions(&all), [""; 0]);
        let shown: Vec<_> = all[0].sections.iter().map(|section| section.shown.len()).collect();
        assert_eq!(shown, [2, 1, 0]);
        assert_eq!(all[0].sections[1].shown[0].scenarios, ["second"]);
    }

    #[test]
    fn a_section_has_scenarios_or_a_reason() {
        let mut all = documents();
        let text = "Feature: F\n  Source: Page, \"One\", \"Three\", \"Four\"\n\n  Scenario: first\n    * x\n";
        let problems = collect(&mut all, "f.feature", &feature(text));
        assert_eq!(problems.len(), 1);
        assert!(problems[0].contains("f.feature:4: Page has no section \"Four\""), "{problems:?}");
        let problems = contradictions(&all);
        assert_eq!(problems.len(), 2);
        assert!(problems[0].contains("\"Two\": no scenario names it"), "{problems:?}");
        assert!(problems[1].contains("\"Three\": scenarios show it"), "{problems:?}");
    }

    #[test]
    fn the_page_is_what_the_features_say() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let documents = read(&root.join("tests/sections.yaml"), &root.join("features")).unwrap();
        let written = fs::read_to_string(root.join("docs/project/coverage.md")).unwrap_or_default();
        let differs = "docs/project/coverage.md is not what the features say: cargo run -p tests -- sections > docs/project/coverage.md";
        assert!(page(&documents) == written, "{differs}");
    }
}
