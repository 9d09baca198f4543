//! Minimizes the object of a finding.

use serde_json::Value;

use super::shape;

/// The fields that identify the object. They are never removed.
const KEPT: [&str; 6] =
    ["/apiVersion", "/kind", "/metadata", "/metadata/name", "/metadata/generateName", "/metadata/namespace"];

/// The maximum number of candidates to validate for each candidate that may be offered.
const JUDGED: usize = 8;

/// Offers smaller and smaller candidates for an object.
///
/// The algorithm is greedy: it removes large parts first, and a part that was removed is not restored. It ends when no
/// part can be removed, or after the maximum number of offers. The caller decides whether a candidate is valid.
#[derive(Debug)]
pub(super) struct Shrinking {
    object: Value,
    pieces: Vec<String>,
    offered: Option<Value>,
    offers: usize,
    judged: usize,
    shrunk: bool,
}

impl Shrinking {
    /// Creates a minimization of `object` with at most `offers` candidates.
    pub(super) fn new(object: Value, offers: usize) -> Self {
        let pieces = pieces(&object);
        Self { object, pieces, offered: None, offers, judged: offers * JUDGED, shrunk: false }
    }

    /// Returns the next smaller valid object, or `None` if there is no such object or the limits are reached.
    pub(super) fn next(&mut self, is_valid: impl Fn(&Value) -> bool) -> Option<&Value> {
        while self.offers > 0 && self.judged > 0 {
            let Some(piece) = self.pieces.pop() else {
                // A part that was needed may no longer be needed after other removals.
                if !std::mem::take(&mut self.shrunk) {
                    return None;
                }
                self.pieces = pieces(&self.object);
                continue;
            };
            let mut smaller = self.object.clone();
            if !shape::remove(&mut smaller, &piece) {
                continue;
            }
            self.judged -= 1;
            if is_valid(&smaller) {
                self.offers -= 1;
                return Some(self.offered.insert(smaller));
            }
        }
        None
    }

    /// Accepts the last offered object, because the caller found that the violation remains.
    pub(super) fn keep(&mut self) {
        if let Some(smaller) = self.offered.take() {
            self.object = smaller;
            self.shrunk = true;
        }
    }

    /// Returns the smallest accepted object.
    pub(super) fn into_object(self) -> Value {
        self.object
    }
}

/// Returns JSON pointers to the removable parts, deepest first.
///
/// The last pointer is tried first; it points to the largest part. The last items of a list come first, so that the
/// other items keep their indexes.
fn pieces(object: &Value) -> Vec<String> {
    let mut pieces: Vec<(usize, String)> = Vec::new();
    collect(object, "", 1, &mut pieces);
    pieces.sort_by_key(|(depth, _)| std::cmp::Reverse(*depth));
    pieces.into_iter().map(|(_, piece)| piece).collect()
}

fn collect(value: &Value, at: &str, depth: usize, pieces: &mut Vec<(usize, String)>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let pointer = format!("{at}/{}", shape::escaped(name));
                if !KEPT.contains(&pointer.as_str()) {
                    pieces.push((depth, pointer.clone()));
                }
                collect(member, &pointer, depth + 1, pieces);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let pointer = format!("{at}/{index}");
                pieces.push((depth, pointer.clone()));
                collect(item, &pointer, depth + 1, pieces);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn shrunk(object: Value, offers: usize, still: impl Fn(&Value) -> bool) -> Value {
        let mut shrinking = Shrinking::new(object, offers);
        while let Some(smaller) = shrinking.next(has_container) {
            if still(smaller) {
                shrinking.keep();
            }
        }
        shrinking.into_object()
    }

    fn has_container(pod: &Value) -> bool {
        pod.pointer("/spec/containers/0/name").is_some()
    }

    fn pod() -> Value {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "p", "labels": {"a": "b", "c": "d"}, "annotations": {"x": "y"}},
            "spec": {
                "containers": [
                    {"name": "app", "image": "app", "env": [{"name": "A", "value": "1"}], "ports": []},
                    {"name": "other", "image": "other"},
                ],
                "volumes": [{"name": "v", "emptyDir": {}}],
            },
        })
    }

    #[test]
    fn only_parts_that_the_finding_needs_remain() {
        let small = shrunk(pod(), 200, |object| object.pointer("/metadata/labels/c").is_some());
        let expected = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"c": "d"}},
            "spec": {"containers": [{"name": "app"}]},
        });
        assert_eq!(small, expected);
    }

    #[test]
    fn invalid_objects_are_not_offered_and_are_bounded() {
        let judged = std::cell::Cell::new(0);
        let mut shrinking = Shrinking::new(json!({"spec": vec![1; 100]}), 2);
        let offered = shrinking.next(|_| {
            judged.set(judged.get() + 1);
            false
        });
        assert_eq!(offered, None);
        assert_eq!(judged.get(), 2 * JUDGED);
    }

    #[test]
    fn the_number_of_offers_is_a_bound() {
        let tries = std::cell::Cell::new(0);
        shrunk(pod(), 3, |_| {
            tries.set(tries.get() + 1);
            false
        });
        assert_eq!(tries.get(), 3);
    }

    proptest! {
        #[test]
        fn finding_remains_in_the_smallest_object(mask in 0_u8..8) {
            let still = |object: &Value| {
                ["/metadata/labels/a", "/spec/volumes/0", "/spec/containers/1"]
                    .iter()
                    .enumerate()
                    .all(|(bit, pointer)| mask & (1 << bit) == 0 || object.pointer(pointer).is_some())
            };
            let small = shrunk(pod(), 500, still);
            prop_assert!(still(&small));
            // No removable part is left.
            for piece in pieces(&small) {
                let mut smaller = small.clone();
                shape::remove(&mut smaller, &piece);
                prop_assert!(!still(&smaller) || !has_container(&smaller), "{piece} may go from {small}");
            }
        }
    }
}
