//! Applies the six operations of a JSON patch.

use std::collections::BTreeMap;
use std::num::IntErrorKind;

use kubernetes_types::json_text;
use kubernetes_types::quoting::quote;
use kubernetes_types::status::Unsupported;
use serde_json::{Map, Value};

use super::ApplyError;
use super::equality::{NIL_DEREFERENCE, equal};
use super::node::Node;
use super::reader::MAX_LEVELS;
use super::work::Work;

/// One operation of a JSON patch. Null members count as missing, except `value`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Operation {
    members: BTreeMap<String, Node>,
}

/// A document that is being patched.
#[derive(Debug)]
pub(super) struct Document {
    root: Node,
    copied: usize,
    work: Work,
}

/// The maximum total size, in bytes, of the values that the `copy` operations of one patch copy.
///
/// Source: apiserver pkg/server/config.go, `JSONPatchMaxCopyBytes`.
/// Rule: PAT-12.
const COPY_LIMIT: usize = 3 * 1024 * 1024;
const MISSING: &str = "missing value";
static NULL: Node = Node::Null;

impl Operation {
    pub(super) fn new(members: BTreeMap<String, Node>) -> Self {
        Self { members }
    }

    /// Creates an operation of a policy. Quotes its strings with Go's `strconv.Quote`.
    ///
    /// The escapes `\a`, `\v`, `\x`, and `\U` are not JSON.
    pub(super) fn from_policy(members: &Map<String, Value>) -> Self {
        let member = |(name, value): (&String, &Value)| {
            let node = if value.is_null() {
                Node::NullObject
            } else if let Value::String(text) = value
                && name != "value"
            {
                Node::Scalar(quote(text))
            } else {
                Node::from_value(value)
            };
            (name.clone(), node)
        };
        Self { members: members.iter().map(member).collect() }
    }

    fn kind(&self) -> String {
        self.text("op", "").unwrap_or_else(|_why| "unknown".to_owned())
    }

    fn path(&self) -> Result<String, String> {
        self.text("path", "operation missing path field")
    }

    fn from(&self) -> Result<String, String> {
        self.text("from", "operation, missing from field")
    }

    fn text(&self, member: &str, missing: &str) -> Result<String, String> {
        match self.members.get(member) {
            None | Some(Node::Null) => Err(format!("{missing}: {MISSING}")),
            Some(node) => {
                if let Node::Scalar(text) = node {
                    json_text::scan(text.as_bytes(), 1, |_| {})?;
                }
                node.as_string().ok_or_else(|| {
                    format!("json: cannot unmarshal {} into Go value of type string", node.kind())
                })
            }
        }
    }

    /// Returns the `value` of the operation; `None` if it is missing.
    ///
    /// Rule: PAT-11.
    fn value(&self) -> Option<Node> {
        self.members.get("value").map(|node| match node {
            Node::Null => Node::Given,
            Node::Given
            | Node::NullObject
            | Node::Scalar(_)
            | Node::Object(_)
            | Node::Array(_)
            | Node::Untouched(_) => node.clone(),
        })
    }
}

impl Document {
    /// Creates a document to which operations can be applied.
    ///
    /// # Errors
    /// Returns [`ApplyError`] if the document is not an object, a list, or null.
    pub(super) fn new(mut root: Node) -> Result<Self, ApplyError> {
        root.open();
        match root {
            Node::Null | Node::Object(_) | Node::Array(_) => {
                Ok(Self { root, copied: 0, work: Work::default() })
            }
            Node::Given | Node::NullObject | Node::Scalar(_) | Node::Untouched(_) => {
                let kind = root.kind();
                fail(format!("json: cannot unmarshal {kind} into Go value of type jsonpatch.partialDoc"))
            }
        }
    }

    pub(super) fn into_node(self) -> Node {
        self.root
    }

    /// Applies one operation to the document.
    ///
    /// Rule: PAT-01.
    pub(super) fn apply(&mut self, operation: &Operation) -> Result<(), ApplyError> {
        match operation.kind().as_str() {
            "add" => self.add(operation),
            "remove" => self.remove(operation),
            "replace" => self.replace(operation),
            "move" => self.r#move(operation),
            "test" => self.test(operation),
            "copy" => self.copy(operation),
            other => fail(format!("Unexpected kind: {other}")),
        }
    }

    fn add(&mut self, operation: &Operation) -> Result<(), ApplyError> {
        let Ok(path) = operation.path() else {
            return fail(format!("add operation failed to decode path: {MISSING}"));
        };
        let Some((container, key)) = find(&mut self.root, &path) else {
            return fail(format!("add operation does not apply: doc is missing path: \"{path}\": {MISSING}"));
        };
        let value = operation.value().unwrap_or(Node::Null);
        check_depth(&path, &value)?;
        add(container, key, value, &mut self.work)
            .map_err(|error| error.within(&format!("error in add for path: '{path}'")))
    }

    fn remove(&mut self, operation: &Operation) -> Result<(), ApplyError> {
        let Ok(path) = operation.path() else {
            return fail(format!("remove operation failed to decode path: {MISSING}"));
        };
        let Some((container, key)) = find(&mut self.root, &path) else {
            return fail(format!(
                "remove operation does not apply: doc is missing path: \"{path}\": {MISSING}"
            ));
        };
        remove(container, &key, &mut self.work)
            .map(drop)
            .map_err(|error| error.within(&format!("error in remove for path: '{path}'")))
    }

    /// Applies a `replace` operation. The path `""` replaces the whole document.
    ///
    /// Rule: PAT-05, PAT-09, PAT-13.
    fn replace(&mut self, operation: &Operation) -> Result<(), ApplyError> {
        let path = operation
            .path()
            .map_err(|what| does_not_apply(format!("replace operation failed to decode path: {what}")))?;
        if path.is_empty() {
            return match operation.value() {
                None => Err(NIL_DEREFERENCE),
                Some(root @ (Node::Object(_) | Node::Array(_))) => {
                    self.root = root;
                    Ok(())
                }
                Some(Node::NullObject) => {
                    self.root = Node::Null;
                    Ok(())
                }
                Some(Node::Null | Node::Given | Node::Scalar(_) | Node::Untouched(_)) => {
                    fail("replace operation value must be object or array: %!w(<nil>)".to_owned())
                }
            };
        }
        let Some((container, key)) = find(&mut self.root, &path) else {
            return fail(format!("replace operation does not apply: doc is missing path: {path}: {MISSING}"));
        };
        if get(container, &key).is_err() {
            return fail(format!("replace operation does not apply: doc is missing key: {path}: {MISSING}"));
        }
        let value = operation.value().unwrap_or(Node::Null);
        check_depth(&path, &value)?;
        set(container, key, value)
            .map_err(|error| error.within(&format!("error in remove for path: '{path}'")))
    }

    fn r#move(&mut self, operation: &Operation) -> Result<(), ApplyError> {
        let from = operation
            .from()
            .map_err(|what| does_not_apply(format!("move operation failed to decode from: {what}")))?;
        let Some((container, key)) = find(&mut self.root, &from) else {
            return fail(format!(
                "move operation does not apply: doc is missing from path: {from}: {MISSING}"
            ));
        };
        let value = remove(container, &key, &mut self.work)
            .map_err(|error| error.within(&format!("error in move for path: '{key}'")))?;
        self.work.add(value.values())?;
        let path = operation
            .path()
            .map_err(|what| does_not_apply(format!("move operation failed to decode path: {what}")))?;
        let Some((container, key)) = find(&mut self.root, &path) else {
            return fail(format!(
                "move operation does not apply: doc is missing destination path: {path}: {MISSING}"
            ));
        };
        check_depth(&path, &value)?;
        add(container, key, value, &mut self.work)
            .map_err(|error| error.within(&format!("error in move for path: '{path}'")))
    }

    fn copy(&mut self, operation: &Operation) -> Result<(), ApplyError> {
        let from = operation
            .from()
            .map_err(|what| does_not_apply(format!("copy operation failed to decode from: {what}")))?;
        let Some((container, key)) = find(&mut self.root, &from) else {
            return fail(format!(
                "copy operation does not apply: doc is missing from path: {from}: {MISSING}"
            ));
        };
        let (value, size) = get(container, &key)
            .map_err(|what| does_not_apply(format!("error in copy for from: '{from}': {what}")))?
            .copied();
        let Ok(path) = operation.path() else {
            return fail(format!("copy operation failed to decode path: {MISSING}"));
        };
        let Some((container, key)) = find(&mut self.root, &path) else {
            return fail(format!(
                "copy operation does not apply: doc is missing destination path: {path}: {MISSING}"
            ));
        };
        self.copied += size;
        if self.copied > COPY_LIMIT {
            return fail(format!(
                "Unable to complete the copy, the accumulated size increase of copy is {}, exceeding the limit \
                 {COPY_LIMIT}",
                self.copied
            ));
        }
        check_depth(&path, &value)?;
        add(container, key, value, &mut self.work)
            .map_err(|error| error.within("error while adding value during copy"))
    }

    /// Applies a `test` operation. A missing member equals null and an omitted value.
    ///
    /// Rule: PAT-08, PAT-09.
    fn test(&mut self, operation: &Operation) -> Result<(), ApplyError> {
        let path = operation
            .path()
            .map_err(|what| does_not_apply(format!("test operation failed to decode path: {what}")))?;
        let expected = operation.value();
        let holds = if path.is_empty() {
            self.root.open_all();
            // A null document counts as an object without members.
            let nothing = Node::Object(BTreeMap::new());
            let whole = if self.root == Node::Null { &nothing } else { &self.root };
            equal(whole, expected.as_ref().unwrap_or(&NULL))?
        } else {
            let Some((container, key)) = find(&mut self.root, &path) else {
                return fail(format!("test operation does not apply: is missing path: {path}: {MISSING}"));
            };
            open_at(container, &key);
            let value = get(container, &key)
                .map_err(|what| does_not_apply(format!("error in test for path: '{path}': {what}")))?;
            match (value, expected) {
                (Node::Null, expected) => matches!(expected, None | Some(Node::Given)),
                (_, None) => false,
                (value, Some(expected)) => equal(value, &expected)?,
            }
        };
        if holds {
            Ok(())
        } else {
            Err(ApplyError::TestFailed(format!("testing value {path} failed: test failed")))
        }
    }
}

/// Finds the object or list that contains the value at `path`, and the last key; `None` if the container is missing.
///
/// Characters before the first slash are ignored.
///
/// Rule: PAT-03, PAT-09, PAT-10.
fn find<'n>(root: &'n mut Node, path: &str) -> Option<(&'n mut Node, String)> {
    let mut keys: Vec<String> = path.split('/').skip(1).map(unescaped).collect();
    let last = keys.pop()?;
    let mut node = root;
    for key in keys {
        node = match node {
            Node::Object(members) => members.get_mut(&key)?,
            Node::Array(nodes) => {
                let index = index(&key, nodes.len()).ok()?;
                nodes.get_mut(index)?
            }
            Node::Null | Node::Given | Node::NullObject | Node::Scalar(_) | Node::Untouched(_) => {
                return None;
            }
        };
        node.open();
        if !matches!(node, Node::Object(_) | Node::Array(_) | Node::NullObject) {
            return None;
        }
    }
    Some((node, last))
}

fn unescaped(key: &str) -> String {
    key.replace("~1", "/").replace("~0", "~")
}

/// Returns the value at `key` of a container; a missing member is null.
///
/// Rule: PAT-05, PAT-07.
fn get<'n>(container: &'n Node, key: &str) -> Result<&'n Node, String> {
    match container {
        Node::Array(nodes) => {
            let index = index(key, nodes.len())?;
            Ok(nodes.get(index).unwrap_or(&NULL))
        }
        Node::Object(members) => Ok(members.get(key).unwrap_or(&NULL)),
        Node::Null | Node::Given | Node::NullObject | Node::Scalar(_) | Node::Untouched(_) => Ok(&NULL),
    }
}

/// Opens the value at `key` of a container so that it can be compared.
fn open_at(container: &mut Node, key: &str) {
    let node = match container {
        Node::Array(nodes) => index(key, nodes.len()).ok().and_then(|index| nodes.get_mut(index)),
        Node::Object(members) => members.get_mut(key),
        Node::Null | Node::Given | Node::NullObject | Node::Scalar(_) | Node::Untouched(_) => None,
    };
    if let Some(node) = node {
        node.open_all();
    }
}

/// Adds a value to a container. In a list, `key` is the index to insert before, or `-` for the end.
///
/// Rule: PAT-06.
fn add(container: &mut Node, key: String, value: Node, work: &mut Work) -> Result<(), ApplyError> {
    match container {
        Node::Array(nodes) if key == "-" => nodes.push(value),
        Node::Array(nodes) => {
            let number = number(&key).map_err(|what| {
                does_not_apply(format!("value was not a proper array index: '{key}': {what}"))
            })?;
            let index = within(number, nodes.len() + 1).map_err(does_not_apply)?;
            work.add(nodes.len() - index)?;
            nodes.insert(index, value);
        }
        Node::Object(_)
        | Node::Null
        | Node::Given
        | Node::NullObject
        | Node::Scalar(_)
        | Node::Untouched(_) => {
            return set(container, key, value);
        }
    }
    Ok(())
}

fn set(container: &mut Node, key: String, value: Node) -> Result<(), ApplyError> {
    match container {
        Node::Object(members) => {
            members.insert(key, value);
        }
        Node::Array(nodes) => {
            let index = index(&key, nodes.len()).map_err(does_not_apply)?;
            if let Some(node) = nodes.get_mut(index) {
                *node = value;
            }
        }
        Node::Null | Node::Given | Node::NullObject | Node::Scalar(_) | Node::Untouched(_) => {
            return Err(ApplyError::Panic("assignment to entry in nil map"));
        }
    }
    Ok(())
}

/// Removes and returns the value at `key` of a container. A missing value is an error.
///
/// Rule: PAT-04.
fn remove(container: &mut Node, key: &str, work: &mut Work) -> Result<Node, ApplyError> {
    match container {
        Node::Array(nodes) => {
            let index = index(key, nodes.len()).map_err(does_not_apply)?;
            work.add(nodes.len() - index)?;
            Ok(nodes.remove(index))
        }
        Node::Object(members) => members.remove(key).ok_or_else(|| nonexistent(key)),
        Node::Null | Node::Given | Node::NullObject | Node::Scalar(_) | Node::Untouched(_) => {
            Err(nonexistent(key))
        }
    }
}

fn nonexistent(key: &str) -> ApplyError {
    does_not_apply(format!("Unable to remove nonexistent key: {key}: {MISSING}"))
}

/// Parses `key` as an index into a list of `length` elements.
fn index(key: &str, length: usize) -> Result<usize, String> {
    within(number(key)?, length)
}

/// Resolves a list index; negative numbers count from the end. Rejects an index that is out of range.
///
/// Rule: PAT-06.
fn within(number: i64, length: usize) -> Result<usize, String> {
    let magnitude = usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX);
    let index = if number < 0 { length.checked_sub(magnitude) } else { Some(magnitude) };
    index
        .filter(|index| *index < length)
        .ok_or_else(|| format!("Unable to access invalid index: {number}: invalid index referenced"))
}

/// Parses a list index as Go parses an integer.
///
/// Source: Go strconv/atoi.go, `Atoi`.
fn number(key: &str) -> Result<i64, String> {
    key.parse().map_err(|error: std::num::ParseIntError| {
        let too_large = matches!(error.kind(), IntErrorKind::PosOverflow | IntErrorKind::NegOverflow);
        let what = if too_large { "value out of range" } else { "invalid syntax" };
        format!("strconv.Atoi: parsing {}: {what}", quote(key))
    })
}

/// Rejects a value that would exceed the nesting limit at `path`. A hostile webhook could build such a document.
fn check_depth(path: &str, value: &Node) -> Result<(), ApplyError> {
    if path.split('/').count() + value.depth() > MAX_LEVELS {
        let what = format!("a JSON patch that makes an object of more than {MAX_LEVELS} levels");
        return Err(ApplyError::Unsupported(Unsupported { what }));
    }
    Ok(())
}

fn does_not_apply(what: String) -> ApplyError {
    ApplyError::DoesNotApply(what)
}

fn fail<T>(what: String) -> Result<T, ApplyError> {
    Err(does_not_apply(what))
}

impl ApplyError {
    /// Adds a prefix to an error of the patch library; other errors are unchanged.
    fn within(self, prefix: &str) -> Self {
        match self {
            Self::DoesNotApply(what) => Self::DoesNotApply(format!("{prefix}: {what}")),
            Self::TestFailed(what) => Self::TestFailed(format!("{prefix}: {what}")),
            other @ (Self::Panic(_) | Self::Unsupported(_)) => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(values: usize) -> Work {
        let mut work = Work::default();
        assert_eq!(work.add(values), Ok(()));
        work
    }

    #[test]
    fn a_list_change_costs_the_number_of_shifted_elements() {
        let mut work = Work::default();
        let mut list = Node::Array(vec![Node::Null, Node::Null, Node::Null]);
        for (key, values) in [("-", 0), ("4", 0), ("1", 4), ("0", 10)] {
            assert_eq!(add(&mut list, key.to_owned(), Node::Null, &mut work), Ok(()));
            assert_eq!(work, spent(values), "{key}");
        }
        let mut work = Work::default();
        for (key, values) in [("6", 1), ("0", 7)] {
            assert!(remove(&mut list, key, &mut work).is_ok());
            assert_eq!(work, spent(values), "{key}");
        }
    }
}
