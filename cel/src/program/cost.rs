//! What an evaluation costs.
//!
//! Source: cel-go interpreter/runtimecost.go, common/cost.go; apiserver pkg/cel/library/cost.go, `CallCost`.

use crate::function::{CallCost, Overload};
use crate::value::Value;

/// A selection, an index or a variable.
pub(super) const SELECT: u64 = 1;
/// A list literal.
pub(super) const LIST: u64 = 10;
/// A map literal.
pub(super) const MAP: u64 = 30;
/// An object literal.
pub(super) const OBJECT: u64 = 40;

/// How much of a text's size its traversal costs.
const TEXT_FACTOR: f64 = 0.1;
/// How much of a regular expression's size its application to a text of unit cost costs.
const REGEX_FACTOR: f64 = 0.25;

/// How the cost of a call is calculated.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallPrice {
    library: Option<CallCost>,
    overload: &'static str,
    default: Default,
    assumed: Assumed,
}

/// What cel-go's cost of a call takes an argument for without asking: anything else is a panic.
///
/// Source: cel-go ext/lists.go, `trackListFlatten`, `trackListSort` and their siblings.
#[derive(Clone, Copy, Debug)]
enum Assumed {
    Nothing,
    List(usize),
    Int(usize),
}

/// Without a library's own cost, the overload decides.
#[derive(Clone, Copy, Debug)]
enum Default {
    /// 1.
    Unit,
    /// A traversal of an argument.
    Traversal(usize),
    /// The size of the list that is searched.
    Search,
    /// A traversal of the shorter of two.
    Shorter,
    /// A traversal of both.
    Both,
    /// A regular expression on a text.
    Regex,
    /// A traversal of the text for each piece of the other.
    Product,
}

impl CallPrice {
    /// The price of calls for which the checker left these overloads.
    pub(super) fn of(candidates: &[std::sync::Arc<Overload>]) -> Self {
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

    /// Go's panic where an argument is not what the cost takes it for.
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

    /// What a call costs.
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

/// What stands for an error among the arguments of a call: its size is 1, and no cost takes it for anything else.
pub(super) fn failure<'a>() -> Value<'a> {
    Value::Type("error".into())
}

fn is_failure(value: &Value<'_>) -> bool {
    matches!(value, Value::Type(name) if &**name == "error")
}

/// What `left == right` costs.
pub(super) fn equality(left: &Value<'_>, right: &Value<'_>) -> u64 {
    match left {
        // The types of Kubernetes' libraries.
        Value::Opaque(_) => 1,
        _ => inequality(left, right),
    }
}

/// What `left != right` costs.
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

/// The cost so far, its limit, and the values that cel-go still remembers.
#[derive(Debug)]
pub(super) struct Tracker<'a> {
    pub(super) cost: u64,
    limit: u64,
    /// Only programs with comprehensions need it: see [`Stack`].
    stack: Option<Stack<'a>>,
}

impl<'a> Tracker<'a> {
    /// A tracker of a program with so many nodes.
    pub(super) fn new(limit: u64, loops: bool, nodes: usize) -> Self {
        Self { cost: 0, limit, stack: loops.then(|| Stack::new(nodes)) }
    }

    /// Adds to the cost.
    #[inline]
    pub(super) fn charge(&mut self, cost: u64) {
        self.cost = self.cost.saturating_add(cost);
    }

    /// Whether the cost is above its limit.
    #[inline]
    pub(super) fn is_exhausted(&self) -> bool {
        self.cost > self.limit
    }

    /// Whether values are remembered.
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

    /// Forgets the results of nodes and all that was remembered after each.
    #[inline]
    pub(super) fn drop(&mut self, ids: impl IntoIterator<Item = u32>) {
        if let Some(stack) = &mut self.stack {
            for id in ids {
                stack.truncate(id);
            }
        }
    }

    /// The results of a call's arguments as far as they are remembered; none if one is not. Forgets them and all that was
    /// remembered after each.
    #[inline]
    pub(super) fn take<const N: usize>(&mut self, ids: [u32; N]) -> Option<[Value<'a>; N]> {
        let stack = self.stack.as_mut()?;
        let mut values = [const { Value::Null }; N];
        for (value, id) in values.iter_mut().zip(ids).rev() {
            *value = stack.truncate(id)?;
        }
        Some(values)
    }

    /// The same for any number of arguments.
    pub(super) fn take_all(&mut self, ids: impl DoubleEndedIterator<Item = u32>) -> Option<Vec<Value<'a>>> {
        let stack = self.stack.as_mut()?;
        let mut values = ids.rev().map(|id| stack.truncate(id)).collect::<Option<Vec<_>>>()?;
        values.reverse();
        Some(values)
    }

    /// Forgets the results of a call's arguments; whether all of them were remembered.
    pub(super) fn forget(&mut self, ids: impl DoubleEndedIterator<Item = u32>) -> bool {
        self.stack.as_mut().is_some_and(|stack| ids.rev().all(|id| stack.truncate(id).is_some()))
    }
}

/// The results that cel-go remembers of nodes, to find the arguments of calls. What is left on it by one turn of a
/// comprehension can be found in the next, so that a call is charged by other values, or not at all.
#[derive(Debug)]
struct Stack<'a> {
    entries: Vec<Remembered<'a>>,
    /// For each node one more than the position of its last entry; 0 without any.
    last: Vec<u32>,
}

#[derive(Debug)]
struct Remembered<'a> {
    id: u32,
    /// What `last` said of the node before.
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
        self.entries.push(Remembered { id, previous, value });
        *last = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
    }

    /// Takes the last entry of a node and all above away.
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
    fn the_stack_forgets_what_lies_above() {
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
