//! Explains why the patch of a webhook cannot be applied to an object, and what to change in the operation.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_admission::event::{CallResult, Called};
use kubernetes_admission::patch::Patch;
use kubernetes_types::schema::Type;
use serde_json::Value;

use super::similar_name::most_similar;

/// The operations of a JSON patch.
const OPERATIONS: [&str; 6] = ["add", "remove", "replace", "move", "copy", "test"];

/// The fields whose keys often contain a slash.
const MAPS: [&str; 4] = ["annotations", "labels", "matchLabels", "nodeSelector"];

/// The advice for an operation that reads or removes a field.
const ONLY_IF_PRESENT: &str = "return the operation only if the object has the field";

/// The maximum number of characters of a path or a value.
const MAX_TEXT: usize = 100;

/// Explains the first operation in the patch of a call that the server could not apply.
///
/// Returns `None` if the call has another result, or if all operations can be applied.
pub fn patch_advice(called: &Called) -> Option<String> {
    let CallResult::ServerError { .. } = &called.result else { return None };
    let review: Value = serde_json::from_slice(&called.reply.as_ref()?.body).ok()?;
    let patch = STANDARD.decode(review.pointer("/response/patch")?.as_str()?).ok()?;
    let asked: Value = serde_json::from_slice(&called.review).ok()?;
    let object = asked.pointer("/request/object").filter(|object| !object.is_null())?;
    advice(Patch::decode(&patch).ok()?.operations(), object)
}

/// Explains the first operation that cannot be applied to `object`.
fn advice(operations: &[Value], object: &Value) -> Option<String> {
    let applied = |count: usize| {
        let bytes = serde_json::to_vec(operations.get(..count)?).ok()?;
        Patch::decode(&bytes).ok()?.apply(object).ok()
    };
    // The operations before the first one that fails can be applied, and no longer prefix can.
    let (mut fits, mut fails) = (0, operations.len());
    if applied(fails).is_some() {
        return None;
    }
    while fits + 1 < fails {
        let middle = usize::midpoint(fits, fails);
        if applied(middle).is_some() { fits = middle } else { fails = middle }
    }
    let reason = FailedOperation { operation: operations.get(fits)?, object: &applied(fits)? }.reason()?;
    let place = if operations.len() == 1 {
        "the patch operation".to_owned()
    } else {
        format!("operation {} of {} in the patch", fits + 1, operations.len())
    };
    Some(format!("{place} {reason}"))
}

/// An operation that cannot be applied to an object.
struct FailedOperation<'a> {
    operation: &'a Value,
    object: &'a Value,
}

impl FailedOperation<'_> {
    /// Returns the reason and what to change, as the predicate of a sentence about the operation.
    fn reason(&self) -> Option<String> {
        let text = |name: &str| self.operation.get(name).and_then(Value::as_str);
        let Some(op) = text("op").filter(|op| OPERATIONS.contains(op)) else {
            let (last, others) = OPERATIONS.split_last()?;
            let all = format!("{}, or {last}", others.join(", "));
            return Some(match text("op") {
                Some(op) => format!("has the invalid op `{}`: it must be {all}, in lower case", short(op)),
                None => format!("does not have an `op`: set it to {all}"),
            });
        };
        let Some(path) = text("path") else {
            return Some(format!(
                "(`{op}`) does not have a `path`: set it to the JSON Pointer of a field, such as /metadata/labels"
            ));
        };
        let sources: &[&str] = if ["move", "copy"].contains(&op) { &["from", "path"] } else { &["path"] };
        for name in sources {
            let Some(path) = text(name) else {
                return Some(format!(
                    "(`{op}`) does not have a `{name}`: set it to the path of the field to {op}"
                ));
            };
            if !path.is_empty() && !path.starts_with('/') {
                let path = short(path);
                return Some(format!(
                    "(`{op}`) has the `{name}` `{path}`, which does not begin with a slash: write `/{path}`"
                ));
            }
        }
        if let (true, Some(from)) = (sources.len() == 2, text("from"))
            && self.object.pointer(from).is_none()
        {
            let why = self.missing_parent(false, from).unwrap_or_else(|| self.missing_member(from));
            return Some(format!("(`{op}`) reads {}: {why}", short(from)));
        }
        if op == "test" {
            return Some(self.failed_test(path));
        }
        let writes = ["add", "move", "copy"].contains(&op);
        let why = self.missing_parent(writes, path).or_else(|| self.wrong_index(path)).or_else(|| {
            let is_missing = op == "remove" && self.object.pointer(path).is_none();
            is_missing.then(|| format!("{}; {ONLY_IF_PRESENT}", self.missing_member(path)))
        })?;
        let verb = match op {
            _ if writes => "writes",
            "remove" => "removes",
            _ => "replaces",
        };
        Some(format!("(`{op}`) {verb} {}: {why}", short(path)))
    }

    /// Describes the values that a `test` expected and found.
    fn failed_test(&self, path: &str) -> String {
        let value =
            |value: Option<&Value>| value.map_or("nothing".to_owned(), |value| short(&value.to_string()));
        let (expected, found) = (value(self.operation.get("value")), value(self.object.pointer(path)));
        let path = short(path);
        if self.object.get("kind").is_some_and(|kind| kind == "Secret") {
            return format!("(`test`) expects a value at {path} that differs from the one in the Secret");
        }
        format!(
            "(`test`) expects {expected} at {path}, but the object has {found}: correct the value, or omit the test. If \
             the value depends on another webhook, the order of the webhooks matters"
        )
    }

    /// Explains that the object does not have the parent of `path`, or that the parent cannot have members. `writes` is
    /// set if the operation writes the field at `path`.
    fn missing_parent(&self, writes: bool, path: &str) -> Option<String> {
        let names: Vec<&str> = path.split('/').skip(1).collect();
        let (_, parents) = names.split_last()?;
        let mut parent = String::new();
        let mut now = self.object;
        for (index, name) in parents.iter().enumerate() {
            let child = now.pointer(&format!("/{name}")).filter(|child| !child.is_null());
            let Some(child) = child else {
                return Some(self.missing(writes, now, &parent, &names, index));
            };
            parent = format!("{parent}/{name}");
            if !child.is_object() && !child.is_array() {
                let what = if child.is_string() { "a string" } else { "not a map or a list" };
                return Some(format!("{} is {what}, so it has no fields", short(&parent)));
            }
            now = child;
        }
        None
    }

    /// Explains that the path names an item that the list does not have.
    fn wrong_index(&self, path: &str) -> Option<String> {
        let (parent, index) = path.rsplit_once('/')?;
        let items = self.object.pointer(parent)?.as_array()?;
        let parent = short(parent);
        let advice = match self.operation.get("op").and_then(Value::as_str) {
            Some("add" | "copy" | "move") => format!("; {parent}/- appends an item"),
            _ => String::new(),
        };
        if index.parse::<u64>().is_err() {
            let index = short(index);
            return Some(format!("{parent} is a list, so `{index}` must be the index of an item{advice}"));
        }
        Some(format!("{parent} {}{advice}", items_of(items)))
    }

    /// States that the object does not have the field at `path`, and names a similar field next to it.
    fn missing_member(&self, path: &str) -> String {
        let lacks = format!("the object does not have {}", short(path));
        let similar = path.rsplit_once('/').and_then(|(parent, name)| {
            Some(format!(" (did you mean {parent}/{}?)", self.similar_member(parent, name)?))
        });
        format!("{lacks}{}", similar.unwrap_or_default())
    }

    /// Explains that `now`, the value at `parent`, does not have the member `names[index]` that the path goes through.
    fn missing(&self, writes: bool, now: &Value, parent: &str, names: &[&str], index: usize) -> String {
        let name = names.get(index).copied().unwrap_or_default();
        let missing = format!("{parent}/{name}");
        let lacks = format!("the object does not have {}", short(&missing));
        let rest = names.get(index..).unwrap_or_default();
        // A prefix of a key is a domain.
        let is_key = |map: &str, key: &[&str]| {
            MAPS.contains(&map) && key.len() > 1 && key.iter().any(|part| part.contains('.'))
        };
        let map = names.get(index.saturating_sub(1)).copied().filter(|_| index > 0).unwrap_or_default();
        if is_key(map, rest) {
            let key = rest.join("~1");
            return format!("{lacks}; a slash in a key is written as ~1: {parent}/{}", short(&key));
        }
        if let Some(items) = now.as_array() {
            return format!("{lacks}, because {parent} {}", items_of(items));
        }
        if let Some(similar) = self.similar_member(parent, name) {
            return format!("{lacks} (did you mean {parent}/{similar}?)");
        }
        if !writes {
            return format!("{lacks}; {ONLY_IF_PRESENT}");
        }
        let child = rest.get(1).copied().unwrap_or_default();
        let is_item = child == "-" || !child.is_empty() && child.bytes().all(|byte| byte.is_ascii_digit());
        let (what, empty) = if is_item { ("list", "[]") } else { ("map", "{}") };
        let escape = match rest.get(1..) {
            Some(key) if is_key(name, key) => {
                format!("; a slash in a key is written as ~1: {}/{}", short(&missing), short(&key.join("~1")))
            }
            _ => String::new(),
        };
        format!(
            "{lacks}; if the {what} is missing, first add it with the value {empty}, or add it with its content{escape}"
        )
    }

    /// Returns the member of the value at `parent` whose name is similar to `name`, or the field of its type.
    ///
    /// Returns `None` if the type has a field with this name.
    fn similar_member(&self, parent: &str, name: &str) -> Option<&str> {
        let members = self.object.pointer(parent)?.as_object()?;
        let of = Type::for_kind(&GroupVersionKind::from_object(self.object));
        let is_index = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
        let parents = parent.split('/').skip(1);
        let of = parents.fold(of, |of, name| if is_index(name) { of.item() } else { of.member(name) });
        let fields = of.names();
        if fields.contains(&name) {
            return None;
        }
        most_similar(name, members.keys().map(String::as_str).chain(fields))
    }
}

/// States how many items a list has.
fn items_of(items: &[Value]) -> String {
    match items.len() {
        0 => "is empty".to_owned(),
        1 => "has only one item, with the index 0".to_owned(),
        count => format!("has only items with the indices 0 to {}", count - 1),
    }
}

/// Returns `text`, or its first [`MAX_TEXT`] characters and an ellipsis.
fn short(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT).and_then(|(end, _)| text.get(..end)) {
        Some(start) => format!("{start}\u{2026}"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(operations: &Value, expected: &str) {
        let object = json!({
            "kind": "Pod",
            "metadata": {"name": "web", "annotations": {"a": "b"}},
            "spec": {"containers": [{"name": "web"}], "tolerations": []},
        });
        let found = advice(operations.as_array().unwrap(), &object).unwrap_or_default();
        assert_eq!(found, expected, "{operations}");
    }

    #[test]
    fn a_path_that_does_not_exist_is_explained_by_the_missing_part() {
        check(
            &json!([{"op": "add", "path": "/metadata/labels/team", "value": "a"}]),
            "the patch operation (`add`) writes /metadata/labels/team: the object does not have /metadata/labels; if \
             the map is missing, first add it with the value {}, or add it with its content",
        );
        check(
            &json!([{"op": "add", "path": "/spec/volumes/-", "value": {}}]),
            "the patch operation (`add`) writes /spec/volumes/-: the object does not have /spec/volumes; if the \
             list is missing, first add it with the value [], or add it with its content",
        );
        check(
            &json!([{"op": "add", "path": "/spec/container/-", "value": {}}]),
            "the patch operation (`add`) writes /spec/container/-: the object does not have /spec/container (did you mean \
             /spec/containers?)",
        );
        check(
            &json!([{"op": "add", "path": "/metadata/annotations/example.com/a", "value": "b"}]),
            "the patch operation (`add`) writes /metadata/annotations/example.com/a: the object does not have \
             /metadata/annotations/example.com; a slash in a key is written as ~1: /metadata/annotations/example.com~1a",
        );
        check(
            &json!([{"op": "add", "path": "/metadata/labels/example.com/a", "value": "b"}]),
            "the patch operation (`add`) writes /metadata/labels/example.com/a: the object does not have \
             /metadata/labels; if the map is missing, first add it with the value {}, or add it with its content; a slash \
             in a key is written as ~1: /metadata/labels/example.com~1a",
        );
        check(
            &json!([{"op": "add", "path": "/metadata/name/x", "value": "b"}]),
            "the patch operation (`add`) writes /metadata/name/x: /metadata/name is a string, so it has no fields",
        );
    }

    #[test]
    fn the_operation_that_fails_is_named() {
        check(
            &json!([{"op": "add", "path": "/metadata/labels", "value": {}}, {"op": "remove", "path": "/metadata/label"}, {"op": "remove", "path": "/x"}]),
            "operation 2 of 3 in the patch (`remove`) removes /metadata/label: the object does not have /metadata/label \
             (did you mean /metadata/labels?); return the operation only if the object has the field",
        );
        check(&json!([{"op": "add", "path": "/metadata/labels", "value": {}}]), "");
    }

    #[test]
    fn a_malformed_operation_is_explained_by_the_field_to_correct() {
        check(
            &json!([{"op": "replace", "path": "metadata", "value": {}}]),
            "the patch operation (`replace`) has the `path` `metadata`, which does not begin with a slash: write `/metadata`",
        );
        check(
            &json!([{"op": "ADD", "path": "/data", "value": {}}]),
            "the patch operation has the invalid op `ADD`: it must be add, remove, replace, move, copy, or test, in lower case",
        );
        check(
            &json!([{"path": "/data", "value": {}}]),
            "the patch operation does not have an `op`: set it to add, remove, replace, move, copy, or test",
        );
        check(
            &json!([{"op": "add", "value": {}}]),
            "the patch operation (`add`) does not have a `path`: set it to the JSON Pointer of a field, such as /metadata/labels",
        );
        check(
            &json!([{"op": "move", "path": "/metadata/x"}]),
            "the patch operation (`move`) does not have a `from`: set it to the path of the field to move",
        );
        check(
            &json!([{"op": "move", "from": "/metadata/nam", "path": "/metadata/x"}]),
            "the patch operation (`move`) reads /metadata/nam: the object does not have /metadata/nam (did you mean \
             /metadata/name?)",
        );
    }

    #[test]
    fn a_source_that_does_not_exist_is_not_to_be_added() {
        check(
            &json!([{"op": "copy", "from": "/metadata/labels/a", "path": "/metadata/annotations/b"}]),
            "the patch operation (`copy`) reads /metadata/labels/a: the object does not have /metadata/labels; return the \
             operation only if the object has the field",
        );
    }

    #[test]
    fn a_failed_test_shows_both_values() {
        check(
            &json!([{"op": "test", "path": "/kind", "value": "Secret"}]),
            "the patch operation (`test`) expects \"Secret\" at /kind, but the object has \"Pod\": correct the value, or \
             omit the test. If the value depends on another webhook, the order of the webhooks matters",
        );
    }

    #[test]
    fn an_index_past_the_end_shows_the_items_that_exist() {
        check(
            &json!([{"op": "add", "path": "/spec/containers/5", "value": {}}]),
            "the patch operation (`add`) writes /spec/containers/5: /spec/containers has only one item, with the index 0; \
             /spec/containers/- appends an item",
        );
        check(
            &json!([{"op": "replace", "path": "/spec/tolerations/0", "value": {}}]),
            "the patch operation (`replace`) replaces /spec/tolerations/0: /spec/tolerations is empty",
        );
        check(
            &json!([{"op": "add", "path": "/spec/containers/web", "value": {}}]),
            "the patch operation (`add`) writes /spec/containers/web: /spec/containers is a list, so `web` must be the \
             index of an item; /spec/containers/- appends an item",
        );
        check(
            &json!([{"op": "add", "path": "/spec/containers/1/env/-", "value": {}}]),
            "the patch operation (`add`) writes /spec/containers/1/env/-: the object does not have /spec/containers/1, \
             because /spec/containers has only one item, with the index 0",
        );
    }
}
