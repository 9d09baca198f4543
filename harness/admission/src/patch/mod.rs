//! Applies JSON patches as the API server does: RFC 6902 with the deviations of its library.
//!
//! Deviations: `replace` adds a missing member, a negative index counts from the end, `copy` of a missing value yields
//! null, and `test` compares numbers and strings by their source text.
//!
//! Source: gopkg.in/evanphx/json-patch.v4 patch.go.

mod equality;
mod node;
mod operation;
mod reader;
pub mod strategic;
mod strategic_order;
mod strategic_values;
mod work;
mod written;

use kubernetes_types::json_text::{self, Token};
use kubernetes_types::status::Unsupported;
use serde_json::{Map, Value};

use self::node::Node;
use self::operation::{Document, Operation};
pub use self::written::Operations;

/// A decoded JSON patch. Its operations may still fail to apply.
#[derive(Clone, Debug, PartialEq)]
pub struct Patch {
    operations: Vec<Operation>,
    values: Vec<Value>,
}

/// The reason why a document is not a patch: the error of Go's decoder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DecodeError(String);

/// The reason why a patch cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(clippy::exhaustive_enums, reason = "a match that forgets one must not compile")]
pub enum ApplyError {
    /// An operation cannot be applied. Contains the library's error.
    #[error("{0}")]
    DoesNotApply(String),
    /// A `test` operation found a different value. Contains the library's error.
    #[error("{0}")]
    TestFailed(String),
    /// The library panics, and the API server closes the client's connection without a response.
    #[error("{0}")]
    Panic(&'static str),
    /// admit does not support the patch, for example because the library would run for a very long time.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
}

/// The maximum number of operations in a patch from a webhook or a policy.
///
/// kube-apiserver limits patches from clients to this number, but does not limit other patches.
///
/// Source: apiserver pkg/endpoints/handlers/patch.go, `maxJSONPatchOperations`.
pub const MAX_OPERATIONS: usize = 10_000;
/// The maximum nesting depth of the object that [`Patch::changed_members`] returns.
///
/// Objects of built-in kinds to which patches apply are not nested more deeply.
const MAX_CHANGED_DEPTH: usize = 64;
/// The maximum number of JSON values in a patch from a webhook or a policy.
const MAX_VALUES: usize = 250_000;

/// Checks that a patch is small enough to be decoded. Each value takes a few hundred bytes of memory.
///
/// # Errors
/// Returns [`Unsupported`] if the patch is larger; kube-apiserver accepts patches of any size.
pub fn check_size(patch: &[u8]) -> Result<(), Unsupported> {
    let (mut depth, mut deepest, mut operations, mut values) = (0_usize, 0_usize, 0_usize, 0_usize);
    // Invalid JSON is reported when the patch is decoded.
    let _ = json_text::scan(patch, json_text::MAX_DEPTH, |token| {
        if matches!(token, Token::Begin(_) | Token::Scalar(_)) {
            values += 1;
            operations += usize::from(depth == 1);
        }
        match token {
            Token::Begin(_) => depth += 1,
            Token::End => depth -= 1,
            Token::Key(_) | Token::Scalar(_) => {}
        }
        deepest = deepest.max(depth);
    });
    check_operations(operations)?;
    if values > MAX_VALUES {
        let what = format!("JSON patches with more than {MAX_VALUES} values ({values})");
        return Err(Unsupported { what });
    }
    if deepest > reader::MAX_DEPTH {
        let what = format!("JSON patches with more than {} levels ({deepest})", reader::MAX_DEPTH);
        return Err(Unsupported { what });
    }
    Ok(())
}

fn check_operations(operations: usize) -> Result<(), Unsupported> {
    if operations > MAX_OPERATIONS {
        let what = format!("JSON patches with more than {MAX_OPERATIONS} operations ({operations})");
        return Err(Unsupported { what });
    }
    Ok(())
}

impl Patch {
    /// Decodes a patch: a JSON list of operations. A JSON null is a patch without operations.
    ///
    /// Rule: PAT-13.
    ///
    /// # Errors
    /// Returns [`DecodeError`] if `bytes` is not valid JSON, or not a list of objects.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let nodes = match reader::read(bytes)? {
            Node::Null => Vec::new(),
            Node::Array(nodes) => nodes,
            other @ (Node::Given
            | Node::NullObject
            | Node::Scalar(_)
            | Node::Object(_)
            | Node::Untouched(_)) => {
                return Err(cannot_unmarshal(&other, "Patch"));
            }
        };
        let values = nodes.iter().map(Node::to_value).collect::<Result<Vec<_>, _>>().map_err(DecodeError)?;
        let operations = nodes.into_iter().map(|node| match node {
            Node::Null => Ok(Operation::default()),
            Node::Object(members) => Ok(Operation::new(members)),
            other @ (Node::Given
            | Node::NullObject
            | Node::Scalar(_)
            | Node::Array(_)
            | Node::Untouched(_)) => Err(cannot_unmarshal(&other, "Operation")),
        });
        Ok(Self { operations: operations.collect::<Result<_, _>>()?, values })
    }

    /// Creates the patch of a policy from its operations.
    ///
    /// `op`, `path`, and `from` are quoted with Go's `strconv.Quote`: an operation fails if such a string is not JSON.
    /// Null is a value.
    ///
    /// Source: apiserver `pkg/admission/plugin/policy/mutating/patch/json_patch.go`, `evaluatePatchExpression`.
    ///
    /// # Errors
    /// Returns [`Unsupported`] if there are too many operations.
    pub(crate) fn from_policy(operations: Vec<Map<String, Value>>) -> Result<Self, Unsupported> {
        check_operations(operations.len())?;
        Ok(Self {
            operations: operations.iter().map(Operation::from_policy).collect(),
            values: operations.into_iter().map(Value::Object).collect(),
        })
    }

    /// Converts the patch into its operations, with their source text from `bytes`.
    pub(crate) fn operations_of(self, bytes: &[u8]) -> Operations {
        Operations::new(self.values, bytes)
    }

    /// Returns the operations as the patch specifies them.
    pub fn operations(&self) -> &[Value] {
        &self.values
    }

    /// Returns an object with a member for each object and list that the patch reads or changes.
    pub fn changed_members(&self) -> Value {
        let mut changes = Value::Object(Map::new());
        let paths = self.values.iter().flat_map(|operation| {
            let has_source = ["copy", "move"].iter().any(|op| operation.get("op") == Some(&(*op).into()));
            let names = if has_source { &["path", "from"][..] } else { &["path"] };
            names.iter().filter_map(move |name| operation.get(*name)?.as_str())
        });
        for path in paths {
            let segments: Vec<&str> = path.split('/').skip(1).collect();
            let mut place = &mut changes;
            for segment in segments.iter().take(segments.len().saturating_sub(1)).take(MAX_CHANGED_DEPTH) {
                let Some(members) = place.as_object_mut() else { break };
                let name = segment.replace("~1", "/").replace("~0", "~");
                place = members.entry(name).or_insert_with(|| Value::Object(Map::new()));
            }
        }
        changes
    }

    /// Returns whether there are no operations. The API server ignores such a patch.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Applies all operations to `document`, in order, and returns the result.
    ///
    /// Rule: PAT-02.
    ///
    /// # Errors
    /// Returns the [`ApplyError`] of the first operation that fails.
    pub fn apply(&self, document: &Value) -> Result<Value, ApplyError> {
        self.apply_to(Node::untouched(document.clone()))
    }

    /// Applies the patch to a JSON document as [`Patch::apply`] does, but compares scalars by their source text.
    ///
    /// # Errors
    /// Returns the [`ApplyError`] of the first operation that fails, or an error if `document` is not valid JSON.
    pub fn apply_to_text(&self, document: &[u8]) -> Result<Value, ApplyError> {
        let node = reader::read(document).map_err(|error| ApplyError::DoesNotApply(error.to_string()))?;
        self.apply_to(node)
    }

    fn apply_to(&self, node: Node) -> Result<Value, ApplyError> {
        let mut document = Document::new(node)?;
        for operation in &self.operations {
            document.apply(operation)?;
        }
        document.into_node().into_value().map_err(ApplyError::DoesNotApply)
    }
}

fn cannot_unmarshal(node: &Node, into: &str) -> DecodeError {
    DecodeError(format!("json: cannot unmarshal {} into Go value of type jsonpatch.{into}", node.kind()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn patch(operations: &Value) -> Patch {
        Patch::decode(operations.to_string().as_bytes()).unwrap()
    }

    #[track_caller]
    fn check(document: &Value, operations: &Value, expect: &Value) {
        assert_eq!(patch(operations).apply(document).as_ref(), Ok(expect), "{operations}");
    }

    #[track_caller]
    fn check_wrong(document: &Value, operations: &Value, error: &str) {
        assert_eq!(patch(operations).apply(document).unwrap_err().to_string(), error, "{operations}");
    }

    #[test]
    fn a_patch_must_be_a_list_of_objects() {
        for (text, error) in [
            ("{}", "json: cannot unmarshal object into Go value of type jsonpatch.Patch"),
            ("true", "json: cannot unmarshal bool into Go value of type jsonpatch.Patch"),
            ("[1]", "json: cannot unmarshal number into Go value of type jsonpatch.Operation"),
            ("[[]]", "json: cannot unmarshal array into Go value of type jsonpatch.Operation"),
            ("[{]", "invalid character ']' looking for beginning of object key string"),
        ] {
            assert_eq!(Patch::decode(text.as_bytes()).unwrap_err().to_string(), error, "{text}");
        }
    }

    #[test]
    fn an_operation_that_is_null_has_no_kind() {
        check_wrong(&json!({}), &json!([null]), "Unexpected kind: unknown");
        check_wrong(&json!({}), &json!([{"op": 1}]), "Unexpected kind: unknown");
    }

    #[test]
    fn a_path_that_is_not_a_string_is_reported_as_by_the_library() {
        check_wrong(
            &json!({}),
            &json!([{"op": "replace", "path": 1, "value": 1}]),
            "replace operation failed to decode path: json: cannot unmarshal number into Go value of type string",
        );
        check_wrong(
            &json!({}),
            &json!([{"op": "test", "value": 1}]),
            "test operation failed to decode path: operation missing path field: missing value",
        );
        check_wrong(
            &json!({}),
            &json!([{"op": "remove", "path": 1}]),
            "remove operation failed to decode path: missing value",
        );
    }

    #[test]
    fn text_before_the_first_slash_of_a_path_is_ignored() {
        check(&json!({"a": 1}), &json!([{"op": "remove", "path": "x/a"}]), &json!({}));
    }

    #[test]
    fn the_whole_document_can_be_compared() {
        check(&json!({"a": 1}), &json!([{"op": "test", "path": "", "value": {"a": 1}}]), &json!({"a": 1}));
        check_wrong(
            &json!({"a": 1}),
            &json!([{"op": "test", "path": "", "value": {}}]),
            "testing value  failed: test failed",
        );
    }

    #[test]
    fn operations_are_decoded_as_in_go() {
        let patch = Patch::decode(br#"[{"op":"add","path":"/a","value":"\ud800"}]"#).unwrap();
        assert_eq!(patch.operations(), [json!({"op": "add", "path": "/a", "value": "\u{fffd}"})]);
    }

    #[test]
    fn a_single_slash_selects_the_member_with_the_empty_name() {
        check(&json!({}), &json!([{"op": "add", "path": "/", "value": 1}]), &json!({"": 1}));
    }

    #[test]
    fn an_index_may_have_leading_zeros_but_not_be_too_large() {
        check(&json!([1, 2]), &json!([{"op": "remove", "path": "/01"}]), &json!([1]));
        check_wrong(
            &json!([1, 2]),
            &json!([{"op": "remove", "path": "/99999999999999999999"}]),
            "error in remove for path: '/99999999999999999999': strconv.Atoi: parsing \"99999999999999999999\": value \
             out of range",
        );
    }

    #[test]
    fn the_whole_document_can_be_replaced_only_by_an_object_or_a_list() {
        let no_object = "replace operation value must be object or array: %!w(<nil>)";
        check_wrong(&json!({}), &json!([{"op": "replace", "path": "", "value": 1}]), no_object);
        check_wrong(&json!({}), &json!([{"op": "replace", "path": "", "value": null}]), no_object);
        check(&json!({}), &json!([{"op": "replace", "path": "", "value": [1]}]), &json!([1]));
        let without_value = patch(&json!([{"op": "replace", "path": ""}]));
        assert!(matches!(without_value.apply(&json!({})), Err(ApplyError::Panic(_))));
    }

    #[test]
    fn comparing_nulls_inside_lists_makes_the_library_panic() {
        let nulls = patch(&json!([{"op": "test", "path": "/a", "value": [null]}]));
        assert!(matches!(nulls.apply(&json!({"a": [null]})), Err(ApplyError::Panic(_))));
        check(
            &json!({"a": {"b": null}}),
            &json!([{"op": "test", "path": "/a", "value": {"b": null}}]),
            &json!({"a": {"b": null}}),
        );
    }

    #[test]
    fn strings_are_compared_by_source_text_with_html_escapes() {
        let document = json!({"a": "<"});
        let test = |text: &str| {
            let operations = format!(r#"[{{"op": "test", "path": "/a", "value": {text}}}]"#);
            Patch::decode(operations.as_bytes()).unwrap().apply(&document)
        };
        assert_eq!(test(r#""\u003c""#), Ok(document.clone()));
        assert_eq!(test(r#""<""#).unwrap_err().to_string(), "testing value /a failed: test failed");
    }

    #[test]
    fn copies_are_limited_to_three_mebibytes_in_total() {
        let document = json!({"a": "x".repeat(1_572_862)});
        let copy = |to: &str| json!({"op": "copy", "from": "/a", "path": to});
        assert!(patch(&json!([copy("/b"), copy("/c")])).apply(&document).is_ok());
        check_wrong(
            &document,
            &json!([copy("/b"), copy("/c"), copy("/d")]),
            "Unable to complete the copy, the accumulated size increase of copy is 4718592, exceeding the limit 3145728",
        );
    }

    #[test]
    fn a_patch_cannot_create_a_document_that_overflows_the_stack() {
        let too_deep = "unsupported: a JSON patch that makes an object of more than 128 levels";
        let copy = json!({"op": "copy", "from": "/a", "path": format!("/a{}", "/a".repeat(50))});
        let deep = json!({"op": "add", "path": "/a", "value": (0..50).fold(json!({}), |inner, _| json!({"a": inner}))});
        let mut operations = vec![deep];
        operations.extend(std::iter::repeat_n(copy, 3));
        assert_eq!(patch(&json!(operations)).apply(&json!({})).unwrap_err().to_string(), too_deep);

        let deeper = |level: usize| json!({"op": "add", "path": "/a".repeat(level), "value": {}});
        let levels = |count: usize| patch(&json!((1..=count).map(deeper).collect::<Vec<_>>()));
        let deepest = levels(126).apply(&json!({})).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&deepest.to_string()).unwrap(), deepest);
        assert_eq!(levels(127).apply(&json!({})).unwrap_err().to_string(), too_deep);
        assert_eq!(levels(1000).apply(&json!({})).unwrap_err().to_string(), too_deep);
    }

    #[test]
    fn a_webhook_patch_has_limited_operations_and_values() {
        let of_operations = |count: usize| format!("[{}]", vec![r#"{"op":"test"}"#; count].join(","));
        assert_eq!(check_size(of_operations(MAX_OPERATIONS).as_bytes()), Ok(()));
        assert_eq!(
            check_size(of_operations(MAX_OPERATIONS + 1).as_bytes()).unwrap_err().what,
            "JSON patches with more than 10000 operations (10001)"
        );
        let of_values =
            |count: usize| format!(r#"[{{"op":"add","value":[{}]}}]"#, vec!["0"; count].join(","));
        assert_eq!(check_size(of_values(MAX_VALUES - 4).as_bytes()), Ok(()));
        assert_eq!(
            check_size(of_values(MAX_VALUES - 3).as_bytes()).unwrap_err().what,
            "JSON patches with more than 250000 values (250001)"
        );
        let of_levels = |count: usize| "[".repeat(count);
        assert_eq!(check_size(of_levels(reader::MAX_DEPTH).as_bytes()), Ok(()));
        assert_eq!(
            check_size(of_levels(100_000).as_bytes()).unwrap_err().what,
            "JSON patches with more than 130 levels (10000)"
        );
        assert_eq!(check_size(b"no JSON"), Ok(()));
        let unfinished = format!("[{}", r#"{"op":"test"},"#.repeat(MAX_OPERATIONS + 1));
        assert!(check_size(unfinished.as_bytes()).is_err(), "counted up to where it stops being JSON");
    }

    #[test]
    fn insertions_at_the_front_of_a_long_list_are_limited() {
        let length = work::LIMIT / 1000;
        let document = json!({"list": vec![0; length]});
        let shifts =
            |count: usize| patch(&json!(vec![json!({"op": "add", "path": "/list/0", "value": 1}); count]));
        assert!(shifts(900).apply(&document).is_ok());
        let too_much =
            format!("unsupported: a JSON patch that shifts more than {} elements of lists", work::LIMIT);
        let error = |patch: Patch| patch.apply(&document).err().map(|error| error.to_string());
        assert_eq!(error(shifts(1000)).as_ref(), Some(&too_much));
        let removals = patch(&json!(vec![json!({"op": "remove", "path": "/list/0"}); 1100]));
        assert_eq!(error(removals).as_ref(), Some(&too_much));
        for at_the_end in [
            json!({"op": "add", "path": format!("/list/{}", length - 1), "value": 1}),
            json!({"op": "remove", "path": "/list/-1"}),
        ] {
            assert!(patch(&json!(vec![at_the_end; 1001])).apply(&document).is_ok());
        }
        let moves: Vec<Value> = (0..1001)
            .map(|turn| if turn % 2 == 0 { ("/list", "/other") } else { ("/other", "/list") })
            .map(|(from, path)| json!({"op": "move", "from": from, "path": path}))
            .collect();
        assert_eq!(error(patch(&json!(moves))).as_ref(), Some(&too_much));
    }

    fn any_operation() -> impl Strategy<Value = Value> {
        let path = prop::sample::select(vec!["/a", "/b", "/a/0", "/a/-", "/b/c", "/b/c/-1", "", "/x/y"]);
        let kind = prop::sample::select(vec!["add", "remove", "replace", "move", "copy", "test"]);
        let value = prop::sample::select(vec![json!(1), json!([1]), json!({"c": []}), json!(null)]);
        (kind, path.clone(), path, value)
            .prop_map(|(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}))
    }

    proptest! {
        #[test]
        fn a_patch_does_the_same_as_its_operations_one_by_one(
            operations in prop::collection::vec(any_operation().prop_filter("no test", |o| o["op"] != "test"), 0..6),
        ) {
            let document = json!({"a": [1, 2], "b": {"c": [3]}});
            let at_once = patch(&json!(operations)).apply(&document);
            let one_by_one = operations.iter().try_fold(document, |document, operation| {
                patch(&json!([operation])).apply(&document)
            });
            prop_assert_eq!(at_once, one_by_one);
        }

        #[test]
        fn a_patch_that_fails_at_its_end_changes_nothing(operations in prop::collection::vec(any_operation(), 0..6)) {
            let document = json!({"a": [1, 2], "b": {"c": [3]}});
            let before = document.clone();
            let mut operations = operations;
            operations.push(json!({"op": "test", "path": "/nowhere", "value": 1}));
            prop_assert!(patch(&json!(operations)).apply(&document).is_err());
            prop_assert_eq!(document, before);
        }
    }
}
