//! Builds the documents of custom resources from templates.
//!
//! The templates are derived from the documents that kube-apiserver generates for a namespaced and a cluster-scoped
//! sample definition.
//!
//! Source: apiextensions-apiserver `pkg/controller/openapi/builder/builder.go`; apiserver
//! `pkg/endpoints/openapi/openapi.go`, `GetOperationIDAndTags`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::Format;
use super::library::LIBRARY;

/// The names in the sample documents that are replaced, in search order.
const MARKERS: &[(&str, Slot)] = &[
    (" a Kkkk\"", Slot::OneKind),
    (" a Cccc\"", Slot::OneKind),
    ("GgggExampleV9Kkkk", Slot::OperationOfKind),
    ("GgggExampleV9Cccc", Slot::OperationOfKind),
    ("GgggExampleV9", Slot::Operation),
    ("NamespacedKkkk", Slot::NamespacedKind),
    ("CollectionCccc", Slot::CollectionOfKind),
    ("ggggExample_v9", Slot::Tag),
    ("example.gggg.v9.", Slot::Model),
    ("gggg.example", Slot::Group),
    ("\"version\":\"v9\"", Slot::Version),
    ("Kkkk", Slot::Kind),
    ("Cccc", Slot::Kind),
    ("Llll", Slot::ListKind),
    ("Dddd", Slot::ListKind),
    ("kkkks", Slot::Plural),
    ("cccs", Slot::Plural),
];

#[derive(Clone, Copy, Debug)]
enum Slot {
    OneKind,
    OperationOfKind,
    Operation,
    NamespacedKind,
    CollectionOfKind,
    Tag,
    Model,
    Group,
    Version,
    Kind,
    ListKind,
    Plural,
}

/// The names of one version of a definition. They replace the slots of the pattern.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names<'a> {
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    pub(super) kind: &'a str,
    pub(super) list_kind: &'a str,
    pub(super) plural: &'a str,
}

impl Names<'_> {
    /// Returns the prefix of the schema names: the reversed group and the version.
    pub(super) fn model(&self) -> String {
        let group: Vec<&str> = self.group.rsplit('.').collect();
        format!("{}.{}.", group.join("."), self.version)
    }

    fn operation(&self) -> String {
        identifier(self.group.trim_end_matches_once(".k8s.io"), true) + &identifier(self.version, true)
    }

    fn fill(&self, slot: Slot) -> Cow<'_, str> {
        match slot {
            Slot::OneKind => format!("{}{}\"", article(self.kind), self.kind).into(),
            Slot::OperationOfKind => (self.operation() + &identifier(self.kind, true)).into(),
            Slot::Operation => self.operation().into(),
            Slot::NamespacedKind => identifier(&format!("Namespaced{}", self.kind), true).into(),
            Slot::CollectionOfKind => identifier(&format!("Collection{}", self.kind), true).into(),
            Slot::Tag => {
                let group = identifier(self.group.trim_end_matches_once(".k8s.io"), false);
                format!("{group}_{}", identifier(self.version, false)).into()
            }
            Slot::Model => self.model().into(),
            Slot::Group => self.group.into(),
            Slot::Version => format!("\"version\":\"{}\"", self.version).into(),
            Slot::Kind => self.kind.into(),
            Slot::ListKind => self.list_kind.into(),
            Slot::Plural => self.plural.into(),
        }
    }
}

trait TrimOnce {
    fn trim_end_matches_once(&self, end: &str) -> &str;
}

impl TrimOnce for str {
    fn trim_end_matches_once(&self, end: &str) -> &str {
        self.strip_suffix(end).unwrap_or(self)
    }
}

/// Converts `text` to a valid operation ID.
///
/// Source: apiserver `pkg/endpoints/openapi/openapi.go`, `ToValidOperationID`.
fn identifier(text: &str, mut capitalize: bool) -> String {
    let mut identifier = String::with_capacity(text.len());
    for (index, character) in text.chars().enumerate() {
        if character.is_alphabetic() || character == '_' || (index > 0 && character.is_numeric()) {
            if capitalize {
                identifier.extend(character.to_uppercase());
            } else {
                identifier.push(character);
            }
            capitalize = false;
        } else {
            capitalize = true;
        }
    }
    identifier
}

/// Returns the indefinite article for a kind, surrounded by spaces; a single space for a plural.
///
/// Source: apiserver `pkg/endpoints/installer.go`, `GetArticleForNoun`.
fn article(kind: &str) -> &'static str {
    if kind.ends_with('s') && !kind.ends_with("ss") {
        return " ";
    }
    if kind.starts_with(|first: char| "aeiou".contains(first.to_ascii_lowercase())) { " an " } else { " a " }
}

/// A part of a document with slots for the names of a definition.
#[derive(Debug, Default)]
pub(super) struct Template(Vec<(Box<str>, Option<Slot>)>);

impl Template {
    fn parse(mut text: &str) -> Self {
        let mut pieces = Vec::new();
        loop {
            let found =
                MARKERS.iter().filter_map(|(marker, slot)| Some((text.find(marker)?, *marker, *slot)));
            // Of markers at the same position, the first in the table wins.
            let Some((at, marker, slot)) = found.min_by_key(|(at, ..)| *at) else { break };
            let (literal, rest) = text.split_at_checked(at).unwrap_or_default();
            pieces.push((literal.into(), Some(slot)));
            text = rest.strip_prefix(marker).unwrap_or_default();
        }
        pieces.push((text.into(), None));
        Self(pieces)
    }

    pub(super) fn fill(&self, names: Names<'_>, text: &mut String) {
        for (literal, slot) in &self.0 {
            text.push_str(literal);
            if let Some(slot) = slot {
                text.push_str(&names.fill(*slot));
            }
        }
    }
}

/// The templates and shared schemas for the documents of one format.
#[derive(Debug, Default)]
pub(super) struct Pattern {
    /// The path item of a namespaced resource across all namespaces.
    everywhere: Template,
    namespaced: Vec<(Box<str>, Template)>,
    cluster_scoped: Vec<(Box<str>, Template)>,
    /// The schema of a list, without the extension for selectable fields.
    pub(super) list: Template,
    /// The Kubernetes schemas to which all documents refer.
    pub(super) shared: BTreeMap<String, Box<str>>,
    /// The schemas of `apiVersion`, `kind`, and `metadata` in an object.
    pub(super) of_object: BTreeMap<String, Box<str>>,
    /// The schemas of `apiVersion`, `kind`, and `metadata` in an embedded object.
    pub(super) of_embedded: BTreeMap<String, Box<str>>,
}

static V2: LazyLock<Pattern> = LazyLock::new(|| Pattern::read(Format::V2).unwrap_or_default());
static V3: LazyLock<Pattern> = LazyLock::new(|| Pattern::read(Format::V3).unwrap_or_default());

type Members = BTreeMap<String, Box<RawValue>>;

#[derive(Deserialize)]
struct Sample {
    paths: Members,
    #[serde(default)]
    definitions: Members,
    #[serde(default)]
    components: Components,
}

#[derive(Default, Deserialize)]
struct Components {
    schemas: Members,
}

#[derive(Deserialize)]
struct Schema {
    properties: Members,
}

impl Pattern {
    pub(super) fn for_format(format: Format) -> &'static Self {
        match format {
            Format::V2 => &V2,
            Format::V3 => &V3,
        }
    }

    fn read(format: Format) -> serde_json::Result<Self> {
        let name = match format {
            Format::V2 => "sample/v2",
            Format::V3 => "sample/v3",
        };
        let sample: Sample = serde_json::from_str(&LIBRARY.text(name))?;
        let mut pattern = Self::default();
        for (path, item) in &sample.paths {
            let template = Template::parse(item.get());
            if path.ends_with("/v9/kkkks") {
                pattern.everywhere = template;
            } else if let Some((_, rest)) = path.split_once("/kkkks") {
                pattern.namespaced.push((rest.into(), template));
            } else if let Some((_, rest)) = path.split_once("/cccs") {
                pattern.cluster_scoped.push((rest.into(), template));
            }
        }
        let schemas = sample.definitions.into_iter().chain(sample.components.schemas);
        for (name, schema) in schemas {
            match name.strip_prefix("example.gggg.v9.") {
                Some("Kkkk") => {
                    let mut schema: Schema = serde_json::from_str(schema.get())?;
                    if let Some(embedded) = schema.properties.remove("spec") {
                        let embedded: serde_json::Result<Schema> = serde_json::from_str(embedded.get());
                        pattern.of_embedded =
                            embedded.map(|schema| texts(schema.properties)).unwrap_or_default();
                    }
                    // `own` is a field of the sample, not of every embedded object.
                    pattern.of_embedded.remove("own");
                    pattern.of_object = texts(schema.properties);
                }
                Some("Llll") => pattern.list = Template::parse(schema.get()),
                Some(_) => {}
                None => {
                    pattern.shared.insert(name, schema.get().into());
                }
            }
        }
        Ok(pattern)
    }

    /// Adds the paths of a resource to `paths`. `has` returns whether the resource has a subresource.
    pub(super) fn paths(
        &self,
        names: Names<'_>,
        is_namespaced: bool,
        has: impl Fn(&str) -> bool,
        paths: &mut BTreeMap<String, String>,
    ) {
        let filled = |template: &Template| {
            let mut item = String::new();
            template.fill(names, &mut item);
            item
        };
        let Names { group, version, plural, .. } = names;
        let root = format!("/apis/{group}/{version}");
        if is_namespaced {
            paths.insert(format!("{root}/{plural}"), filled(&self.everywhere));
        }
        let (templates, root) = if is_namespaced {
            (&self.namespaced, format!("{root}/namespaces/{{namespace}}/{plural}"))
        } else {
            (&self.cluster_scoped, format!("{root}/{plural}"))
        };
        for (rest, template) in templates {
            let subresource = rest.strip_prefix("/{name}/").unwrap_or_default();
            if subresource.is_empty() || has(subresource) {
                paths.insert(format!("{root}{rest}"), filled(template));
            }
        }
    }
}

fn texts(members: Members) -> BTreeMap<String, Box<str>> {
    members.into_iter().map(|(name, text)| (name, text.get().into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn articles_and_identifiers_match_upstream() {
        for (kind, expected) in
            [("Apple", " an "), ("Widget", " a "), ("Widgets", " "), ("Class", " a "), ("order", " an ")]
        {
            assert_eq!(article(kind), expected, "{kind}");
        }
        for (text, capitalize, expected) in [
            ("a-b.x1.example", false, "aBX1Example"),
            ("a-b.x1.example", true, "ABX1Example"),
            ("1a", true, "A"),
            ("v1beta1", true, "V1beta1"),
        ] {
            assert_eq!(identifier(text, capitalize), expected, "{text}");
        }
    }
}
