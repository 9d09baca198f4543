//! Evaluates the `JSONPath` expressions of printer columns. client-go's dialect differs from RFC 9535.
//!
//! Source: client-go util/jsonpath/jsonpath.go.

pub(crate) mod parser;

use std::cmp::Ordering;

use serde_json::Value;

use crate::kinds::common::json_path::parser::Unreadable;

/// Returns whether a string is a `JSONPath` without the outer braces.
pub(crate) fn is_json_path(text: &str) -> bool {
    !matches!(Path::parse(text), Err(parser::Unreadable::Invalid))
}

/// A parsed path: a list of nodes for each pair of braces. The first list yields the value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Path(Vec<Vec<Node>>);

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Field(String),
    Wildcard,
    /// `..`: selects a value and its descendants that have children.
    Recursive,
    /// `[START:END:STEP]` or `[INDEX]`. For `[INDEX]`, `end` is INDEX + 1.
    Slice {
        start: Option<i64>,
        end: Option<i64>,
        is_index: bool,
        step: Option<i64>,
    },
    /// `[?(LEFT OPERATOR RIGHT)]`: selects the matching items.
    Filter {
        left: Vec<Self>,
        operator: Operator,
        right: Vec<Self>,
    },
    Union(Vec<Vec<Self>>),
    /// A quoted string. It results in one value regardless of the input.
    Text(Value),
    /// A boolean or a number with a fraction. It replaces each input value.
    Literal(Value),
    Integer(i64),
    /// An `end` without a preceding `range`. Evaluation stops there.
    End,
    /// An unknown word. Evaluation ignores it.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Exists,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Unknown,
}

/// A value that a `JSONPath` expression selects.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Found<'a> {
    /// A value from the object, or a text or literal in the path.
    Value(&'a Value),
    /// An integer in the path. In Go, its type differs from the type of integers in objects.
    Integer(i64),
    /// A byte of a string.
    Byte(u8),
}

impl<'a> Found<'a> {
    fn value(self) -> Option<&'a Value> {
        match self {
            Self::Value(value) => Some(value),
            Self::Integer(_) | Self::Byte(_) => None,
        }
    }
}

impl Path {
    /// Parses a path without the outer braces.
    pub(crate) fn parse(text: &str) -> Result<Self, Unreadable> {
        parser::actions(text).map(Self)
    }

    /// Returns the first result of the path; `None` if the path has no results or does not match the object.
    ///
    /// Rule: TBL-13.
    pub(crate) fn first<'a>(&'a self, object: &'a Value) -> Option<Found<'a>> {
        let mut budget = Budget(MAX_VALUES);
        let mut first = None;
        for (position, nodes) in self.0.iter().enumerate() {
            let (found, fits) = walk(vec![Found::Value(object)], nodes, &mut budget);
            // All lists of nodes must match, including those after the first.
            fits.ok()?;
            if position == 0 {
                first = found.into_iter().next();
            }
        }
        first
    }
}

/// The error for a path that does not match the object or has too many results.
#[derive(Clone, Copy, Debug)]
struct PathMismatch;

/// The maximum number of values that a path may visit. Several `..` or lists in brackets multiply the values.
const MAX_VALUES: usize = 100_000;

/// The number of values that may still be visited.
struct Budget(usize);

impl Budget {
    fn take(&mut self, values: usize) -> Result<(), PathMismatch> {
        self.0 = self.0.checked_sub(values).ok_or(PathMismatch)?;
        Ok(())
    }
}

/// Evaluates nodes. Returns the values up to the first node that does not match, and whether all nodes match.
///
/// An existence filter is satisfied if there are values, even if a node does not match.
fn walk<'a>(
    mut values: Vec<Found<'a>>,
    nodes: &'a [Node],
    budget: &mut Budget,
) -> (Vec<Found<'a>>, Result<(), PathMismatch>) {
    for node in nodes {
        if budget.take(values.len()).is_err() {
            return (values, Err(PathMismatch));
        }
        let mut found = Vec::new();
        match step(&values, node, &mut found, budget) {
            Ok(()) => values = found,
            Err(PartialResult::WithInput) => return (values, Err(PathMismatch)),
            Err(PartialResult::WithFound) => return (found, Err(PathMismatch)),
        }
    }
    (values, Ok(()))
}

/// The values when evaluation stopped at a node that does not match. An existence filter uses these values.
enum PartialResult {
    /// Evaluation stopped with the input values of the node.
    WithInput,
    /// Evaluation stopped with the values that the node had found.
    WithFound,
}

impl From<PathMismatch> for PartialResult {
    fn from(PathMismatch: PathMismatch) -> Self {
        Self::WithInput
    }
}

fn step<'a>(
    values: &[Found<'a>],
    node: &'a Node,
    found: &mut Vec<Found<'a>>,
    budget: &mut Budget,
) -> Result<(), PartialResult> {
    match node {
        Node::Field(name) => {
            let member = |value: &Found<'a>| value.value()?.get(name).map(Found::Value);
            found.extend(values.iter().filter_map(member));
        }
        Node::Wildcard => {
            for value in values {
                found.extend(children(*value, budget)?);
            }
        }
        Node::Recursive => {
            for value in values {
                descend(*value, found, budget)?;
            }
        }
        Node::Slice { start, end, is_index, step } => {
            for value in values {
                if value.value().is_some_and(Value::is_null) {
                    continue;
                }
                let list = value.value().and_then(Value::as_array).ok_or(PathMismatch)?;
                let Some(chosen) = slice(list, *start, *end, *is_index, *step)? else { break };
                budget.take(chosen.len())?;
                found.extend(chosen.into_iter().map(Found::Value));
            }
        }
        Node::Filter { left, operator, right } => {
            for value in values {
                for item in value.value().and_then(Value::as_array).ok_or(PathMismatch)? {
                    if passes(item, left, *operator, right, budget)? {
                        found.push(Found::Value(item));
                    }
                }
            }
        }
        Node::Union(parts) => {
            for part in parts {
                let (values, fits) = walk(values.to_vec(), part, budget);
                fits?;
                found.extend(values);
            }
        }
        Node::Text(text) => found.push(Found::Value(text)),
        Node::Literal(literal) => found.extend(values.iter().map(|_| Found::Value(literal))),
        Node::Integer(integer) => found.extend(values.iter().map(|_| Found::Integer(*integer))),
        Node::End => return Err(PartialResult::WithFound),
        Node::Unknown => return Err(PartialResult::WithInput),
    }
    Ok(())
}

/// Returns the children of a value. In Go, the children of a string are its bytes.
fn children<'a>(value: Found<'a>, budget: &mut Budget) -> Result<Vec<Found<'a>>, PathMismatch> {
    let Some(value) = value.value() else { return Ok(Vec::new()) };
    let text = value.as_str().unwrap_or_default();
    let count = value.as_array().map_or(0, Vec::len) + value.as_object().map_or(0, serde_json::Map::len);
    budget.take(count + text.len())?;
    Ok(match value {
        Value::Array(items) => items.iter().map(Found::Value).collect(),
        Value::Object(members) => members.values().map(Found::Value).collect(),
        Value::String(_) => text.bytes().map(Found::Byte).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    })
}

/// Collects a value and its descendants that have children. The maximum depth of JSON objects limits the recursion.
fn descend<'a>(
    value: Found<'a>,
    found: &mut Vec<Found<'a>>,
    budget: &mut Budget,
) -> Result<(), PathMismatch> {
    let children = children(value, budget)?;
    if !children.is_empty() {
        found.push(value);
    }
    for child in children {
        descend(child, found, budget)?;
    }
    Ok(())
}

/// Selects a range of items. Returns `None` for an empty range; in this case, the nodes that follow are not evaluated.
fn slice(
    list: &[Value],
    start: Option<i64>,
    end: Option<i64>,
    is_index: bool,
    step: Option<i64>,
) -> Result<Option<Vec<&Value>>, PathMismatch> {
    let length = i64::try_from(list.len()).map_err(|_too_long| PathMismatch)?;
    let from_end = |place: i64| if place < 0 { place.saturating_add(length) } else { place };
    let start = from_end(start.unwrap_or(0));
    let end = match end.unwrap_or(length) {
        0 if is_index => length,
        end => from_end(end),
    };
    if start == end {
        return Ok(None);
    }
    let place = |place: i64| usize::try_from(place).map_err(|_negative| PathMismatch);
    if start >= length || start > end {
        return Err(PathMismatch);
    }
    let chosen = list.get(place(start)?..place(end)?).ok_or(PathMismatch)?;
    let step = usize::try_from(step.unwrap_or(1)).ok().filter(|step| *step > 0).ok_or(PathMismatch)?;
    Ok(Some(chosen.iter().step_by(step).collect()))
}

fn passes(
    item: &Value,
    left: &[Node],
    operator: Operator,
    right: &[Node],
    budget: &mut Budget,
) -> Result<bool, PartialResult> {
    budget.take(1)?;
    let (lefts, fits) = walk(vec![Found::Value(item)], left, budget);
    if operator == Operator::Exists {
        return Ok(!lefts.is_empty());
    }
    fits?;
    let [left] = lefts.as_slice() else {
        return if lefts.is_empty() { Ok(false) } else { Err(PartialResult::WithInput) };
    };
    let (rights, fits) = walk(vec![Found::Value(item)], right, budget);
    fits?;
    match rights.as_slice() {
        [] => Ok(false),
        [right] => compare(*left, operator, *right).map_err(|PathMismatch| PartialResult::WithFound),
        _ => Err(PartialResult::WithInput),
    }
}

/// A value in the form in which Go compares it.
#[derive(PartialEq)]
enum Comparable<'a> {
    Truth(bool),
    Text(&'a str),
    Integer(i64),
    Float(f64),
}

impl<'a> Comparable<'a> {
    fn from_found(found: Found<'a>) -> Result<Self, PathMismatch> {
        Ok(match found {
            Found::Integer(integer) => Self::Integer(integer),
            Found::Byte(byte) => Self::Integer(byte.into()),
            Found::Value(Value::Bool(truth)) => Self::Truth(*truth),
            Found::Value(Value::String(text)) => Self::Text(text),
            Found::Value(Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
                (Some(integer), _) => Self::Integer(integer),
                (None, Some(float)) => Self::Float(float),
                (None, None) => return Err(PathMismatch),
            },
            Found::Value(_) => return Err(PathMismatch),
        })
    }
}

/// Compares two values. Returns [`PathMismatch`] for values of different types.
///
/// Source: client-go `third_party/forked/golang/template/funcs.go`: values of different types cannot be compared.
fn compare(left: Found<'_>, operator: Operator, right: Found<'_>) -> Result<bool, PathMismatch> {
    let (left, right) = (Comparable::from_found(left)?, Comparable::from_found(right)?);
    let order = match (&left, &right) {
        (Comparable::Truth(_), Comparable::Truth(_)) => None,
        (Comparable::Text(left), Comparable::Text(right)) => Some(left.cmp(right)),
        (Comparable::Integer(left), Comparable::Integer(right)) => Some(left.cmp(right)),
        (Comparable::Float(left), Comparable::Float(right)) => left.partial_cmp(right),
        _ => return Err(PathMismatch),
    };
    match operator {
        Operator::Equal => Ok(left == right),
        Operator::NotEqual => Ok(left != right),
        Operator::Exists | Operator::Unknown => Err(PathMismatch),
        Operator::Less => order.map(Ordering::is_lt).ok_or(PathMismatch),
        Operator::LessOrEqual => order.map(Ordering::is_le).ok_or(PathMismatch),
        Operator::Greater => order.map(Ordering::is_gt).ok_or(PathMismatch),
        Operator::GreaterOrEqual => order.map(Ordering::is_ge).ok_or(PathMismatch),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn path_yields_its_first_value() {
        let object = json!({
            "spec": {"a": 1, "list": ["x", "y", "z"], "n": null},
            "metadata": {"annotations": {"example.com/b": "c"}},
            "status": {"conditions": [
                {"type": "Ready", "status": "True", "n": 2}, {"type": "Other", "status": "False"},
            ]},
        });
        for (path, expected) in [
            (".spec.a", Some(json!(1))),
            (".spec.b", None),
            (".spec.n", Some(json!(null))),
            (".spec.n.x", None),
            (".spec.a.x", None),
            (".spec.list[0]", Some(json!("x"))),
            (".spec.list[-1]", Some(json!("z"))),
            (".spec.list[3]", None),
            (".spec.list[1:]", Some(json!("y"))),
            (".spec.list[*]", Some(json!("x"))),
            (".spec.list[2,0]", Some(json!("z"))),
            (".spec['a']", Some(json!(1))),
            (".spec[0]", None),
            (r".metadata.annotations.example\.com/b", Some(json!("c"))),
            (r#".status.conditions[?(@.type=="Other")].status"#, Some(json!("False"))),
            (".status.conditions[?(@.type=='Ready')].status", Some(json!("True"))),
            (".status.conditions[?(@.n>1)].type", Some(json!("Ready"))),
            (".status.conditions[?(@.n)].type", Some(json!("Ready"))),
            (".status.conditions[?(@.type==1)].status", None),
            ("..annotations", Some(json!({"example.com/b": "c"}))),
            (".spec.*", Some(json!(1))),
        ] {
            let parsed = Path::parse(path).unwrap();
            assert_eq!(parsed.first(&object), expected.as_ref().map(Found::Value), "{path}");
        }
    }

    #[test]
    fn exponential_paths_are_aborted() {
        let deep = (0..60).fold(json!([1, 2]), |inner, _| json!([inner, 1]));
        for path in ["..[0:]".repeat(20), "[0,0]".repeat(60), "[0:,0:]".repeat(60)] {
            assert_eq!(Path::parse(&path).unwrap().first(&deep), None, "{path}");
        }
        assert_eq!(Path::parse("..[0:]").unwrap().first(&json!([[1]])), Some(Found::Value(&json!([1]))));
    }

    /// client-go also rejects the invalid paths, but accepts the unsupported path.
    #[test]
    fn invalid_paths_are_rejected() {
        for path in [".a[", ".a[?(@.b", ".a[x]", ".a]", ".a[?(@.b=='c)]", ".a[+1]", ".a....b"] {
            assert_eq!(Path::parse(path), Err(Unreadable::Invalid), "{path}");
        }
        assert_eq!(Path::parse(".a}{range .b}{.c}{end"), Err(Unreadable::Unsupported));
        assert_eq!(Path::parse(&".a[?(".repeat(100)), Err(Unreadable::Invalid));
    }
}
