//! Compiles a checked tree into a plan.
//!
//! Source: cel-go interpreter/planner.go and decorators.go; cel/library.go, `decorateOptionalOr`.

use std::sync::Arc;

use crate::ast::{Comprehension, Entry as AstEntry, Expression, NodeId};
use crate::checked::{Checked, Reference};
use crate::function::{Error, Overload};
use crate::types::Type;
use crate::value::{Text, Value};

use super::cost::CallPrice;
use super::plan::{
    Attribute, AttributeId, Call, Element, Entry, Fold, Key, Kind, Local, Plan, Qualifier, Root, Step, StepId,
};
use super::{constant, literal};

/// The state of compiling one tree into a plan.
pub(super) struct Planner<'c> {
    checked: &'c Checked,
    plan: Plan,
    /// The variables of the enclosing comprehensions, innermost last.
    scope: Vec<Variable<'c>>,
    depth: u32,
}

struct Variable<'c> {
    name: &'c str,
    slot: usize,
    role: Local,
}

/// Compiles a checked tree into a plan.
///
/// # Errors
///
/// Returns the error that kube-apiserver reports after `program instantiation failed: `, for constants that cannot be
/// converted, indices of invalid types, and constant regular expressions that do not compile.
pub(super) fn plan(checked: &Checked) -> Result<Plan, Error> {
    let nodes = checked.ast.nodes.len();
    let plan = Plan { nodes, ..Plan::default() };
    let mut planner = Planner { checked, plan, scope: Vec::new(), depth: 0 };
    let root = planner.node(checked.ast.root)?;
    planner.plan.root = Some(root);
    planner.identify();
    Ok(planner.plan)
}

fn impossible() -> Error {
    Error::new("unsupported expression".to_owned())
}

impl<'c> Planner<'c> {
    fn add(&mut self, node: NodeId, kind: Kind) -> StepId {
        let id = StepId(u32::try_from(self.plan.steps.len()).unwrap_or(u32::MAX));
        let arguments = match &kind {
            Kind::Call(call) => call.arguments.as_slice(),
            Kind::Equal(left, right) | Kind::NotEqual(left, right) => &[*left, *right],
            _ => &[],
        };
        for argument in arguments {
            if let Some(step) = self.plan.steps.get_mut(argument.0 as usize) {
                step.argument = true;
            }
        }
        self.plan.steps.push(Step { id: node.0, node: node.0, argument: false, kind });
        id
    }

    fn add_attribute(&mut self, node: u32, root: Root) -> AttributeId {
        let id = AttributeId(u32::try_from(self.plan.attributes.len()).unwrap_or(u32::MAX));
        self.plan.attributes.push(Attribute { node, root, qualifiers: Vec::new(), id: node });
        id
    }

    fn kind(&self, step: StepId) -> Option<&Kind> {
        self.plan.step(step).map(|step| &step.kind)
    }

    fn constant(&self, step: StepId) -> Option<&Value<'static>> {
        if let Some(Kind::Constant(value)) = self.kind(step) { Some(value) } else { None }
    }

    /// Returns the value or the error of a constant step, or `None` for other steps.
    fn known(&self, step: StepId) -> Option<Result<&Value<'static>, Error>> {
        match self.kind(step)? {
            Kind::Constant(value) => Some(Ok(value)),
            Kind::Failed(error) => Some(Err(error.clone())),
            _ => None,
        }
    }

    fn node(&mut self, node: NodeId) -> Result<StepId, Error> {
        self.depth += 1;
        self.plan.depth = self.plan.depth.max(self.depth);
        let step = self.expression(node);
        self.depth -= 1;
        step
    }

    fn expression(&mut self, node: NodeId) -> Result<StepId, Error> {
        let checked = self.checked;
        let expression = &checked.ast.nodes.get(node.0 as usize).ok_or_else(impossible)?.expression;
        let kind = match expression {
            Expression::Null => Kind::Constant(Value::Null),
            Expression::Bool(value) => Kind::Constant(Value::Bool(*value)),
            Expression::Int(value) => Kind::Constant(Value::Int(*value)),
            Expression::Uint(value) => Kind::Constant(Value::Uint(*value)),
            Expression::Double(value) => Kind::Constant(Value::Double(*value)),
            Expression::String(text) => Kind::Constant(Value::String(Text::Shared(text.as_str().into()))),
            Expression::Bytes(bytes) => Kind::Constant(Value::Bytes(bytes.as_slice().into())),
            Expression::Ident(name) => return self.ident(node, name),
            Expression::Select { operand, field, test } => return self.select(node, *operand, field, *test),
            Expression::Call { function, target, arguments } => {
                let arguments: Vec<NodeId> = target.iter().chain(arguments).copied().collect();
                return self.call(node, function, &arguments);
            }
            Expression::List { elements, optional } => self.list(elements, optional)?,
            Expression::Map(entries) => self.map(entries)?,
            Expression::Struct { name, fields } => self.object(name, fields)?,
            Expression::Comprehension(comprehension) => self.fold(comprehension)?,
        };
        Ok(self.add(node, kind))
    }

    fn ident(&mut self, node: NodeId, name: &'c str) -> Result<StepId, Error> {
        let variable: &str = match self.checked.reference(node) {
            Some(Reference::Type(of)) => {
                let name = Value::Type(Arc::from(of.runtime_name()));
                return Ok(self.add(node, Kind::Constant(name)));
            }
            Some(Reference::Variable(name)) => name,
            Some(Reference::Constant | Reference::Overloads(_)) | None => name,
        };
        // cel-go treats every name whose value is a type as a type name.
        if matches!(self.checked.type_of(node), Type::Type(_) | Type::AnyType) {
            return Err(Error::new(format!("reference to undefined type: {variable}")));
        }
        let local = (self.scope.iter().rev())
            // A leading dot skips the variables of comprehensions.
            .find(|known| known.name == variable && !name.starts_with('.'));
        let root = match local {
            Some(Variable { slot, role, .. }) => Root::Local { slot: *slot, variable: *role },
            None => Root::Global(variable.strip_prefix('.').unwrap_or(variable).into()),
        };
        let attribute = self.add_attribute(node.0, root);
        Ok(self.add(node, Kind::Attribute { attribute, test: false }))
    }

    fn select(&mut self, node: NodeId, operand: NodeId, field: &str, test: bool) -> Result<StepId, Error> {
        let operand = self.node(operand)?;
        let attribute = self.attribute_of(operand);
        let key = Key::Constant(Value::String(Text::Shared(field.into())));
        self.qualify(attribute, &Qualifier { id: node.0, key, optional: false, test });
        Ok(self.add(node, Kind::Attribute { attribute, test }))
    }

    /// Returns the attribute of a step, or a new attribute that begins with the step's result.
    fn attribute_of(&mut self, step: StepId) -> AttributeId {
        if let Some(Kind::Attribute { attribute, .. }) = self.kind(step) {
            return *attribute;
        }
        let node = self.plan.step(step).map_or(0, |step| step.id);
        self.add_attribute(node, Root::Operand(step))
    }

    /// Appends a selection to an attribute, or to both branches of a conditional.
    fn qualify(&mut self, attribute: AttributeId, qualifier: &Qualifier) {
        let mut pending = vec![attribute];
        while let Some(id) = pending.pop() {
            let Some(attribute) = self.plan.attributes.get_mut(id.0 as usize) else { continue };
            match attribute.root {
                Root::Conditional { truthy, falsy, .. } => pending.extend([falsy, truthy]),
                Root::Global(_) | Root::Local { .. } | Root::Operand(_) => {
                    attribute.qualifiers.push(qualifier.clone());
                }
            }
        }
    }

    fn call(&mut self, node: NodeId, function: &'c str, arguments: &[NodeId]) -> Result<StepId, Error> {
        let steps = arguments.iter().map(|argument| self.node(*argument)).collect::<Result<Vec<_>, _>>()?;
        let candidates = match self.checked.reference(node) {
            Some(Reference::Overloads(candidates)) => candidates.as_slice(),
            _ => &[],
        };
        let kind = match (function, steps.as_slice()) {
            ("_&&_", [left, right]) => Kind::And(*left, *right),
            ("_||_", [left, right]) => Kind::Or(*left, *right),
            ("_==_", [left, right]) => Kind::Equal(*left, *right),
            ("_!=_", [left, right]) => Kind::NotEqual(*left, *right),
            ("@not_strictly_false", [value]) => Kind::NotStrictlyFalse(*value),
            ("_?_:_", [condition, truthy, falsy]) => self.conditional(node, *condition, *truthy, *falsy),
            ("_[_]", [operand, index]) => return self.index(node, *operand, *index, false),
            ("_?._" | "_[?_]", [operand, index]) => return self.index(node, *operand, *index, true),
            ("or", [optional, other]) if only_or_many(candidates, "optional_or_optional") => {
                Kind::OptionalOr { optional: *optional, other: *other, plain: false }
            }
            ("orValue", [optional, other]) if only_or_many(candidates, "optional_orValue_value") => {
                Kind::OptionalOr { optional: *optional, other: *other, plain: true }
            }
            ("_+_", [left, right]) if self.is_taken(*left) => {
                Kind::Append { accumulator: *left, list: *right }
            }
            ("cel.@mapInsert", [map, key, value]) if self.is_taken(*map) => {
                Kind::Insert { accumulator: *map, key: *key, value: *value }
            }
            ("cel.@mapInsert", [map, update]) if self.is_taken(*map) => {
                Kind::InsertAll { accumulator: *map, map: *update }
            }
            _ => self.function(function, steps, candidates)?,
        };
        Ok(self.add(node, kind))
    }

    fn function(
        &self,
        function: &str,
        arguments: Vec<StepId>,
        candidates: &[Arc<Overload>],
    ) -> Result<Kind, Error> {
        if let ([only], [element, list]) = (candidates, arguments.as_slice())
            && only.id == "in_list"
            && let Some(known) = self.known(*list)
        {
            // In kube-apiserver, this panic ends the request and not only the evaluation.
            let Ok(Value::List(list)) = known else {
                return Err(Error::Unsupported("`in` a constant list that has no value".to_owned()));
            };
            if list.is_empty() {
                return Ok(Kind::Constant(Value::Bool(false)));
            }
            if let Some(set) = constant::set(list) {
                return Ok(Kind::Member { element: *element, set });
            }
        }
        let regex = candidates.iter().find_map(|overload| overload.regex);
        let regex = match regex.and_then(|index| arguments.get(index)).and_then(|step| self.constant(*step)) {
            Some(Value::String(pattern)) => {
                Some(crate::regexp::Regexp::new(pattern.as_str()).map_err(Error::from)?)
            }
            _ => None,
        };
        let singleton = candidates.iter().all(|overload| overload.unguarded);
        let eager = arguments.len() <= 2
            && regex.is_none()
            && (singleton || matches!(candidates, [only] if !only.variadic));
        let call = Call {
            function: function.into(),
            price: CallPrice::from_overloads(candidates),
            candidates: candidates.to_vec(),
            arguments,
            eager,
            regex,
        };
        if let [argument] = call.arguments.as_slice()
            && constant::is_conversion(function)
            && let Some(argument) = self.known(*argument)
        {
            return super::call::invoke(&call, std::slice::from_ref(argument?)).map(Kind::Constant);
        }
        Ok(Kind::Call(Box::new(call)))
    }

    fn conditional(&mut self, node: NodeId, condition: StepId, truthy: StepId, falsy: StepId) -> Kind {
        let truthy = self.attribute_of(truthy);
        let falsy = self.attribute_of(falsy);
        let attribute = self.add_attribute(node.0, Root::Conditional { condition, truthy, falsy });
        Kind::Attribute { attribute, test: false }
    }

    fn index(
        &mut self,
        node: NodeId,
        operand: StepId,
        index: StepId,
        optional: bool,
    ) -> Result<StepId, Error> {
        let attribute = self.attribute_of(operand);
        let key = match self.kind(index) {
            Some(Kind::Constant(value)) => {
                constant::check_index(value)?;
                Key::Constant(value.clone())
            }
            Some(Kind::Failed(_)) => return Err(Error::new("invalid qualifier type: *types.Err")),
            Some(Kind::Attribute { attribute, .. }) => {
                Key::Attribute { attribute: *attribute, bare: self.is_bare(index, *attribute) }
            }
            _ => Key::Step(index),
        };
        self.qualify(attribute, &Qualifier { id: node.0, key, optional, test: false });
        Ok(self.add(node, Kind::Attribute { attribute, test: false }))
    }

    /// Returns whether a step is a variable of the caller that has the type `dyn` and no selections.
    fn is_bare(&self, step: StepId, attribute: AttributeId) -> bool {
        let node = self.plan.step(step).map(|step| NodeId(step.node));
        node.is_some_and(|node| *self.checked.type_of(node) == Type::Dyn)
            && self.plan.attribute(attribute).is_some_and(|attribute| {
                matches!(attribute.root, Root::Global(_)) && attribute.qualifiers.is_empty()
            })
    }

    fn list(&mut self, elements: &[NodeId], optional: &[usize]) -> Result<Kind, Error> {
        let mut steps = Vec::with_capacity(elements.len());
        for (index, element) in elements.iter().enumerate() {
            steps.push(Element { value: self.node(*element)?, optional: optional.contains(&index) });
        }
        let parts: Option<Vec<_>> = (steps.iter())
            .map(|element| self.known(element.value).map(|known| (known, element.optional)))
            .collect();
        let Some(parts) = parts else { return Ok(Kind::List(steps)) };
        let elements = parts.into_iter().map(|(value, optional)| match value? {
            value if optional => Err(literal::not_optional_element(value)),
            value => Ok(value.clone()),
        });
        Ok(elements
            .collect::<Result<_, Error>>()
            .map_or_else(Kind::Failed, |it| Kind::Constant(Value::list(it))))
    }

    fn map(&mut self, entries: &'c [AstEntry<NodeId>]) -> Result<Kind, Error> {
        let mut steps = Vec::with_capacity(entries.len());
        for entry in entries {
            let key = self.node(entry.key)?;
            steps.push(Entry { key, value: self.node(entry.value)?, optional: entry.optional });
        }
        let parts: Option<Vec<_>> = (steps.iter())
            .map(|entry| Some((self.known(entry.key)?, self.known(entry.value)?, entry.optional)))
            .collect();
        let Some(parts) = parts else { return Ok(Kind::Map(steps)) };
        let entries = parts.into_iter().map(|(key, value, optional)| match (key?, value?) {
            (key, value) if optional => Err(literal::not_optional_entry(key, value)),
            // In kube-apiserver, this panic ends the request and not only the evaluation.
            (key, _) if key.unhashable().is_some() => {
                Err(Error::Unsupported("a constant map with a key of bytes".to_owned()))
            }
            (key, value) => Ok((key.clone(), value.clone())),
        });
        match entries.collect::<Result<_, Error>>() {
            Ok(map) => Ok(Kind::Constant(Value::Map(map))),
            Err(error @ Error::Unsupported(_)) => Err(error),
            Err(error) => Ok(Kind::Failed(error)),
        }
    }

    fn object(&mut self, name: &str, fields: &'c [AstEntry<String>]) -> Result<Kind, Error> {
        let mut steps = Vec::with_capacity(fields.len());
        for field in fields {
            let value = self.node(field.value)?;
            steps.push(Entry { key: Arc::from(field.key.as_str()), value, optional: field.optional });
        }
        Ok(Kind::Object { name: name.into(), fields: steps })
    }

    fn fold(&mut self, comprehension: &'c Comprehension) -> Result<Kind, Error> {
        let slot = self.plan.folds;
        self.plan.folds += 1;
        let initial = self.node(comprehension.initial)?;
        let range = self.node(comprehension.range)?;
        let outside = self.scope.len();
        self.scope.extend((comprehension.second_variable.as_deref()).map(|name| Variable {
            name,
            slot,
            role: Local::Second,
        }));
        self.scope.push(Variable { name: &comprehension.variable, slot, role: Local::First });
        let accumulator = |role| Variable { name: &comprehension.accumulator, slot, role };
        self.scope.push(accumulator(Local::Accumulator));
        let condition = self.node(comprehension.condition)?;
        self.scope.pop();
        let taken = is_read_once(self.checked, comprehension);
        self.scope.push(accumulator(if taken { Local::TakenAccumulator } else { Local::Accumulator }));
        let step = self.node(comprehension.step)?;
        // The result may use the accumulator, but not the other variables.
        self.scope.truncate(outside);
        self.scope.push(accumulator(Local::Accumulator));
        let result = self.node(comprehension.result)?;
        self.scope.truncate(outside);
        let two_variables = comprehension.second_variable.is_some();
        Ok(Kind::Fold(Box::new(Fold { slot, two_variables, range, initial, condition, step, result })))
    }

    /// Returns whether a step reads an accumulator whose value is moved out.
    fn is_taken(&self, step: StepId) -> bool {
        let Some(Kind::Attribute { attribute, .. }) = self.kind(step) else { return false };
        self.plan.attribute(*attribute).is_some_and(|attribute| {
            attribute.qualifiers.is_empty()
                && matches!(attribute.root, Root::Local { variable: Local::TakenAccumulator, .. })
        })
    }

    /// Assigns each attribute the identifier of its last selection, and each step the identifier of its attribute.
    fn identify(&mut self) {
        // Branches of a conditional precede it, so their identifiers are known.
        for index in 0..self.plan.attributes.len() {
            let Some(attribute) = self.plan.attributes.get(index) else { continue };
            let branch = |id: AttributeId| self.plan.attribute(id).map(|attribute| attribute.id);
            let id = match attribute.root {
                Root::Conditional { truthy, falsy, .. } if branch(truthy) == branch(falsy) => branch(truthy),
                _ => attribute.qualifiers.last().map(|qualifier| qualifier.id),
            };
            let id = id.unwrap_or(attribute.node);
            if let Some(attribute) = self.plan.attributes.get_mut(index) {
                attribute.id = id;
            }
        }
        for step in &mut self.plan.steps {
            if let Kind::Attribute { attribute, test: false } = step.kind
                && let Some(attribute) = self.plan.attributes.get(attribute.0 as usize)
            {
                step.id = attribute.id;
            }
        }
    }
}

/// Returns whether an overload with this ID is the only candidate, or the call has several candidates.
fn only_or_many(candidates: &[Arc<Overload>], id: &str) -> bool {
    if let [only] = candidates { only.id == id } else { true }
}

/// Returns whether the step of a comprehension only adds to its accumulator or leaves it unchanged, as in the
/// expansions of `map` and `filter`.
///
/// If so, the step reads the accumulator only once, and the value of the accumulator can be moved out.
fn is_read_once(checked: &Checked, comprehension: &Comprehension) -> bool {
    let is_accumulator = |node: NodeId| matches!(expression(checked, node), Some(Expression::Ident(name)) if *name == comprehension.accumulator);
    let adds = |node: NodeId| match expression(checked, node) {
        Some(Expression::Call { function, target: None, arguments }) => {
            match (function.as_str(), arguments.as_slice()) {
                ("_+_" | "cel.@mapInsert", [left, _]) | ("cel.@mapInsert", [left, _, _]) => {
                    is_accumulator(*left)
                }
                _ => false,
            }
        }
        _ => false,
    };
    // Names of accumulators begin with an at sign, so no inner expression can refer to the same variable,
    // except inner comprehensions, which have their own.
    comprehension.accumulator.starts_with('@')
        && match expression(checked, comprehension.step) {
            Some(Expression::Call { function, arguments, .. }) if function == "_?_:_" => {
                matches!(arguments.as_slice(), [_, truthy, falsy] if adds(*truthy) && is_accumulator(*falsy))
            }
            _ => adds(comprehension.step),
        }
}

fn expression(checked: &Checked, node: NodeId) -> Option<&Expression> {
    checked.ast.nodes.get(node.0 as usize).map(|node| &node.expression)
}
