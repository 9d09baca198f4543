//! Tracks the cost of an evaluation.
//!
//! Source: cel-go interpreter/runtimecost.go, common/cost.go; apiserver pkg/cel/library/cost.go, `CallCost`.

use crate::function::{CallCost, Overload};
use crate::value::Value;

/// The cost of a selection, an index, or a variable.
pub(super) const SELECT: u64 = 1;
/// The cost of a list literal.
pub(super) const LIST: u64 = 10;
/// The cost of a map literal.
pub(super) const MAP: u64 = 30;
/// The cost of an object literal.
pub(super) const OBJECT: u64 = 40;

/// The cost of traversing a string, per unit of its size.
const TEXT_FACTOR: f64 = 0.1;
/// The cost of applying a regular expression to a string of unit cost, per unit of the expression's size.
const REGEX_FACTOR: f64 = 0.25;

/// The cost function of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallPrice {
    library: Option<CallCost>,
    overload: &'static str,
    default: Default,
    assumed: Assumed,
}

/// The type that cel-go's cost function assumes for an argument without checking it; a value of a different type causes
/// a panic.
///
/// Source: cel-go ext/lists.go, `trackListFlatten`, `trackListSort` and their siblings.
#[derive(Clone, Copy, Debug)]
enum Assumed {
    Nothing,
    List(usize),
    Int(usize),
}

/// The default cost of overloads for which a library does not define a cost function.
#[derive(Clone, Copy, Debug)]
enum Default {
    /// The cost is 1.
    Unit,
    /// The cost of traversing the argument at this index.
    Traversal(usize),
    /// The size of the list that is searched.
    Search,
    /// The cost of traversing the shorter of two arguments.
    Shorter,
    /// The cost of traversing both arguments.
    Both,
    /// The cost of applying a regular expression to a string.
    Regex,
    /// The product of the costs of traversing both arguments.
    Product,
}

impl CallPrice {
    /// Returns the cost function for a call to which these overloads can apply.
    pub(super) fn from_overloads(candidates: &[std::sync::Arc<Overload>]) -> Self {
        let overload = if let [only] = candidates { only.id } else { "" };
        let default = match overload {
            "starts_with_string" | "ends_with_string" => Default::Traversal(1),
            "string_to_bytes" | "bytes_to_string" | "strings_quote" | "string_format" => {
                Default::Traversal(0)
            }
            "in_list" => Default::Search,
            "less_string"
            | "greater_string"
            | "less_equals_string"
            | "greater_equals_string"
            | "less_bytes"
            | "greater_bytes"
            | "less_equals_bytes"
            | "greater_equals_bytes" => Default::Shorter,
            "add_string" | "add_bytes" => Default::Both,
            "matches" | "matches_string" => Default::Regex,
            "contains_string" => Default::Product,
            _ => Default::Unit,
        };
        let assumed = match overload {
            "list_flatten_int" => Assumed::Int(1),
            "list_distinct" => Assumed::List(0),
            _ if overload.ends_with("_sortByAssociatedKeys") => Assumed::List(1),
            _ if overload.starts_with("list_") && overload.ends_with("_sort") => Assumed::List(0),
            _ => Assumed::Nothing,
        };
        Self { library: candidates.iter().find_map(|overload| overload.cost), overload, default, assumed }
    }

    /// Returns the message of Go's panic if an argument does not have the type that the cost function assumes.
    pub(super) fn panic(&self, arguments: &[Value<'_>]) -> Option<String> {
        let name = |value: &Value<'_>| if is_failure(value) { "*types.Err" } else { value.go_type() };
        match self.assumed {
            Assumed::Nothing => None,
            Assumed::Int(index) => match arguments.get(index)? {
                Value::Int(_) => None,
                other => Some(format!("interface conversion: ref.Val is {}, not types.Int", name(other))),
            },
            Assumed::List(index) => {
                let value = arguments.get(index)?;
                let missing = match value {
                    Value::List(_) => return None,
                    Value::Int(_)
                    | Value::Uint(_)
                    | Value::Double(_)
                    | Value::String(_)
                    | Value::Bytes(_)
                    | Value::Duration(_)
                    | Value::Timestamp(_) => "Contains",
                    _ => "Add",
                };
                let name = name(value);
                Some(format!("interface conversion: {name} is not traits.Lister: missing method {missing}"))
            }
        }
    }

    pub(super) fn cost(&self, arguments: &[Value<'_>], result: Option<&Value<'_>>) -> u64 {
        if let Some(cost) = self.library.and_then(|cost| cost(self.overload, arguments, result)) {
            return cost;
        }
        let size = |index: usize| arguments.get(index).map_or(1, Value::cost_size);
        match self.default {
            Default::Unit => 1,
            Default::Traversal(index) => traversal(size(index)),
            Default::Search => size(1),
            Default::Shorter => traversal(size(0).min(size(1))),
            Default::Both => traversal(size(0).saturating_add(size(1))),
            Default::Regex => {
                let text = traversal(size(0).saturating_add(1));
                text.saturating_mul(scaled(size(1), REGEX_FACTOR))
            }
            Default::Product => traversal(size(0)).saturating_mul(traversal(size(1))),
        }
    }
}

/// Returns the placeholder for an argument that is an error.
///
/// Its size is 1, and cost functions do not depend on its type.
pub(super) fn failure<'a>() -> Value<'a> {
    Value::Type("error".into())
}

fn is_failure(value: &Value<'_>) -> bool {
    matches!(value, Value::Type(name) if &**name == "error")
}

/// Returns the cost of `left == right`.
pub(super) fn equality(left: &Value<'_>, right: &Value<'_>) -> u64 {
    match left {
        // The value has a type from a Kubernetes library.
        Value::Opaque(_) => 1,
        _ => inequality(left, right),
    }
}

/// Returns the cost of `left != right`.
pub(super) fn inequality(left: &Value<'_>, right: &Value<'_>) -> u64 {
    traversal(left.cost_size().min(right.cost_size()))
}

fn traversal(size: u64) -> u64 {
    scaled(size, TEXT_FACTOR)
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "cel-go calculates in doubles and rounds up"
)]
fn scaled(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

/// The accumulated cost, the limit, and the values that cel-go still remembers.
#[derive(Debug)]
pub(super) struct Tracker<'a> {
    pub(super) cost: u64,
    limit: u64,
    /// The remembered values; only programs with comprehensions need them (see [`Stack`]).
    stack: Option<Stack<'a>>,
}

impl<'a> Tracker<'a> {
    /// Creates a tracker with a cost limit for a program with `nodes` nodes.
    pub(super) fn new(limit: u64, loops: bool, nodes: usize) -> Self {
        Self { cost: 0, limit, stack: loops.then(|| Stack::new(nodes)) }
    }

    /// Adds `cost` to the accumulated cost.
    #[inline]
    pub(super) fn charge(&mut self, cost: u64) {
        self.cost = self.cost.saturating_add(cost);
    }

    /// Returns whether the cost exceeds the limit.
    #[inline]
    pub(super) fn is_exhausted(&self) -> bool {
        self.cost > self.limit
    }

    pub(super) fn remembers(&self) -> bool {
        self.stack.is_some()
    }

    /// Remembers the result of a node.
    #[inline]
    pub(super) fn push(&mut self, id: u32, value: impl FnOnce() -> Value<'a>) {
        if let Some(stack) = &mut self.stack {
            stack.push(id, value());
        }
    }

    /// Removes the results of nodes, and everything that was remembered after each of them.
    #[inline]
    pub(super) fn drop(&mut self, ids: impl IntoIterator<Item = u32>) {
        if let Some(stack) = &mut self.stack {
            for id in ids {
                stack.truncate(id);
            }
        }
    }

    /// Takes the results of a call's arguments, or returns `None` if one is missing. Removes them and everything that
    /// was remembered after each of them.
    #[inline]
    pub(super) fn take<const N: usize>(&mut self, ids: [u32; N]) -> Option<[Value<'a>; N]> {
        let stack = self.stack.as_mut()?;
        let mut values = [const { Value::Null }; N];
        for (value, id) in values.iter_mut().zip(ids).rev() {
            *value = stack.truncate(id)?;
        }
        Some(values)
    }

    /// Takes the results of any number of arguments.
    pub(super) fn take_all(&mut self, ids: impl DoubleEndedIterator<Item = u32>) -> Option<Vec<Value<'a>>> {
        let stack = self.stack.as_mut()?;
        let mut values = ids.rev().map(|id| stack.truncate(id)).collect::<Option<Vec<_>>>()?;
        values.reverse();
        Some(values)
    }

    /// Removes the results of a call's arguments, and returns whether all of them were remembered.
    pub(super) fn forget(&mut self, ids: impl DoubleEndedIterator<Item = u32>) -> bool {
        self.stack.as_mut().is_some_and(|stack| ids.rev().all(|id| stack.truncate(id).is_some()))
    }
}

/// The node results that cel-go remembers to find the arguments of calls. The results of one iteration of a
/// comprehension can remain in the next, so a call may be charged for the wrong values or not at all.
#[derive(Debug)]
struct Stack<'a> {
    entries: Vec<CachedCost<'a>>,
    /// For each node, one more than the position of its last entry, or 0 if the node does not have an entry.
    last: Vec<u32>,
}

#[derive(Debug)]
struct CachedCost<'a> {
    id: u32,
    /// The previous value of `last` for the node.
    previous: u32,
    value: Value<'a>,
}

impl<'a> Stack<'a> {
    fn new(nodes: usize) -> Self {
        Self { entries: Vec::new(), last: vec![0; nodes] }
    }

    fn push(&mut self, id: u32, value: Value<'a>) {
        let Some(last) = self.last.get_mut(id as usize) else { return };
        let previous = *last;
        self.entries.push(CachedCost { id, previous, value });
        *last = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
    }

    /// Removes the last entry of a node and all entries above it.
    #[inline]
    fn truncate(&mut self, id: u32) -> Option<Value<'a>> {
        let position = *self.last.get(id as usize)?;
        if position == 0 {
            return None;
        }
        let mut value = None;
        while self.entries.len() >= position as usize {
            let entry = self.entries.pop()?;
            if let Some(last) = self.last.get_mut(entry.id as usize) {
                *last = entry.previous;
            }
            value = Some(entry.value);
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncating_the_stack_removes_entries_above() {
        let mut stack = Stack::new(4);
        for (id, value) in [(1, 10), (2, 20), (1, 11), (3, 30)] {
            stack.push(id, Value::Int(value));
        }
        assert!(matches!(stack.truncate(1), Some(Value::Int(11))));
        assert!(stack.truncate(3).is_none());
        assert!(matches!(stack.truncate(1), Some(Value::Int(10))));
        assert!(stack.truncate(2).is_none());
    }
}
