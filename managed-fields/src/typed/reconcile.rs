//! Updates field sets after a schema change.

use crate::path::PathElement;
use crate::schema::{MapType, Relation, Scalar, Schema, Type};
use crate::set::{Node, Set};

/// Updates the `fields` of an object to the current type `of`; returns `None` if nothing changes.
///
/// If a value has become atomic, the owner of a part of the value owns the whole value.
///
/// Source: structured-merge-diff `typed/reconcile_schema.go`, `ReconcileFieldSetWithSchema`.
pub(crate) fn reconcile<T: Schema>(fields: &Set, of: Type<T>) -> Option<Set> {
    let atomic = visit(Some(fields), of, false).below.finish();
    (!atomic.is_empty()).then(|| fields.recursive_difference(&atomic).union(&atomic))
}

/// Visits a value; `is_atomic` states whether the value was atomic before.
fn visit<T: Schema>(fields: Option<&Set>, of: Type<T>, is_atomic: bool) -> Node {
    let atom = of.atom();
    let below = |element: &PathElement| match (atom.map, atom.scalar, atom.list) {
        (Some(map), _, _) => match element {
            PathElement::Field(name) => of.field(name).or(map.element),
            PathElement::Key(_) | PathElement::Value(_) | PathElement::Index(_) | PathElement::Unknown => {
                map.element
            }
        },
        (None, None, Some(list)) => Some(list.element),
        (None, _, _) => None,
    };
    let becomes_atomic = match (atom.map, atom.scalar, atom.list) {
        (Some(map), _, _) if is_deduced(map) => return Node::default(),
        (Some(map), _, _) => map.is_atomic && fields.is_some(),
        (None, None, Some(list)) => list.relation == Relation::Atomic,
        (None, _, _) => return Node::default(),
    };
    if becomes_atomic && !is_atomic {
        return Node { is_member: true, ..Node::default() };
    }
    let mut node = Node::default();
    let Some(fields) = fields else { return node };
    for (element, set) in fields.children() {
        if let Some(of) = below(element) {
            node.below.attach(element, visit(Some(set), of, false));
        }
    }
    for element in fields.members() {
        if let Some(of) = below(element).filter(|_| fields.child(element).is_none()) {
            node.below.attach(element, visit(None, of, true));
        }
    }
    node
}

/// Returns whether the map does not declare fields and its members have a type without a schema.
///
/// Source: structured-merge-diff `typed/reconcile_schema.go`, `isUntypedDeducedMap`.
fn is_deduced<T: Schema>(map: MapType<T>) -> bool {
    !map.has_fields
        && match map.element {
            Some(Type::Deduced) => true,
            Some(Type::Declared(declared)) => declared.atom().scalar == Some(Scalar::Untyped),
            Some(Type::Untyped) | None => false,
        }
}
