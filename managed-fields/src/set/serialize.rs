//! Encodes sets as JSON, byte for byte as the server does.
//!
//! Source: structured-merge-diff fieldpath/serialize.go.

use serde_json::{Map, Value};

use super::{Builder, Node, Set};
use crate::go::{self, Escapes, Exponents};
use crate::path::PathElement;
use crate::reader::{self, Reader};

/// The member that marks the enclosing field as a member of the set.
const SELF: &str = ".";

impl Set {
    /// Encodes the set as `fieldsV1` in upstream's order: items are sorted by their keys, not by their text.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, false);
        out
    }

    fn write(&self, out: &mut String, is_member: bool) {
        out.push('{');
        if is_member {
            out.push_str("\".\":{}");
        }
        let mut has_first = is_member;
        self.for_each(|element, is_member, below| {
            // Elements that cannot be encoded are omitted.
            let Some(name) = element.serialize() else { return };
            if has_first {
                out.push(',');
            }
            has_first = true;
            go::write_json_text(out, &name, Escapes::Needed, Exponents::JsonIterator);
            out.push(':');
            match below {
                Some(below) => below.write(out, is_member),
                None => out.push_str("{}"),
            }
        });
        out.push('}');
    }

    /// Returns the set as `fieldsV1`.
    pub fn to_value(&self) -> Value {
        self.value(false)
    }

    fn value(&self, is_member: bool) -> Value {
        let mut members = Map::new();
        if is_member {
            members.insert(SELF.to_owned(), Map::new().into());
        }
        self.for_each(|element, is_member, below| {
            let below = below.map_or_else(|| Map::new().into(), |below| below.value(is_member));
            if let Some(name) = element.serialize() {
                members.insert(name, below);
            }
        });
        members.into()
    }

    /// Visits the elements that are members or have members below them, in order.
    fn for_each(&self, mut visit: impl FnMut(&PathElement, bool, Option<&Self>)) {
        let mut members = self.members.iter().peekable();
        for (element, below) in self.children() {
            while let Some(member) = members.next_if(|member| *member < element) {
                visit(member, true, None);
            }
            let is_member = members.next_if(|member| *member == element).is_some();
            visit(element, is_member, Some(below));
        }
        members.for_each(|member| visit(member, true, None));
    }

    /// Decodes a set from JSON.
    ///
    /// # Errors
    /// Returns kube-apiserver's error, with its position in the text.
    ///
    /// Source: structured-merge-diff fieldpath/serialize.go, `FromJSON` and `readIterV1`.
    pub fn from_json(text: &str) -> Result<Self, String> {
        let mut reader = Reader::from_stream(text.as_bytes());
        let node = read(&mut reader);
        reader.finish()?;
        Ok(node.below.finish_with_last())
    }
}

/// Reads the members below a field. The field itself is a member if it does not have members below it or if its JSON
/// object contains `.`.
fn read(reader: &mut Reader<'_>) -> Node {
    let mut node = Node::default();
    reader.object(reader::MAP, |reader, name| {
        if name == SELF {
            node.is_member = true;
            return reader.skip();
        }
        match PathElement::parse(&name) {
            Ok(Some(element)) => {
                let child = read(reader);
                node.below.attach_set(&element, child.is_member, child.below.finish_with_last());
            }
            Ok(None) => reader.skip(),
            Err(error) => reader.fail("parsing key as path element", &error),
        }
    });
    node.is_member |= node.below.is_empty();
    node
}

impl Builder {
    fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.is_empty()
    }
}
