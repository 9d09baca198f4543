//! Estimates the cost of calls to the standard library.
//!
//! Source: cel-go checker/cost.go, `costCall` and `functionCost`.

use super::{Argument, Estimator, Range};
use crate::ast::NodeId;

/// The cost of a call without its arguments, and the size of its result if known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) cost: Range,
    pub(super) size: Option<Range>,
}

impl Call {
    pub(super) fn of_cost(cost: Range) -> Self {
        Self { cost, size: None }
    }

    pub(super) fn sized(cost: Range, size: Range) -> Self {
        Self { cost, size: Some(size) }
    }
}

impl Argument<'_> {
    fn size(&self) -> Range {
        self.size.unwrap_or_else(Range::unknown)
    }
}

impl Estimator<'_> {
    pub(super) fn call(
        &mut self,
        node: NodeId,
        function: &str,
        target: Option<NodeId>,
        arguments: &[NodeId],
    ) -> Range {
        if let ("dyn", [argument]) = (function, arguments) {
            let cost = self.cost(*argument);
            self.copy_sizes(node, *argument);
            return cost.plus(Range::exactly(1));
        }
        let mut costs = Vec::with_capacity(arguments.len());
        let mut described = Vec::with_capacity(arguments.len());
        for argument in arguments {
            costs.push(self.cost(*argument));
            described.push(self.argument(*argument));
        }
        let overloads = self.overloads(node);
        if overloads.is_empty() {
            return Range::exactly(0);
        }
        let mut before = Range::exactly(0);
        let receiver = target.map(|target| {
            before = self.cost(target);
            self.argument(target)
        });
        let mut cost = Range::nothing();
        let mut size: Option<Range> = None;
        for overload in overloads {
            let call = self.overload(node, function, overload, receiver.as_ref(), &described, &costs);
            cost = cost.or(call.cost);
            size = match (size, call.size) {
                (Some(so_far), Some(more)) => Some(so_far.or(more)),
                (so_far, more) => so_far.or(more),
            };
            if let Some(container) =
                arguments.first().filter(|_| matches!(overload, "index_list" | "index_map"))
            {
                size = self.entries_of(*container).map(|entries| entries.value);
                let part = if overload == "index_list" { "@items" } else { "@values" };
                let path = self.path_to(*container, part);
                self.paths.insert(node, path);
            }
            if size.is_none() {
                size = self.size(node);
            }
        }
        if let Some(size) = size {
            self.known.insert(node, size);
        }
        before.plus(cost)
    }

    /// Returns the cost of a call to this overload, including its arguments.
    fn overload(
        &mut self,
        node: NodeId,
        function: &str,
        overload: &str,
        target: Option<&Argument<'_>>,
        arguments: &[Argument<'_>],
        costs: &[Range],
    ) -> Call {
        match (overload, costs) {
            ("logical_or" | "logical_and", [left, right]) => {
                return Call::of_cost(Range::new(left.min, left.plus(*right).max));
            }
            ("conditional", [condition, truthy, falsy]) => {
                let [_, first, second] = arguments else { return Call::of_cost(*condition) };
                if let (Some(one), Some(other)) = (self.entries_of(first.node), self.entries_of(second.node))
                {
                    self.entries.insert(node, one.or(other));
                }
                let size = first.size().or(second.size());
                return Call::sized(condition.plus(truthy.or(*falsy)), size);
            }
            _ => {}
        }
        let arguments_cost = costs.iter().fold(Range::exactly(0), |sum, cost| sum.plus(*cost));
        let call = self
            .library(function, overload, target, arguments)
            .or_else(|| self.standard(node, overload, target, arguments))
            .unwrap_or(Call::of_cost(Range::exactly(1)));
        Call { cost: call.cost.plus(arguments_cost), ..call }
    }

    /// Returns the cost of a standard overload, or `None` if the cost is 1.
    fn standard(
        &mut self,
        node: NodeId,
        overload: &str,
        target: Option<&Argument<'_>>,
        arguments: &[Argument<'_>],
    ) -> Option<Call> {
        Some(match (overload, target, arguments) {
            ("string_format", Some(target), _) => Call::of_cost(target.size().read()),
            ("string_to_bytes", _, [text]) => {
                let size = text.size();
                Call::sized(size.read(), Range::new(size.min, size.max.wrapping_mul(4)))
            }
            ("bytes_to_string", _, [bytes]) => {
                let size = bytes.size();
                Call::sized(size.read(), Range::new(size.min / 4, size.max))
            }
            ("strings_quote", _, [text]) => {
                let size = text.size();
                let (min, max) = (size.min.wrapping_add(2), size.max.wrapping_mul(2).wrapping_add(2));
                Call::sized(size.read(), Range::new(min, max))
            }
            ("starts_with_string" | "ends_with_string", _, [part]) => Call::of_cost(part.size().read()),
            ("in_list", _, [_, list]) => Call::of_cost(list.size().by(1.0)),
            ("matches_string", Some(text), [expression]) | ("matches", None, [text, expression]) => {
                let text = text.size().plus(Range::exactly(1)).read();
                Call::of_cost(text.times(expression.size().by(0.25)))
            }
            ("contains_string", Some(text), [part]) => {
                Call::of_cost(text.size().read().times(part.size().read()))
            }
            ("add_string" | "add_bytes" | "add_list", _, [left, right]) => {
                let size = left.size().plus(right.size());
                if let (Some(one), Some(other)) = (self.entries_of(left.node), self.entries_of(right.node)) {
                    self.entries.insert(node, one.or(other));
                }
                let cost = if overload == "add_list" { Range::exactly(1) } else { size.read() };
                Call::sized(cost, size)
            }
            (
                "less_string"
                | "less_equals_string"
                | "greater_string"
                | "greater_equals_string"
                | "less_bytes"
                | "less_equals_bytes"
                | "greater_bytes"
                | "greater_equals_bytes"
                | "equals"
                | "not_equals",
                _,
                [left, right],
            ) => {
                let max = left.size().max.min(right.size().max);
                Call::of_cost(Range::new(u64::from(max > 0), max).read())
            }
            _ => return None,
        })
    }
}
