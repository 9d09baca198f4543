//! Compares values as the `test` operation of a JSON patch does.

use super::ApplyError;
use super::node::Node;

pub(super) const NIL_DEREFERENCE: ApplyError =
    ApplyError::Panic("runtime error: invalid memory address or nil pointer dereference");

/// Returns whether a value of the document equals the value that a `test` operation expects.
///
/// Source: gopkg.in/evanphx/json-patch.v4 patch.go, `lazyNode.equal`.
/// Rule: PAT-08.
pub(super) fn equal(value: &Node, expected: &Node) -> Result<bool, ApplyError> {
    match (value, expected) {
        (Node::Null, _) | (_, Node::Null) => Err(NIL_DEREFERENCE),
        (Node::NullObject, Node::Object(members)) | (Node::Object(members), Node::NullObject) => {
            Ok(members.is_empty())
        }
        (Node::Array(nodes), Node::NullObject) => Ok(nodes.is_empty()),
        (Node::Object(value), Node::Object(expected)) => {
            if value.len() != expected.len() {
                return Ok(false);
            }
            for (key, value) in value {
                let same = match (value, expected.get(key)) {
                    (Node::Null, Some(Node::Null)) => true,
                    (_, None | Some(Node::Null)) | (Node::Null, _) => false,
                    (value, Some(expected)) => equal(value, expected)?,
                };
                if !same {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Node::Array(value), Node::Array(expected)) => {
            if value.len() != expected.len() {
                return Ok(false);
            }
            for (value, expected) in value.iter().zip(expected) {
                if !equal(value, expected)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (value, expected) => Ok(value == expected),
    }
}
