//! Estimates the minimum and maximum cost of an expression for all values of its variables.
//!
//! Source: cel-go checker/cost.go.

mod calls;
mod libraries;
mod path;
mod range;

use std::collections::HashMap;

use crate::ast::{Comprehension, Entry, Expression, NodeId};
use crate::checked::{Checked, Reference};
use crate::types::{OPTIONAL, Type};
use path::Path;
pub use range::Range;

const SELECT_OR_IDENT: u64 = 1;
const LIST: u64 = 10;
const MAP: u64 = 30;
const MESSAGE: u64 = 40;

/// Provides the possible sizes of variables and their parts.
pub trait Sizes: Sync {
    /// Returns the size of the value at a path such as `["self", "names", "@items"]`, or `None` if the size is unknown.
    /// The elements of a list are at `@items`, and the keys and values of a map at `@keys` and `@values`.
    fn size(&self, path: &[String], of: &Type) -> Option<Range>;
}

/// Treats all variables as values of unknown size.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Unbounded;

impl Sizes for Unbounded {
    fn size(&self, _path: &[String], _of: &Type) -> Option<Range> {
        None
    }
}

/// Estimates the minimum and maximum cost of a checked tree.
pub(crate) fn estimate(checked: &Checked, sizes: &dyn Sizes) -> Range {
    let mut estimator = Estimator {
        checked,
        sizes,
        paths: HashMap::new(),
        variables: Vec::new(),
        known: HashMap::new(),
        entries: HashMap::new(),
    };
    estimator.cost(checked.ast.root)
}

/// The sizes of the elements of a list, or of the keys and values of a map.
#[derive(Clone, Copy, Debug)]
struct Entries {
    is_list: bool,
    key: Range,
    value: Range,
}

impl Entries {
    fn or(self, other: Self) -> Self {
        Self { is_list: self.is_list, key: self.key.or(other.key), value: self.value.or(other.value) }
    }
}

/// A variable of a comprehension, with the path and size of its value.
#[derive(Clone, Debug)]
struct Variable {
    name: String,
    path: Path,
    size: Option<Range>,
    entries: Option<Entries>,
}

struct Estimator<'e> {
    checked: &'e Checked,
    sizes: &'e dyn Sizes,
    paths: HashMap<NodeId, Path>,
    variables: Vec<Variable>,
    known: HashMap<NodeId, Range>,
    entries: HashMap<NodeId, Entries>,
}

/// An argument of a call, with the type, path, and size of its value.
struct Argument<'e> {
    node: NodeId,
    of: &'e Type,
    path: Path,
    /// The size, or `None` if the size is unknown.
    size: Option<Range>,
}

impl<'e> Estimator<'e> {
    fn cost(&mut self, node: NodeId) -> Range {
        match self.checked.ast.expression(node) {
            Expression::Int(_) if matches!(self.checked.reference(node), Some(Reference::Constant)) => {
                Range::exactly(SELECT_OR_IDENT)
            }
            Expression::Null
            | Expression::Bool(_)
            | Expression::Int(_)
            | Expression::Uint(_)
            | Expression::Double(_)
            | Expression::String(_)
            | Expression::Bytes(_) => Range::exactly(0),
            Expression::Ident(name) => {
                let path =
                    self.variable(name).map_or_else(|| Path::of_variable(name), |known| known.path.clone());
                self.paths.insert(node, path);
                Range::exactly(SELECT_OR_IDENT)
            }
            Expression::Select { operand, field, test } => self.select(node, *operand, field, *test),
            Expression::Call { function, target, arguments } => self.call(node, function, *target, arguments),
            Expression::List { elements, .. } => self.list(node, elements),
            Expression::Map(entries) => self.map(node, entries),
            Expression::Struct { fields, .. } => {
                let cost =
                    fields.iter().fold(Range::exactly(0), |sum, field| sum.plus(self.cost(field.value)));
                cost.plus(Range::exactly(MESSAGE))
            }
            Expression::Comprehension(it) if self.binds(it) => self.bind(node, it),
            Expression::Comprehension(it) => self.comprehension(node, it),
        }
    }

    fn type_of(&self, node: NodeId) -> &'e Type {
        self.checked.type_of(node)
    }

    fn variable(&self, name: &str) -> Option<&Variable> {
        self.variables.iter().rev().find(|known| known.name == name)
    }

    fn variable_of(&self, node: NodeId) -> Option<&Variable> {
        match self.checked.ast.expression(node) {
            Expression::Ident(name) => self.variable(name),
            _ => None,
        }
    }

    fn path(&self, node: NodeId) -> Path {
        match self.variable_of(node) {
            Some(known) => known.path.clone(),
            None => self.paths.get(&node).cloned().unwrap_or_default(),
        }
    }

    fn path_to(&self, node: NodeId, part: &str) -> Path {
        self.path(node).join(part)
    }

    fn size_at(&self, path: &Path, of: &Type) -> Option<Range> {
        self.sizes.size(&path.parts(), of)
    }

    fn argument(&mut self, node: NodeId) -> Argument<'e> {
        let path = self.path(node);
        let path = if path.is_of_accumulator() { Path::default() } else { path };
        Argument { node, of: self.type_of(node), path, size: self.size(node) }
    }

    fn select(&mut self, node: NodeId, operand: NodeId, field: &str, test: bool) -> Range {
        let cost = self.cost(operand);
        if test {
            return cost;
        }
        let path = self.path_to(operand, field);
        self.paths.insert(node, path);
        match self.type_of(operand) {
            Type::Map(..) | Type::Object(_) => cost.plus(Range::exactly(SELECT_OR_IDENT)),
            _ => cost,
        }
    }

    fn list(&mut self, node: NodeId, elements: &[NodeId]) -> Range {
        let mut cost = Range::exactly(LIST);
        let mut value = if elements.is_empty() { Range::exactly(0) } else { Range::nothing() };
        for element in elements {
            cost = cost.plus(self.cost(*element));
            value = value.or(self.size_or_unknown(*element));
        }
        self.entries.insert(node, Entries { is_list: true, key: Range::exactly(1), value });
        cost
    }

    fn map(&mut self, node: NodeId, entries: &[Entry<NodeId>]) -> Range {
        let mut cost = Range::exactly(MAP);
        let initial = if entries.is_empty() { Range::exactly(0) } else { Range::nothing() };
        let (mut key, mut value) = (initial, initial);
        for entry in entries {
            cost = cost.plus(self.cost(entry.key));
            cost = cost.plus(self.cost(entry.value));
            key = key.or(self.size_or_unknown(entry.key));
            value = value.or(self.size_or_unknown(entry.value));
        }
        self.entries.insert(node, Entries { is_list: false, key, value });
        cost
    }

    /// Returns whether a comprehension only binds its initial value to a name.
    fn binds(&self, it: &Comprehension) -> bool {
        let ast = &self.checked.ast;
        matches!(ast.expression(it.range), Expression::List { elements, .. } if elements.is_empty())
            && matches!(ast.expression(it.condition), Expression::Bool(false))
    }

    fn push_variable(&mut self, name: &str, node: NodeId) {
        let variable = Variable {
            name: name.to_owned(),
            path: self.path(node),
            size: self.size(node),
            entries: self.entries_of(node),
        };
        self.variables.push(variable);
    }

    fn push_part(&mut self, name: &str, path: Path, size: Option<Range>) {
        self.variables.push(Variable { name: name.to_owned(), path, size, entries: None });
    }

    fn bind(&mut self, node: NodeId, it: &Comprehension) -> Range {
        let cost = self.cost(it.range).plus(self.cost(it.initial));
        self.push_variable(&it.accumulator, it.initial);
        let cost = cost.plus(self.cost(it.result));
        self.variables.pop();
        self.copy_sizes(node, it.result);
        cost
    }

    fn comprehension(&mut self, node: NodeId, it: &Comprehension) -> Range {
        let cost = self.cost(it.range).plus(self.cost(it.initial));
        let outside = self.variables.len();
        self.push_variable(&it.accumulator, it.initial);
        let inside = self.variables.len();
        let entries = self.entries_of(it.range);
        let is_list =
            entries.map_or(matches!(self.type_of(it.range), Type::List(_)), |entries| entries.is_list);
        let key = entries.map(|entries| entries.key);
        let value = entries.map(|entries| entries.value);
        let (key_path, value_path) = if is_list { ("@indices", "@items") } else { ("@keys", "@values") };
        match &it.second_variable {
            Some(second) => {
                let path = self.path_to(it.range, key_path);
                self.push_part(&it.variable, path, key);
                let path = self.path_to(it.range, value_path);
                self.push_part(second, path, value);
            }
            None if is_list => {
                let path = self.path_to(it.range, "@items");
                self.push_part(&it.variable, path, value);
            }
            None => {
                let path = self.path_to(it.range, "@keys");
                self.push_part(&it.variable, path, key);
            }
        }
        let turn = self.cost(it.condition).plus(self.cost(it.step));
        // The cost of the last iteration is estimated below, outside the scope of the loop variables.
        self.variables.truncate(inside);
        let cost = cost.plus(self.cost(it.result));
        self.variables.truncate(outside);
        let turns = self.size_or_unknown(it.range);
        match self.checked.ast.expression(it.initial) {
            Expression::List { .. } | Expression::Map(_) => {
                self.known.insert(node, turns);
                if let Some(entries) = self.entries_of(it.step) {
                    self.entries.insert(node, entries);
                }
            }
            Expression::Ident(_)
            | Expression::Select { .. }
            | Expression::Call { .. }
            | Expression::Struct { .. }
            | Expression::Comprehension(_) => {}
            _ => {
                if let Some(size) = self.size(it.initial) {
                    self.known.insert(node, size);
                }
            }
        }
        cost.plus(turns.times(turn))
    }

    fn copy_sizes(&mut self, to: NodeId, from: NodeId) {
        if let Some(size) = self.size(from) {
            self.known.insert(to, size);
        }
        if let Some(entries) = self.entries_of(from) {
            self.entries.insert(to, entries);
        }
    }

    fn entries_of(&self, node: NodeId) -> Option<Entries> {
        self.entries.get(&node).copied().or_else(|| self.variable_of(node)?.entries)
    }

    fn size_or_unknown(&mut self, node: NodeId) -> Range {
        self.size(node).unwrap_or_else(Range::unknown)
    }

    /// Returns the size of a node's value, or `None` if the size is unknown.
    fn size(&mut self, node: NodeId) -> Option<Range> {
        if let Some(known) = self.known.get(&node) {
            return Some(*known);
        }
        if let Some(size) = size_of_literal(self.checked.ast.expression(node)) {
            return Some(Range::exactly(size));
        }
        let of = self.type_of(node);
        if let Some(size) = self.size_at(&self.path(node), of) {
            self.known.insert(node, size);
            return Some(size);
        }
        if is_scalar(of) {
            return Some(Range::exactly(1));
        }
        self.variable_of(node)?.size
    }

    /// Returns the identifiers of the possible overloads of a call.
    fn overloads(&self, node: NodeId) -> Vec<&'static str> {
        match self.checked.reference(node) {
            Some(Reference::Overloads(overloads)) => overloads.iter().map(|overload| overload.id).collect(),
            _ => Vec::new(),
        }
    }
}

fn size_of_literal(expression: &Expression) -> Option<u64> {
    let length = match expression {
        Expression::String(text) => text.chars().count(),
        Expression::Bytes(bytes) => bytes.len(),
        Expression::List { elements, .. } => elements.len(),
        Expression::Map(entries) => entries.len(),
        Expression::Null
        | Expression::Bool(_)
        | Expression::Int(_)
        | Expression::Uint(_)
        | Expression::Double(_) => 1,
        Expression::Ident(_)
        | Expression::Select { .. }
        | Expression::Call { .. }
        | Expression::Struct { .. }
        | Expression::Comprehension(_) => return None,
    };
    Some(u64::from(crate::source::narrow(length)))
}

fn is_scalar(of: &Type) -> bool {
    match of {
        Type::Bool | Type::Int | Type::Uint | Type::Double | Type::Duration | Type::Timestamp => true,
        Type::Wrapper(inner) => is_scalar(inner),
        Type::Opaque(name, parameters) if **name == *OPTIONAL => parameters.first().is_some_and(is_scalar),
        _ => false,
    }
}
