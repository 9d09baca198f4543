//! Estimates the cost of calls to the Kubernetes libraries and to the cel-go extensions that Kubernetes uses.
//!
//! Source: apiserver pkg/cel/library/cost.go, `EstimateCallCost`; cel-go ext/lists.go and ext/sets.go.

use super::calls::Call;
use super::{Argument, Estimator, Path, Range};
use crate::ast::Expression;
use crate::types::Type;

/// The maximum size of a named format's regular expression.
const MAX_FORMAT_REGEX_SIZE: f64 = 128.0;
/// The maximum length of a format's name.
const MAX_FORMAT_NAME: u64 = 64;

fn nominal() -> Call {
    Call::of_cost(Range::exactly(1))
}

impl Estimator<'_> {
    /// Returns the cost of a library call without its arguments, or `None` if the function is not from a library.
    pub(super) fn library(
        &self,
        function: &str,
        overload: &str,
        target: Option<&Argument<'_>>,
        arguments: &[Argument<'_>],
    ) -> Option<Call> {
        self.of_lists(overload, target, arguments)
            .or_else(|| self.of_texts(function, target, arguments))
            .or_else(|| self.of_kubernetes(function, overload, target, arguments))
    }

    fn bounds(&self, argument: &Argument<'_>) -> Range {
        argument.size.or_else(|| self.size_at(&argument.path, argument.of)).unwrap_or_else(Range::unknown)
    }

    /// Returns the value of a literal integer, or `otherwise` for other arguments; negative values count as 0.
    fn literal(&self, argument: &Argument<'_>, otherwise: u64) -> u64 {
        match self.checked.ast.expression(argument.node) {
            Expression::Int(value) => u64::try_from(*value).unwrap_or_default(),
            _ => otherwise,
        }
    }

    fn of_lists(
        &self,
        overload: &str,
        target: Option<&Argument<'_>>,
        arguments: &[Argument<'_>],
    ) -> Option<Call> {
        let made = |factor: f64, size: Range| Call::sized(size.by(factor).plus(Range::exactly(11)), size);
        let squared = |factor: f64, list: &Argument<'_>| {
            let size = self.bounds(list);
            made(factor, size.times(size))
        };
        Some(match (overload, target, arguments) {
            ("list_slice", Some(list), [start, end]) => {
                let start = self.literal(start, 0);
                let end = self.literal(end, self.bounds(list).max);
                made(1.0, Range::exactly(end.wrapping_sub(start)))
            }
            ("lists_range", None, [count]) => made(1.0, Range::exactly(self.literal(count, u64::MAX))),
            ("list_reverse" | "list_flatten", Some(list), []) => made(1.0, self.bounds(list)),
            ("list_flatten_int", Some(list), [depth]) => {
                made(as_factor(self.literal(depth, u64::MAX)), self.bounds(list))
            }
            ("list_distinct", Some(list), []) => squared(2.0, list),
            (
                "list_sets_contains_list" | "list_sets_intersects_list" | "list_sets_equivalent_list",
                _,
                [one, other],
            ) => {
                let factor = if overload == "list_sets_equivalent_list" { 2.0 } else { 1.0 };
                let size = self.bounds(one).times(self.bounds(other));
                Call::of_cost(size.by(factor).plus(Range::exactly(1)))
            }
            (_, Some(list), []) if overload.starts_with("list_") && overload.ends_with("_sort") => {
                squared(sort_factor(overload), list)
            }
            (_, Some(_), [keys])
                if overload.starts_with("list_") && overload.ends_with("_sortByAssociatedKeys") =>
            {
                squared(sort_factor(overload), keys)
            }
            _ => return None,
        })
    }

    fn of_texts(
        &self,
        function: &str,
        target: Option<&Argument<'_>>,
        arguments: &[Argument<'_>],
    ) -> Option<Call> {
        Some(match (function, target, arguments) {
            ("url" | "jsonpatch.escapeKey", _, [text])
            | ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(text), _) => {
                let size = self.bounds(text);
                Call::sized(size.read(), size)
            }
            ("replace", Some(text), [old, new, ..]) => {
                let size = self.bounds(text);
                Call::sized(size.by(0.2), replaced(size, self.bounds(old), self.bounds(new)))
            }
            ("split", Some(text), _) => {
                let size = self.bounds(text);
                let parts = match arguments.get(1).map(|limit| self.checked.ast.expression(limit.node)) {
                    Some(Expression::Int(limit)) => limit.cast_unsigned(),
                    _ => size.max,
                };
                Call::sized(size.by(0.2), Range::new(0, parts))
            }
            ("join", Some(list), _) => {
                let count = self.bounds(list);
                let mut size = Range::exactly(0);
                if let Some(element) = self.element(list) {
                    size = count.times(element.1);
                }
                if let Some(separator) = arguments.first() {
                    let separators = Range::new(count.min.saturating_sub(1), count.max.saturating_sub(1));
                    size = size.plus(self.bounds(separator).times(separators));
                }
                Call::sized(size.read(), size)
            }
            ("find" | "findAll", Some(text), [expression, ..]) => {
                let size = self.bounds(text);
                let read = size.plus(Range::exactly(1)).read();
                Call::sized(read.times(self.bounds(expression).by(0.25)), Range::new(0, size.max))
            }
            _ => return None,
        })
    }

    fn of_kubernetes(
        &self,
        function: &str,
        overload: &str,
        target: Option<&Argument<'_>>,
        arguments: &[Argument<'_>],
    ) -> Option<Call> {
        let read = |argument: &Argument<'_>| self.bounds(argument).read();
        Some(match (function, target, arguments) {
            ("check", ..) => Call::of_cost(Range::exactly(350_000)),
            ("fieldSelector" | "labelSelector", _, [text]) => Call::of_cost(selector(self.bounds(text))),
            (
                "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" | "includes",
                Some(target),
                _,
            ) => {
                let size = self.bounds(target);
                match self.element(target) {
                    Some((Type::String | Type::Bytes, element)) => {
                        Call::of_cost(size.times(Range::exactly(1).plus(element.read())))
                    }
                    Some(_) => Call::of_cost(size),
                    None if function == "includes" => Call::of_cost(size),
                    None => Call::of_cost(size.read()),
                }
            }
            ("ip", ..) if overload == "cidr_ip" => nominal(),
            (
                "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver",
                _,
                [text, ..],
            ) => Call::of_cost(read(text)),
            ("ip.isCanonical", _, [text, ..]) => Call::of_cost(self.bounds(text).by(0.2)),
            // Addresses have 4 or 16 bytes.
            ("containsIP", _, [other, ..]) => {
                let cost = Range::new(8, 32).read();
                let parsed = overload == "cidr_contains_ip_string";
                Call::of_cost(if parsed { cost.plus(read(other)) } else { cost })
            }
            ("containsCIDR", _, [other, ..]) => {
                let cost = Range::new(8, 32).read().plus(Range::new(4, 16).read()).plus(Range::exactly(1));
                let parsed = overload == "cidr_contains_cidr_string";
                Call::of_cost(if parsed { cost.plus(read(other)) } else { cost })
            }
            ("validate", _, [text, ..]) => Call::of_cost(read(text).by(MAX_FORMAT_REGEX_SIZE * 0.25)),
            ("_==_", _, [left, right]) => equality(left, right)?,
            _ if NOMINAL.contains(&function) => nominal(),
            _ => return None,
        })
    }

    /// Returns the type and the size of a list's elements or a map's keys, or `None` for other types.
    fn element<'t>(&self, list: &Argument<'t>) -> Option<(&'t Type, Range)> {
        let of = match list.of {
            Type::List(element) => element.as_ref(),
            Type::Map(key, _) => key.as_ref(),
            Type::Opaque(_, parameters) => parameters.first()?,
            _ => return None,
        };
        let path = if list.path.is_empty() { Path::default() } else { list.path.join("@items") };
        Some((of, self.size_at(&path, of).unwrap_or_else(Range::unknown)))
    }
}

/// Returns the cost of comparing two values of the same Kubernetes type, or `None` for other types.
fn equality(left: &Argument<'_>, right: &Argument<'_>) -> Option<Call> {
    let (Type::Object(name) | Type::Opaque(name, _)) = left.of else { return None };
    if left.of != right.of {
        return None;
    }
    Some(match name.as_ref() {
        "kubernetes.NamedFormat" => Call::of_cost(Range::new(1, MAX_FORMAT_NAME).read()),
        "kubernetes.URL" => {
            let max = right.size.map_or(1, |size| size.max);
            Call::of_cost(Range::new(1, max).read())
        }
        "net.IP"
        | "net.CIDR"
        | "kubernetes.Quantity"
        | "kubernetes.Semver"
        | "kubernetes.authorization.Authorizer"
        | "kubernetes.authorization.PathCheck"
        | "kubernetes.authorization.GroupCheck"
        | "kubernetes.authorization.ResourceCheck"
        | "kubernetes.authorization.Decision" => nominal(),
        _ => return None,
    })
}

/// The functions whose calls cost 1, regardless of the size of their arguments.
const NOMINAL: [&str; 38] = [
    "serviceAccount",
    "path",
    "group",
    "resource",
    "subresource",
    "namespace",
    "name",
    "allowed",
    "reason",
    "error",
    "errored",
    "masked",
    "prefixLength",
    "family",
    "isUnspecified",
    "isLoopback",
    "isLinkLocalMulticast",
    "isLinkLocalUnicast",
    "isGlobalUnicast",
    "format.named",
    "sign",
    "asInteger",
    "isInteger",
    "asApproximateFloat",
    "isGreaterThan",
    "isLessThan",
    "compareTo",
    "add",
    "sub",
    "major",
    "minor",
    "patch",
    "getScheme",
    "getHostname",
    "getHost",
    "getPort",
    "getEscapedPath",
    "getQuery",
];

/// Returns the cost of parsing a selector into a list with at most one requirement for every two characters.
///
/// Source: apiserver pkg/cel/library/cost.go, `selectorCostEstimate`.
fn selector(size: Range) -> Range {
    let requirements = size.by(0.5);
    size.read().plus(Range::exactly(10)).plus(requirements.by(50.0))
}

/// Returns the size of `text` after all occurrences of `old` are replaced with `new`.
fn replaced(text: Range, old: Range, new: Range) -> Range {
    let (mut count, mut kept) = (Range::exactly(0), Range::exactly(0));
    if old.min == 0 {
        count.max = text.max.saturating_add(1);
        kept.max = text.max;
    } else if new.max <= old.min {
        kept.max = text.max;
    } else {
        count.max = divided(text.max, old.min);
    }
    if old.max == 0 {
        count.min = text.min.saturating_add(1);
        kept.min = text.min;
    } else if old.max <= new.min {
        kept.min = text.min;
    } else {
        count.min = divided(text.min, old.max);
    }
    count.times(new).plus(kept)
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the server counts in doubles"
)]
fn divided(number: u64, by: u64) -> u64 {
    (number as f64 / by as f64).ceil() as u64
}

#[expect(clippy::cast_precision_loss, reason = "the server counts in doubles")]
fn as_factor(number: u64) -> f64 {
    number as f64
}

fn sort_factor(overload: &str) -> f64 {
    if overload.starts_with("list_string_") || overload.starts_with("list_bytes_") { 2.1 } else { 2.0 }
}
