//! Lists of objects.

use std::sync::Arc;

use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_types::json::set;
use serde_json::Value;

use super::super::storage::{EncodedObject, StoredObject};
use crate::apimachinery::protobuf::ListEncoder;

/// An object of a list.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Stored(Arc<StoredObject>),
    /// An object that differs from the stored JSON because it was converted or some of its fields were removed.
    Converted(EncodedObject),
}

impl Item {
    pub(crate) fn encoded(&self) -> &EncodedObject {
        match self {
            Self::Stored(stored) => stored.encoded(),
            Self::Converted(encoded) => encoded,
        }
    }

    pub(crate) fn object(&self) -> Arc<Value> {
        match self {
            Self::Stored(stored) => stored.object(),
            Self::Converted(encoded) => Arc::new(encoded.decode()),
        }
    }
}

/// A list of objects. Encoding copies the stored JSON of each object into the JSON of the list.
#[derive(Clone, Debug)]
pub(crate) struct List {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) resource_version: String,
    /// `continue`: the token of the next page; empty on the last page.
    pub(crate) token: String,
    /// `remainingItemCount`: the number of objects after this page; `None` if unknown.
    pub(crate) remaining: Option<usize>,
    pub(crate) items: Vec<Item>,
    /// Whether the items have `apiVersion` and `kind`, as custom resources do.
    pub(crate) typed_items: bool,
}

impl List {
    pub(crate) fn metadata(&self, with_empty_token: bool) -> Value {
        let mut metadata = serde_json::json!({"resourceVersion": self.resource_version});
        if with_empty_token || !self.token.is_empty() {
            set(&mut metadata, &["continue"], &*self.token);
        }
        if let Some(remaining) = self.remaining {
            set(&mut metadata, &["remainingItemCount"], remaining);
        }
        metadata
    }

    /// Returns the JSON before the first item.
    fn head(&self) -> String {
        // Upstream treats lists of custom resources as unstructured, so an empty token is also written.
        let metadata = self.metadata(self.typed_items);
        let (kind, version) = (Value::from(&*self.kind), Value::from(&*self.api_version));
        format!("{{\"kind\":{kind},\"apiVersion\":{version},\"metadata\":{metadata},\"items\":[")
    }

    /// Returns the number of bytes that [`Self::write`] writes.
    pub(crate) fn length(&self) -> usize {
        let of_item = |item: &Item| {
            let encoded = item.encoded();
            if self.typed_items { encoded.text().len() } else { encoded.length_without_type() }
        };
        let commas = self.items.len().saturating_sub(1);
        self.head().len() + self.items.iter().map(of_item).sum::<usize>() + commas + "]}".len()
    }

    pub(crate) fn write(&self, text: &mut Vec<u8>) {
        text.extend_from_slice(self.head().as_bytes());
        for (index, item) in self.items.iter().enumerate() {
            if index > 0 {
                text.push(b',');
            }
            let encoded = item.encoded();
            if self.typed_items {
                text.extend_from_slice(encoded.text());
            } else {
                encoded.write_without_type(text);
            }
        }
        text.extend_from_slice(b"]}");
    }

    /// Returns the list in protobuf; `None` if its kind does not have a protobuf message.
    pub(crate) fn protobuf(&self) -> Option<Vec<u8>> {
        let head = self.head_document();
        let mut list = ListEncoder::new(&GroupVersionKind::from_object(&head))?;
        for item in self.items.iter().rev() {
            list.prepend(&item.object());
        }
        Some(list.finish(&head))
    }

    /// Returns the list without items.
    fn head_document(&self) -> Value {
        serde_json::json!({
            "kind": self.kind,
            "apiVersion": self.api_version,
            "metadata": self.metadata(self.typed_items),
        })
    }

    pub(crate) fn document(&self) -> Value {
        let items = self.items.iter().map(|item| {
            let mut item = Arc::unwrap_or_clone(item.object());
            if !self.typed_items
                && let Some(members) = item.as_object_mut()
            {
                members.retain(|name, _| name != "kind" && name != "apiVersion");
            }
            item
        });
        let mut document = self.head_document();
        set(&mut document, &["items"], items.collect::<Vec<Value>>());
        document
    }
}
