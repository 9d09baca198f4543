//! Keeps stored objects as JSON text, and decodes them on use.
//!
//! A decoded object takes several times the memory of its text, and most reads need only the text.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use kubernetes_admission::attributes::GroupVersionKind;
use serde::Deserialize as _;
use serde_json::Value;

/// The maximum total size of unused decoded objects in the cache, in bytes of JSON.
const DECODED_CACHE_BYTES: usize = 1 << 20;

/// The compact JSON of an object.
#[derive(Clone, Debug, Default)]
pub(crate) struct EncodedObject {
    text: Box<[u8]>,
    /// The range of the member `apiVersion`, without a comma. `kind` is the range of the member `kind`.
    api_version: Range<usize>,
    kind: Range<usize>,
    /// The range of the value of `metadata.resourceVersion`. It follows `apiVersion` and `kind`.
    version: Range<usize>,
}

impl EncodedObject {
    pub(crate) fn new(object: &Value) -> Self {
        let Value::Object(members) = object else {
            let mut text = Vec::new();
            write_json(&mut text, object);
            return Self { text: text.into_boxed_slice(), ..Self::default() };
        };
        let mut writer = Writer::default();
        let (mut api_version, mut kind, mut version) = Default::default();
        writer.begin();
        for (name, value) in members {
            match (name.as_str(), value) {
                ("apiVersion", _) => api_version = writer.member(name, value),
                ("kind", _) => kind = writer.member(name, value),
                ("metadata", Value::Object(members)) => {
                    writer.name(name);
                    writer.begin();
                    for (name, value) in members {
                        let member = writer.member(name, value);
                        if name == "resourceVersion" {
                            version = member.start + "\"resourceVersion\":".len()..member.end;
                        }
                    }
                    writer.end();
                }
                _ => drop(writer.member(name, value)),
            }
        }
        writer.end();
        Self { text: writer.text.into_boxed_slice(), api_version, kind, version }
    }

    /// Returns a copy with a new `metadata.resourceVersion`, or an unchanged copy if the object does not have one.
    pub(crate) fn with_version(&self, version: u64) -> Self {
        let (before, behind) = (self.text.get(..self.version.start), self.text.get(self.version.end..));
        let (Some(before), Some(behind)) = (before, behind) else { return self.clone() };
        if self.version.is_empty() {
            return self.clone();
        }
        let version = format!("\"{version}\"");
        let at = self.version.start..self.version.start + version.len();
        let text = [before, version.as_bytes(), behind].concat().into_boxed_slice();
        Self { text, version: at, api_version: self.api_version.clone(), kind: self.kind.clone() }
    }

    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Returns whether the object has this `apiVersion` and `kind`.
    pub(crate) fn is_of(&self, kind: &GroupVersionKind) -> bool {
        let member = |at: &Range<usize>, name: &str| {
            let text = self.text.get(at.clone()).unwrap_or_default();
            text.strip_prefix(name.as_bytes())
                .and_then(|text| text.strip_suffix(b"\""))
                .map(|text| std::str::from_utf8(text).unwrap_or_default())
        };
        let version = member(&self.api_version, "\"apiVersion\":\"").unwrap_or_default();
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        group == kind.group
            && version == kind.version
            && member(&self.kind, "\"kind\":\"") == Some(kind.kind.as_str())
    }

    /// Writes the object without `apiVersion` and `kind` to `text`.
    pub(crate) fn write_without_type(&self, text: &mut Vec<u8>) {
        text.push(b'{');
        let start = text.len();
        for part in self.parts_without_type() {
            if text.len() > start && !part.is_empty() {
                text.push(b',');
            }
            text.extend_from_slice(part);
        }
        text.push(b'}');
    }

    /// Returns the number of bytes that [`Self::write_without_type`] writes.
    pub(crate) fn length_without_type(&self) -> usize {
        let lengths = self.parts_without_type().map(<[u8]>::len);
        let commas = lengths.iter().filter(|length| **length > 0).count().saturating_sub(1);
        lengths.iter().sum::<usize>() + commas + 2
    }

    /// Returns the members before, between, and after `apiVersion` and `kind`, without the commas around them.
    fn parts_without_type(&self) -> [&[u8]; 3] {
        let mut ranges = [&self.api_version, &self.kind];
        ranges.sort_by_key(|range| range.start);
        // The range of a missing member is empty and at the start.
        let [first, second] = ranges.map(|range| range.start.max(1)..range.end.max(1));
        let end = self.text.len().saturating_sub(1);
        [1..first.start, first.end..second.start, second.end..end].map(|part| {
            let part = self.text.get(part).unwrap_or_default();
            let part = part.strip_prefix(b",").unwrap_or(part);
            part.strip_suffix(b",").unwrap_or(part)
        })
    }

    pub(crate) fn decode(&self) -> Value {
        let mut decoder = serde_json::Deserializer::from_slice(&self.text);
        // Patches may have nested the object more deeply than the limit for a body.
        decoder.disable_recursion_limit();
        match Value::deserialize(&mut decoder) {
            Ok(object) => object,
            Err(error) => unreachable!("what was encoded can be decoded: {error}"),
        }
    }
}

/// Writes the members of objects and records their positions.
#[derive(Default)]
struct Writer {
    text: Vec<u8>,
    /// Whether the next member is the first.
    is_first: bool,
}

impl Writer {
    fn begin(&mut self) {
        self.text.push(b'{');
        self.is_first = true;
    }

    fn end(&mut self) {
        self.text.push(b'}');
        self.is_first = false;
    }

    /// Writes the name of a member and returns the position of the name.
    fn name(&mut self, name: &str) -> usize {
        if !std::mem::take(&mut self.is_first) {
            self.text.push(b',');
        }
        let start = self.text.len();
        write_json(&mut self.text, name);
        self.text.push(b':');
        start
    }

    /// Writes a member and returns its range in the text. The range does not include the preceding comma.
    fn member(&mut self, name: &str, value: &Value) -> Range<usize> {
        let start = self.name(name);
        write_json(&mut self.text, value);
        start..self.text.len()
    }
}

fn write_json(text: &mut Vec<u8>, value: &(impl serde::Serialize + ?Sized)) {
    if let Err(error) = serde_json::to_writer(text, value) {
        unreachable!("a vector takes every value, whose keys are texts: {error}");
    }
}

/// An object in its storage version.
#[derive(Debug)]
pub(crate) struct StoredObject {
    encoded: EncodedObject,
    /// The `resourceVersion` of the object.
    version: u64,
    /// Whether the stored text lacks defaults that clients read.
    is_incomplete: AtomicBool,
    /// The decoded object, shared by all current users.
    decoded: Mutex<Weak<Value>>,
}

impl StoredObject {
    /// Creates a stored object. The `resourceVersion` in `encoded` and `object` must be `version`.
    pub(crate) fn new(encoded: EncodedObject, object: &Arc<Value>, version: u64) -> Self {
        Self {
            encoded,
            version,
            is_incomplete: AtomicBool::new(false),
            decoded: Mutex::new(Arc::downgrade(object)),
        }
    }

    pub(crate) const fn encoded(&self) -> &EncodedObject {
        &self.encoded
    }

    /// Returns the `resourceVersion` of the object.
    pub(crate) const fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn is_incomplete(&self) -> bool {
        self.is_incomplete.load(Ordering::Relaxed)
    }

    pub(super) fn note_incomplete(&self) {
        self.is_incomplete.store(true, Ordering::Relaxed);
    }

    /// Returns the memory, in bytes, that the object takes while it is not decoded.
    pub(crate) fn weight(&self) -> usize {
        size_of::<Self>() + self.encoded.text.len()
    }

    /// Returns whether `object` is the decoded object that all current users share.
    pub(crate) fn is(&self, object: &Arc<Value>) -> bool {
        std::ptr::eq(self.lock().as_ptr(), Arc::as_ptr(object))
    }

    /// Returns the decoded object; decodes it if necessary.
    pub(crate) fn object(&self) -> Arc<Value> {
        self.object_and_whether_decoded().0
    }

    /// Returns the decoded object and whether it had to be decoded.
    pub(super) fn object_and_whether_decoded(&self) -> (Arc<Value>, bool) {
        let mut decoded = self.lock();
        if let Some(object) = decoded.upgrade() {
            return (object, false);
        }
        let object = Arc::new(self.encoded.decode());
        *decoded = Arc::downgrade(&object);
        (object, true)
    }

    fn lock(&self) -> MutexGuard<'_, Weak<Value>> {
        self.decoded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A cache of recently decoded objects, for repeated reads.
#[derive(Debug, Default)]
pub(super) struct DecodedCache {
    /// The decoded objects, oldest first, each with the size of its text in bytes.
    objects: VecDeque<(Arc<Value>, usize)>,
    bytes: usize,
}

impl DecodedCache {
    pub(super) fn push(&mut self, object: Arc<Value>, bytes: usize) {
        self.objects.push_back((object, bytes));
        self.bytes += bytes;
        while self.bytes > DECODED_CACHE_BYTES {
            let Some((_, bytes)) = self.objects.pop_front() else { return };
            self.bytes -= bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::set_resource_version;
    use super::*;

    #[test]
    fn object_without_type_keeps_other_members() {
        for object in [
            json!({}),
            json!({"a": 1}),
            json!({"kind": "K"}),
            json!({"apiVersion": "v1"}),
            json!({"apiVersion": "v1", "kind": "K"}),
            json!({"apiVersion": "v1", "data": {"kind": "x"}, "kind": "K", "metadata": {}, "spec": [1]}),
            json!({"a": ",", "apiVersion": "v1", "kind": "K"}),
            json!({"a": 1, "apiVersion": "v1", "b": {}, "kind": "K", "z": ""}),
        ] {
            let encoded = EncodedObject::new(&object);
            assert_eq!(encoded.text(), object.to_string().as_bytes());
            assert_eq!(encoded.decode(), object);
            let mut text = Vec::new();
            encoded.write_without_type(&mut text);
            assert_eq!(text.len(), encoded.length_without_type());
            let mut without = object.clone();
            without.as_object_mut().unwrap().retain(|name, _| name != "apiVersion" && name != "kind");
            assert_eq!(String::from_utf8(text).unwrap(), without.to_string());
        }
    }

    #[test]
    fn kind_is_known_without_decoding() {
        let check = |object: Value, group: &str, version: &str, kind: &str, expected: bool| {
            let encoded = EncodedObject::new(&object);
            assert_eq!(encoded.is_of(&GroupVersionKind::new(group, version, kind)), expected, "{object}");
        };
        check(json!({"apiVersion": "v1", "kind": "Pod"}), "", "v1", "Pod", true);
        check(json!({"apiVersion": "apps/v1", "kind": "Deployment"}), "apps", "v1", "Deployment", true);
        check(json!({"apiVersion": "apps/v1", "kind": "Deployment"}), "", "v1", "Deployment", false);
        check(json!({"apiVersion": "v1", "kind": "Pod"}), "", "v1", "Po", false);
        check(json!({"kind": "Pod"}), "", "v1", "Pod", false);
        check(json!({"apiVersion": "v1"}), "", "v1", "", false);
        check(json!({"apiVersion": 1, "kind": ["Pod"]}), "", "1", "Pod", false);
    }

    #[test]
    fn encoded_text_gets_its_version() {
        let check = |mut object: Value, version: u64| {
            let encoded = EncodedObject::new(&object).with_version(version);
            if object.pointer("/metadata/resourceVersion").is_some() {
                set_resource_version(&mut object, version);
            }
            assert_eq!(encoded.text(), EncodedObject::new(&object).text());
            // A second replacement, with another length.
            assert_eq!(encoded.with_version(1).with_version(version).text(), encoded.text());
        };
        let object = json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "a", "resourceVersion": "0", "uid": "u"}});
        for version in [0, 9, 10, u64::MAX] {
            check(object.clone(), version);
            check(json!({"metadata": {"resourceVersion": ""}}), version);
        }
        check(json!({"kind": "K", "metadata": {"name": "a"}}), 1);
        check(json!({"metadata": "a"}), 1);
        check(json!({"resourceVersion": "0", "spec": {"resourceVersion": "0"}}), 1);
    }

    #[test]
    fn numbers_and_depth_are_kept() {
        let mut deep = json!(0.1);
        for _ in 0..300 {
            deep = json!([deep]);
        }
        for object in [
            json!({"a": [u64::MAX, i64::MIN, 1.0, 5e-324, f64::MAX, 0.1 + 0.2, 123_456_789.012_345_67]}),
            json!({"a": deep}),
            json!({"\u{0}\"\\": "\u{1f600}\u{2028}<>&"}),
        ] {
            assert_eq!(EncodedObject::new(&object).decode(), object);
        }
    }

    #[test]
    fn decoded_object_is_shared() {
        let object = Arc::new(json!({"metadata": {"finalizers": ["a"]}}));
        let stored = StoredObject::new(EncodedObject::new(&object), &object, 1);
        assert!(Arc::ptr_eq(&stored.object(), &object) && stored.is(&object));
        let copy = (*object).clone();
        drop(object);
        let (object, was_decoded) = stored.object_and_whether_decoded();
        assert!(was_decoded && stored.is(&object) && *object == copy);
        assert!(!stored.object_and_whether_decoded().1);
        let mut changed = Arc::clone(&object);
        drop(object);
        *Arc::make_mut(&mut changed) = json!({});
        assert!(!stored.is(&changed));
        assert_eq!(*stored.object(), copy);
    }

    #[test]
    fn decoded_cache_is_limited_in_bytes() {
        let mut recent = DecodedCache::default();
        let (first, second) = (Arc::new(json!(1)), Arc::new(json!(2)));
        recent.push(Arc::clone(&first), DECODED_CACHE_BYTES / 2);
        recent.push(Arc::clone(&second), DECODED_CACHE_BYTES / 2);
        assert_eq!((Arc::strong_count(&first), Arc::strong_count(&second)), (2, 2));
        recent.push(Arc::new(json!(3)), 1);
        assert_eq!((Arc::strong_count(&first), Arc::strong_count(&second)), (1, 2));
        recent.push(Arc::new(json!(4)), 2 * DECODED_CACHE_BYTES);
        assert_eq!((Arc::strong_count(&second), recent.bytes), (1, 0));
    }
}
