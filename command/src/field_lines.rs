//! Finds the line of a field in a file.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

/// The lines of an object's fields.
#[derive(Debug)]
pub(crate) struct Outline(Spanned<Node>);

/// A value with the lines of its children.
#[derive(Debug)]
enum Node {
    /// A scalar: its string, or `None` if it is not a string.
    Leaf(Option<String>),
    List(Vec<Spanned<Node>>),
    Map(Vec<(Spanned<String>, Spanned<Node>)>),
}

/// Returns the outlines of the `count` objects in a file. Each item of a list counts as an object.
///
/// Returns an empty list if the file is not valid YAML, such as a sequence of JSON documents, or does not have `count`
/// objects.
pub(crate) fn outlines(text: &str, count: usize) -> Vec<Outline> {
    // The reader of documents warns about duplicate keys, and uses the last value.
    let options = serde_saphyr::options! { duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins };
    let Ok(documents) = serde_saphyr::from_multiple_with_options::<Spanned<Node>>(text, options) else {
        return Vec::new();
    };
    let objects = documents.iter().filter(|document| document.value.is_kubernetes_object()).count();
    let mut outlines = Vec::new();
    for document in documents {
        // In a directory, the reader skips other documents; elsewhere they are errors.
        if objects == 0 || document.value.is_kubernetes_object() {
            collect(document, &mut outlines);
        }
    }
    if outlines.len() == count { outlines } else { Vec::new() }
}

impl Node {
    /// Returns whether the value is a map with `apiVersion` and `kind`.
    fn is_kubernetes_object(&self) -> bool {
        let Self::Map(members) = self else { return false };
        ["apiVersion", "kind"].iter().all(|field| {
            members.iter().any(|(key, value)| {
                key.value == *field && matches!(&value.value, Self::Leaf(Some(text)) if !text.is_empty())
            })
        })
    }
}

/// Collects the objects of a document as `documents` reads them.
///
/// Each item of a list is an object. Nodes that are not maps are skipped.
fn collect(node: Spanned<Node>, outlines: &mut Vec<Outline>) {
    match node.value {
        Node::Leaf(_) | Node::List(_) => {}
        Node::Map(mut members) => {
            let is_list = members.iter().any(|(key, value)| {
                key.value == "kind"
                    && matches!(&value.value, Node::Leaf(Some(kind)) if kind.ends_with("List"))
            });
            let items = members
                .iter()
                .position(|(key, value)| key.value == "items" && matches!(value.value, Node::List(_)));
            match items {
                Some(position) if is_list => {
                    if let Node::List(items) = members.swap_remove(position).1.value {
                        for item in items {
                            collect(item, outlines);
                        }
                    }
                }
                _ => outlines.push(Outline(Spanned { value: Node::Map(members), ..node })),
            }
        }
    }
}

impl Outline {
    /// Returns the line of a field such as `webhooks[0].rules[1].scope`.
    ///
    /// For a missing field, returns the line of the nearest parent that exists.
    pub(crate) fn line_of(&self, field: &str) -> Option<u64> {
        let mut line = self.0.referenced.line();
        let mut node = &self.0.value;
        for segment in field.split('.').filter(|segment| !segment.is_empty()) {
            let (name, indices) = segment.split_once('[').unwrap_or((segment, ""));
            let Node::Map(members) = node else { break };
            let Some((key, value)) = members.iter().rfind(|(key, _)| key.value == name) else { break };
            (line, node) = (key.referenced.line(), &value.value);
            for index in indices.split(['[', ']']).filter(|index| !index.is_empty()) {
                let Node::List(items) = node else { break };
                let Some(item) = index.parse().ok().and_then(|index: usize| items.get(index)) else { break };
                (line, node) = (item.referenced.line(), &item.value);
            }
        }
        (line > 0).then_some(line)
    }

    /// Returns the value of a field as it is written in `text`, the text of the file, if it is a scalar other than a
    /// string.
    pub(super) fn written<'t>(&self, field: &str, text: &'t str) -> Option<&'t str> {
        let mut node = &self.0;
        for name in field.split(['.', '[', ']']).filter(|name| !name.is_empty()) {
            node = match &node.value {
                Node::Map(members) => {
                    members.iter().rfind(|(key, _)| key.value == name).map(|(_, value)| value)
                }
                Node::List(items) => name.parse().ok().and_then(|index: usize| items.get(index)),
                Node::Leaf(_) => None,
            }?;
        }
        let Node::Leaf(None) = node.value else { return None };
        let (line, column) = (node.referenced.line(), node.referenced.column());
        let line = text.lines().nth(usize::try_from(line).ok()?.checked_sub(1)?)?;
        let (start, _) = line.char_indices().nth(usize::try_from(column).ok()?.checked_sub(1)?)?;
        let scalar = line.get(start..)?.split([',', '}', ']', ' ', '\t']).next()?;
        (!scalar.is_empty()).then_some(scalar)
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyNode)
    }
}

struct AnyNode;

impl<'de> Visitor<'de> for AnyNode {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("YAML")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Node, E> {
        Ok(Node::Leaf(None))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Node, E> {
        Ok(Node::Leaf(None))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Node, E> {
        Ok(Node::Leaf(None))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Node, E> {
        Ok(Node::Leaf(None))
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Leaf(None))
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Leaf(None))
    }

    fn visit_bytes<E>(self, _: &[u8]) -> Result<Node, E> {
        Ok(Node::Leaf(None))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Leaf(Some(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Node, A::Error> {
        let mut map = Vec::new();
        while let Some(key) = members.next_key()? {
            map.push((key, members.next_value()?));
        }
        Ok(Node::Map(map))
    }

    fn visit_enum<A: serde::de::EnumAccess<'de>>(self, data: A) -> Result<Node, A::Error> {
        use serde::de::VariantAccess as _;
        let (_, variant) = data.variant::<IgnoredAny>()?;
        variant.newtype_variant::<IgnoredAny>()?;
        Ok(Node::Leaf(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# first
kind: A
metadata: {name: a}
---
kind: List
items:
- kind: B
  webhooks:
  - name: x
    rules:
    - resources:
      - pods
      - \"*\"
  - name: y
    expression: |
      a
- kind: C
";

    #[test]
    fn a_field_has_the_line_of_its_name_and_an_item_its_own() {
        let outlines = outlines(TEXT, 3);
        for (object, field, line) in [
            (0, "", 2),
            (0, "metadata.name", 3),
            (0, "spec.nothing", 2),
            (1, "", 7),
            (1, "webhooks", 8),
            (1, "webhooks[0]", 9),
            (1, "webhooks[0].rules[0].resources", 11),
            (1, "webhooks[0].rules[0].resources[1]", 13),
            (1, "webhooks[0].rules[0].scope", 11),
            (1, "webhooks[0].rules[7].scope", 10),
            (1, "webhooks[1].expression", 15),
            (2, "kind", 17),
        ] {
            assert_eq!(outlines[object].line_of(field), Some(line), "{object} {field}");
        }
    }

    #[test]
    fn a_boolean_or_a_number_is_known_as_it_is_written() {
        let text = "kind: A\napiVersion: v1\nspec:\n  a: {name: y, other: \"y\"}\n  b:\n  - 0777 # mode\n  - on\n  c: 1e3\n";
        let outline = &outlines(text, 1)[0];
        for (field, expected) in [
            ("spec.a.name", Some("y")),
            ("spec.a.other", None),
            ("spec.b[0]", Some("0777")),
            ("spec.b[1]", Some("on")),
            ("spec.c", Some("1e3")),
            ("spec.b", None),
            ("spec.missing", None),
        ] {
            assert_eq!(outline.written(field, text), expected, "{field}");
        }
    }

    #[test]
    fn json_has_lines_and_documents_one_after_another_have_none() {
        let json = "{\"kind\": \"A\",\n\"webhooks\": [\n{\"name\": \"a\"}]}";
        assert_eq!(outlines(json, 1)[0].line_of("webhooks[0].name"), Some(3));
        assert!(outlines(&format!("{json}\n{json}"), 2).is_empty());
    }
}
