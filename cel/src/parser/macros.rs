//! Expands macros: calls that the parser replaces with loops and conditions.
//!
//! Source: cel-go parser/macro.go, cel/library.go (`optMap`, `optFlatMap`), ext/comprehensions.go, ext/lists.go
//! (`sortBy`), ext/bindings.go (`cel.bind`).

use std::borrow::Cow;

use super::{Abort, Expander};
use crate::ast::{Comprehension, Entry, Expression, NodeId};

/// The accumulator variable of most macros, a name that expressions cannot contain.
const ACCUMULATOR: &str = "@result";
/// The former name of the accumulator. It is still reserved.
const OLD_ACCUMULATOR: &str = "__result__";
/// The variable of loops over an empty range.
const UNUSED: &str = "#unused";

/// A set of macros that an environment can enable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MacroSet {
    /// `has`, `all`, `exists`, `exists_one`, `map`, and `filter`.
    Standard,
    /// `optMap` and `optFlatMap`, and the syntax of optional fields, elements, and entries.
    Optional,
    /// `all`, `exists`, `exists_one`, `existsOne`, `transformList`, `transformMap`, and `transformMapEntry` with two
    /// variables.
    TwoVariables,
    /// `sortBy`.
    SortBy,
    /// `cel.bind`.
    Bindings,
}

/// A macro, identified by name and number of arguments.
#[derive(Clone, Copy, Debug)]
enum Macro {
    Has,
    All,
    Exists,
    ExistsOne,
    Map,
    Filter,
    OptMap,
    OptFlatMap,
    TransformList,
    TransformMap,
    TransformMapEntry,
    SortBy,
    Bind,
}

/// An error in the arguments of a macro: the node, and the message.
type MacroError = (NodeId, Cow<'static, str>);

/// Finds the macro for a call, or returns `None` if the call is not a macro.
fn find(sets: &[MacroSet], function: &str, receiver: bool, arguments: usize) -> Option<(Macro, MacroSet)> {
    let (found, set) = match (function, receiver, arguments) {
        ("has", false, 1) => (Macro::Has, MacroSet::Standard),
        ("all", true, 2) => (Macro::All, MacroSet::Standard),
        ("exists", true, 2) => (Macro::Exists, MacroSet::Standard),
        ("exists_one", true, 2) => (Macro::ExistsOne, MacroSet::Standard),
        ("map", true, 2 | 3) => (Macro::Map, MacroSet::Standard),
        ("filter", true, 2) => (Macro::Filter, MacroSet::Standard),
        ("optMap", true, 2) => (Macro::OptMap, MacroSet::Optional),
        ("optFlatMap", true, 2) => (Macro::OptFlatMap, MacroSet::Optional),
        ("all", true, 3) => (Macro::All, MacroSet::TwoVariables),
        ("exists", true, 3) => (Macro::Exists, MacroSet::TwoVariables),
        ("exists_one" | "existsOne", true, 3) => (Macro::ExistsOne, MacroSet::TwoVariables),
        ("transformList", true, 3 | 4) => (Macro::TransformList, MacroSet::TwoVariables),
        ("transformMap", true, 3 | 4) => (Macro::TransformMap, MacroSet::TwoVariables),
        ("transformMapEntry", true, 3 | 4) => (Macro::TransformMapEntry, MacroSet::TwoVariables),
        ("sortBy", true, 2) => (Macro::SortBy, MacroSet::SortBy),
        ("bind", true, 3) => (Macro::Bind, MacroSet::Bindings),
        _ => return None,
    };
    sets.contains(&set).then_some((found, set))
}

/// The iteration variables of a loop.
struct Variables {
    first: String,
    second: Option<String>,
}

impl Expander<'_, '_> {
    /// Returns the call, or its expansion if the call is a macro. `offset` is the position of the parenthesis or
    /// operator.
    pub(super) fn call(
        &mut self,
        offset: u32,
        function: &str,
        target: Option<NodeId>,
        arguments: Vec<NodeId>,
    ) -> Result<NodeId, Abort> {
        let found = find(self.macros, function, target.is_some(), arguments.len());
        let Some((found, set)) = found.filter(|(found, _)| self.is_meant(*found, target)) else {
            let function = function.to_owned();
            return Ok(self.tree.add(offset, Expression::Call { function, target, arguments }));
        };
        let mut maker = Maker { expander: self, offset };
        match maker.expand(found, set, target, &arguments)? {
            Ok(node) => Ok(node),
            Err((node, message)) => {
                let place = self.tree.offset(node);
                Ok(self.wrong(place, message))
            }
        }
    }
}

impl Expander<'_, '_> {
    /// Returns whether the macro applies to a call with this target; some macros require a namespace as the target.
    fn is_meant(&self, found: Macro, target: Option<NodeId>) -> bool {
        let is_namespace =
            |target| matches!(self.tree.expression(target), Expression::Ident(name) if name == "cel");
        !matches!(found, Macro::Bind) || target.is_some_and(is_namespace)
    }
}

/// Creates nodes with the offset of the macro call.
struct Maker<'e, 's, 't> {
    expander: &'e mut Expander<'s, 't>,
    offset: u32,
}

impl Maker<'_, '_, '_> {
    fn expand(
        &mut self,
        found: Macro,
        set: MacroSet,
        target: Option<NodeId>,
        arguments: &[NodeId],
    ) -> Result<Result<NodeId, MacroError>, Abort> {
        let Some(target) = target else { return Ok(self.has(arguments)) };
        Ok(match found {
            Macro::OptMap => self.optional_map(target, arguments, true)?,
            Macro::OptFlatMap => self.optional_map(target, arguments, false)?,
            Macro::SortBy => self.sort_by(target, arguments),
            Macro::Bind => {
                let [variable, initial, result] = arguments else { return Err(Abort::Syntax) };
                match self.name_of(*variable) {
                    Some(name) => Ok(self.bind(&name, *initial, *result)),
                    None => Err((*variable, "cel.bind() variable names must be simple identifiers".into())),
                }
            }
            Macro::Has
            | Macro::All
            | Macro::Exists
            | Macro::ExistsOne
            | Macro::Map
            | Macro::Filter
            | Macro::TransformList
            | Macro::TransformMap
            | Macro::TransformMapEntry => {
                let variables = match (set, arguments) {
                    (MacroSet::TwoVariables, [first, second, ..]) => self.two_variables(*first, *second),
                    (_, [first, ..]) => {
                        let message = match found {
                            Macro::Map | Macro::Filter => "argument is not an identifier",
                            _ => "argument must be a simple name",
                        };
                        self.variable(*first, message)
                    }
                    (_, []) => return Err(Abort::Syntax),
                };
                match variables {
                    Ok(variables) => Ok(self.comprehension(found, target, variables, arguments)),
                    Err(refused) => Err(refused),
                }
            }
        })
    }

    fn add(&mut self, expression: Expression) -> NodeId {
        self.expander.tree.add(self.offset, expression)
    }

    fn ident(&mut self, name: &str) -> NodeId {
        self.add(Expression::Ident(name.to_owned()))
    }

    fn accumulator(&mut self) -> NodeId {
        self.ident(ACCUMULATOR)
    }

    fn list(&mut self, elements: Vec<NodeId>) -> NodeId {
        self.add(Expression::List { elements, optional: Vec::new() })
    }

    fn global(&mut self, function: &str, arguments: Vec<NodeId>) -> NodeId {
        self.add(Expression::Call { function: function.to_owned(), target: None, arguments })
    }

    fn member(&mut self, function: &str, target: NodeId, arguments: Vec<NodeId>) -> NodeId {
        self.add(Expression::Call { function: function.to_owned(), target: Some(target), arguments })
    }

    fn name_of(&self, node: NodeId) -> Option<String> {
        match self.expander.tree.expression(node) {
            Expression::Ident(name) => Some(name.clone()),
            _ => None,
        }
    }

    fn has(&mut self, arguments: &[NodeId]) -> Result<NodeId, MacroError> {
        let [argument] = arguments else { return Ok(self.add(Expression::Null)) };
        let Expression::Select { operand, field, .. } = self.expander.tree.expression(*argument) else {
            return Err((*argument, "invalid argument to has() macro".into()));
        };
        let test = Expression::Select { operand: *operand, field: field.clone(), test: true };
        Ok(self.add(test))
    }

    fn variable(&self, node: NodeId, message: &'static str) -> Result<Variables, MacroError> {
        let first = self.name_of(node).ok_or((node, message.into()))?;
        not_accumulator(node, &first)?;
        Ok(Variables { first, second: None })
    }

    fn two_variables(&self, first: NodeId, second: NodeId) -> Result<Variables, MacroError> {
        let message = "argument must be a simple name";
        let first_name = self.name_of(first).ok_or((first, message.into()))?;
        let second_name = self.name_of(second).ok_or((second, message.into()))?;
        if first_name == second_name {
            return Err((second, format!("duplicate variable name: {first_name}").into()));
        }
        not_accumulator(first, &first_name)?;
        not_accumulator(second, &second_name)?;
        Ok(Variables { first: first_name, second: Some(second_name) })
    }

    /// Expands macros that loop over their target.
    fn comprehension(
        &mut self,
        found: Macro,
        range: NodeId,
        variables: Variables,
        arguments: &[NodeId],
    ) -> NodeId {
        let names = if variables.second.is_some() { 2 } else { 1 };
        let rest = arguments.get(names..).unwrap_or_default();
        let (filter, last) = match rest {
            [filter, last] => (Some(*filter), *last),
            [last] => (None, *last),
            _ => (None, range),
        };
        let (initial, condition, step, result) = match found {
            Macro::All => {
                let initial = self.add(Expression::Bool(true));
                let so_far = self.accumulator();
                let condition = self.global("@not_strictly_false", vec![so_far]);
                let so_far = self.accumulator();
                let step = self.global("_&&_", vec![so_far, last]);
                (initial, condition, step, self.accumulator())
            }
            Macro::Exists => {
                let initial = self.add(Expression::Bool(false));
                let so_far = self.accumulator();
                let not = self.global("!_", vec![so_far]);
                let condition = self.global("@not_strictly_false", vec![not]);
                let so_far = self.accumulator();
                let step = self.global("_||_", vec![so_far, last]);
                (initial, condition, step, self.accumulator())
            }
            Macro::ExistsOne => {
                let initial = self.add(Expression::Int(0));
                let condition = self.add(Expression::Bool(true));
                let (so_far, one) = (self.accumulator(), self.add(Expression::Int(1)));
                let more = self.global("_+_", vec![so_far, one]);
                let so_far = self.accumulator();
                let step = self.global("_?_:_", vec![last, more, so_far]);
                let (so_far, one) = (self.accumulator(), self.add(Expression::Int(1)));
                (initial, condition, step, self.global("_==_", vec![so_far, one]))
            }
            Macro::TransformMap | Macro::TransformMapEntry => {
                let initial = self.add(Expression::Map(Vec::<Entry<NodeId>>::new()));
                let mut inserted = vec![self.accumulator()];
                if matches!(found, Macro::TransformMap) {
                    inserted.push(self.ident(&variables.first));
                }
                inserted.push(last);
                let insertion = self.global("cel.@mapInsert", inserted);
                let condition = self.add(Expression::Bool(true));
                let step = self.filtered(filter, insertion);
                (initial, condition, step, self.accumulator())
            }
            _ => {
                let initial = self.list(Vec::new());
                let condition = self.add(Expression::Bool(true));
                let (filter, element) = match (found, arguments) {
                    (Macro::Filter, [variable, ..]) => (Some(last), *variable),
                    _ => (filter, last),
                };
                let so_far = self.accumulator();
                let added = self.list(vec![element]);
                let longer = self.global("_+_", vec![so_far, added]);
                let step = self.filtered(filter, longer);
                (initial, condition, step, self.accumulator())
            }
        };
        self.add(Expression::Comprehension(Box::new(Comprehension {
            range,
            variable: variables.first,
            second_variable: variables.second,
            accumulator: ACCUMULATOR.to_owned(),
            initial,
            condition,
            step,
            result,
        })))
    }

    /// Creates a step that keeps the accumulator if the filter is false.
    fn filtered(&mut self, filter: Option<NodeId>, step: NodeId) -> NodeId {
        let Some(filter) = filter else { return step };
        let so_far = self.accumulator();
        self.global("_?_:_", vec![filter, step, so_far])
    }

    /// Creates a loop over an empty range to bind the initial value to a name.
    fn bind(&mut self, name: &str, initial: NodeId, result: NodeId) -> NodeId {
        let range = self.list(Vec::new());
        let condition = self.add(Expression::Bool(false));
        let step = self.ident(name);
        self.add(Expression::Comprehension(Box::new(Comprehension {
            range,
            variable: UNUSED.to_owned(),
            second_variable: None,
            accumulator: name.to_owned(),
            initial,
            condition,
            step,
            result,
        })))
    }

    fn optional_map(
        &mut self,
        target: NodeId,
        arguments: &[NodeId],
        wrap: bool,
    ) -> Result<Result<NodeId, MacroError>, Abort> {
        let [variable, mapped] = arguments else { return Err(Abort::Syntax) };
        let Some(name) = self.name_of(*variable) else {
            let message = if wrap {
                "optMap() variable name must be a simple identifier"
            } else {
                "optFlatMap() variable name must be a simple identifier"
            };
            return Ok(Err((*variable, message.into())));
        };
        let has_value = self.member("hasValue", target, Vec::new());
        let copy = self.expander.tree.copy(target)?;
        let value = self.member("value", copy, Vec::new());
        let bind = self.bind(&name, value, *mapped);
        let some = if wrap { self.global("optional.of", vec![bind]) } else { bind };
        let none = self.global("optional.none", Vec::new());
        Ok(Ok(self.global("_?_:_", vec![has_value, some, none])))
    }

    fn sort_by(&mut self, target: NodeId, arguments: &[NodeId]) -> Result<NodeId, MacroError> {
        const INPUT: &str = "@__sortBy_input__";
        if !matches!(
            self.expander.tree.expression(target),
            Expression::List { .. }
                | Expression::Select { .. }
                | Expression::Ident(_)
                | Expression::Comprehension(_)
                | Expression::Call { .. }
        ) {
            let message =
                "sortBy can only be applied to a list, identifier, comprehension, call or select expression";
            return Err((target, message.into()));
        }
        let [variable, ..] = arguments else { return Ok(target) };
        let variables = self.variable(*variable, "argument is not an identifier")?;
        let range = self.ident(INPUT);
        let keys = self.comprehension(Macro::Map, range, variables, arguments);
        let input = self.ident(INPUT);
        let sorted = self.member("@sortByAssociatedKeys", input, vec![keys]);
        Ok(self.bind(INPUT, target, sorted))
    }
}

fn not_accumulator(node: NodeId, name: &str) -> Result<(), MacroError> {
    if name == ACCUMULATOR || name == OLD_ACCUMULATOR {
        return Err((node, "iteration variable overwrites accumulator variable".into()));
    }
    Ok(())
}
