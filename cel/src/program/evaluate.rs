//! Evaluates the steps of a program.
//!
//! Source: cel-go interpreter/interpretable.go for the values, interpreter/runtimecost.go, `Observe`, for the costs.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::function::Error;
use crate::value::{self, Text, Value};

use super::call;
use super::cost::{self, Tracker};
use super::plan::{AttributeId, Call, Kind, Plan, Root, Step, StepId};
use super::{Evaluation, Limits, NodeValue, Variables};

/// The result of a step. An error is a value that most operations propagate.
pub(super) type Outcome<'a> = Result<Result<Value<'a>, Error>, Stop>;

/// The reason why an evaluation ends immediately.
#[derive(Debug)]
pub(super) enum Stop {
    /// The cost exceeds the limit.
    Cost,
    /// A panic in Go, with its message.
    Panic(String),
    /// An operation that Kubernetes performs but this crate does not support.
    Unsupported(String),
}

/// The maximum total size, in bytes, of the strings and bytes values that one evaluation may create. kube-apiserver is
/// limited only by its memory: a `+` of two dynamic values costs 1 regardless of their lengths.
const MAX_BYTES: usize = 1 << 28;

impl Stop {
    /// Returns the reason to stop if a function's error ends the evaluation, or `None` if it does not.
    pub(super) fn from_error(error: &Error) -> Option<Self> {
        match error {
            Error::Language(_) => None,
            Error::Panic(reason) => Some(Self::Panic(reason.clone())),
            Error::Unsupported(what) => Some(Self::Unsupported(what.clone())),
        }
    }
}

impl From<Stop> for Error {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Cost => Self::new("operation cancelled: actual cost limit exceeded"),
            Stop::Panic(reason) => Self::Panic(reason),
            Stop::Unsupported(what) => Self::Unsupported(what),
        }
    }
}

/// The state of an evaluation.
pub(super) struct Machine<'a, 'e> {
    pub(super) plan: &'a Plan,
    pub(super) variables: &'e dyn Variables<'a>,
    /// The variables of comprehensions, by slot.
    pub(super) frames: Vec<Frame<'a>>,
    pub(super) tracker: Tracker<'a>,
    pub(super) interrupted: Option<&'e AtomicBool>,
    pub(super) turns: u64,
    /// The total size, in bytes, of the strings and bytes values that calls have created.
    made: usize,
    seen: Option<Vec<NodeValue<'a>>>,
}

/// The variables of a comprehension.
#[derive(Debug, Default)]
pub(super) struct Frame<'a> {
    /// The accumulator; `None` until it is first read, or set by an iteration.
    pub(super) accumulator: Option<Result<Value<'a>, Error>>,
    pub(super) initial: Option<StepId>,
    pub(super) first: Option<Value<'a>>,
    pub(super) second: Option<Value<'a>>,
}

/// Evaluates a plan, and returns the result and, if `observed`, the value of each node.
pub(super) fn run<'a>(
    plan: &'a Plan,
    variables: &dyn Variables<'a>,
    limits: &Limits<'_>,
    observed: bool,
) -> (Evaluation<'a>, Vec<NodeValue<'a>>) {
    let mut frames = Vec::new();
    frames.resize_with(plan.folds, Frame::default);
    let mut machine = Machine {
        plan,
        variables,
        frames,
        tracker: Tracker::new(limits.cost, plan.folds > 0, plan.nodes),
        interrupted: limits.interrupted,
        turns: 0,
        made: 0,
        seen: observed.then(Vec::new),
    };
    let value = match plan.root.map_or_else(|| Ok(Err(broken())), |root| machine.evaluate(root)) {
        Ok(value) => value.map(flattened),
        Err(stop) => Err(stop.into()),
    };
    (Evaluation { value, cost: machine.tracker.cost }, machine.seen.unwrap_or_default())
}

/// Creates the error for an incomplete plan; the planner never creates such a plan.
pub(super) fn broken() -> Error {
    Error::Panic("incomplete program".to_owned())
}

fn flattened(value: Value<'_>) -> Value<'_> {
    if let Value::List(list) = value { Value::List(list.flattened()) } else { value }
}

/// Converts a constant of the plan to a value of the evaluation.
pub(super) fn constant<'a>(value: &'a Value<'static>) -> Value<'a> {
    if let Value::String(text) = value { Value::from(text.as_str()) } else { value.clone() }
}

/// Separates values from errors: replaces each error with a placeholder, and returns the first error.
fn split<const N: usize>(results: [Result<Value<'_>, Error>; N]) -> ([Value<'_>; N], Option<Error>) {
    let mut first = None;
    let values = results.map(|result| {
        result.unwrap_or_else(|error| {
            first.get_or_insert(error);
            cost::failure()
        })
    });
    (values, first)
}

impl<'a> Machine<'a, '_> {
    /// Evaluates a step and charges its cost.
    pub(super) fn evaluate(&mut self, id: StepId) -> Outcome<'a> {
        let plan = self.plan;
        let Some(step) = plan.step(id) else { return Ok(Err(broken())) };
        let mut result = match &step.kind {
            Kind::Constant(value) => Ok(constant(value)),
            Kind::Failed(error) => Err(error.clone()),
            Kind::Attribute { attribute, test } => self.attribute(*attribute, *test)?,
            Kind::And(left, right) => self.logical(*left, *right, false)?,
            Kind::Or(left, right) => self.logical(*left, *right, true)?,
            Kind::Equal(left, right) => self.equality(*left, *right, true)?,
            Kind::NotEqual(left, right) => self.equality(*left, *right, false)?,
            Kind::NotStrictlyFalse(operand) => {
                let result = self.evaluate(*operand)?;
                self.charge_call(&[*operand], 1);
                Ok(Value::Bool(!matches!(result, Ok(Value::Bool(false)))))
            }
            Kind::Call(call) => self.call(call)?,
            Kind::Append { accumulator, list } => {
                let results = [self.evaluate(*accumulator)?, self.evaluate(*list)?];
                self.charge_call(&[*accumulator, *list], 1);
                let ([accumulator, list], error) = split(results);
                error.map_or_else(|| append(accumulator, &list), Err)
            }
            Kind::Insert { accumulator, key, value } => self.insert(*accumulator, *key, *value)?,
            Kind::InsertAll { accumulator, map } => {
                let results = [self.evaluate(*accumulator)?, self.evaluate(*map)?];
                self.charge_call(&[*accumulator, *map], 1);
                let ([accumulator, map], error) = split(results);
                error.map_or_else(|| insert_all(accumulator, &map), Err)
            }
            Kind::Member { element, set } => match self.evaluate(*element)? {
                Ok(value) => {
                    check_hash(&value)?;
                    Ok(Value::Bool(set.has_key(&value)))
                }
                Err(error) => Err(error),
            },
            Kind::OptionalOr { optional, other, plain } => self.optional_or(*optional, *other, *plain)?,
            Kind::List(elements) => self.list(elements)?,
            Kind::Map(entries) => self.map(entries)?,
            Kind::Object { name, fields } => self.object(name, fields)?,
            Kind::Fold(fold) => self.fold(fold)?,
        };
        // In place, because moving a value costs more than most steps.
        if let Ok(Value::Invalid(why)) = &result {
            result = Err(Error::new(&**why));
        }
        self.observe(step, &result)?;
        Ok(result)
    }

    /// Records the result of a step, and ends the evaluation if the cost exceeds the limit.
    fn observe(&mut self, step: &Step, result: &Result<Value<'a>, Error>) -> Result<(), Stop> {
        // Only arguments are read again. Other values are not kept, so that accumulators can change in place.
        self.tracker.push(step.id, || match result {
            Ok(value) if step.argument => value.clone(),
            Ok(_) => Value::Null,
            Err(_) => cost::failure(),
        });
        if let Some(seen) = &mut self.seen {
            seen.push(NodeValue { node: step.node, value: result.clone(), cost: self.tracker.cost });
        }
        if self.tracker.is_exhausted() { Err(Stop::Cost) } else { Ok(()) }
    }

    pub(super) fn id(&self, step: StepId) -> u32 {
        self.plan.step(step).map_or(u32::MAX, |step| step.id)
    }

    pub(super) fn attribute_id(&self, attribute: AttributeId) -> u32 {
        self.plan.attribute(attribute).map_or(u32::MAX, |attribute| attribute.id)
    }

    /// Charges the part of a call's cost that does not depend on the arguments, if the arguments were evaluated.
    fn charge_call(&mut self, arguments: &[StepId], price: u64) {
        if self.tracker.remembers() {
            let plan = self.plan;
            let ids = arguments.iter().map(|step| plan.step(*step).map_or(u32::MAX, |step| step.id));
            if !self.tracker.forget(ids) {
                return;
            }
        }
        self.tracker.charge(price);
    }

    /// Evaluates an attribute and charges its cost. If `test` is set, returns the result of `has()`.
    fn attribute(&mut self, id: AttributeId, test: bool) -> Outcome<'a> {
        let result = self.resolve(id)?;
        match self.plan.attribute(id).map(|attribute| &attribute.root) {
            Some(Root::Conditional { condition, truthy, falsy }) => {
                let ids = [self.attribute_id(*falsy), self.attribute_id(*truthy), self.id(*condition)];
                self.tracker.drop(ids);
            }
            Some(Root::Global(_) | Root::Local { .. } | Root::Operand(_)) | None => {
                self.tracker.drop([self.attribute_id(id)]);
                self.tracker.charge(cost::SELECT);
            }
        }
        if !test {
            return Ok(result);
        }
        // `has()` costs only as much as its selections. As in cel-go, the subtraction wraps around if nothing was
        // charged, for example after an error.
        self.tracker.cost = self.tracker.cost.wrapping_sub(cost::SELECT);
        Ok(match result {
            Ok(Value::Optional(value)) => Ok(Value::Bool(value.is_some())),
            other => other,
        })
    }

    /// Evaluates `&&` or `||`; an operand with the value `decisive` determines the result.
    fn logical(&mut self, left: StepId, right: StepId, decisive: bool) -> Outcome<'a> {
        let mut failure = None;
        let mut result = None;
        for term in [left, right] {
            match self.evaluate(term)? {
                Ok(Value::Bool(value)) if value == decisive => {
                    result = Some(decisive);
                    break;
                }
                Ok(Value::Bool(_)) => {}
                Ok(_) => {
                    failure.get_or_insert_with(Error::no_such_overload);
                }
                Err(error) => {
                    failure.get_or_insert(error);
                }
            }
        }
        let ids = [self.id(left), self.id(right)];
        self.tracker.drop(ids);
        Ok(match (result, failure) {
            (Some(result), _) => Ok(Value::Bool(result)),
            (None, Some(error)) => Err(error),
            (None, None) => Ok(Value::Bool(!decisive)),
        })
    }

    /// Evaluates `==` and `!=`.
    fn equality(&mut self, left: StepId, right: StepId, equal: bool) -> Outcome<'a> {
        let ids = [self.id(left), self.id(right)];
        let (values, error) = split([self.evaluate(left)?, self.evaluate(right)?]);
        let [one, other] = &values;
        let result = if error.is_none() { value::equal(one, other) } else { Ok(false) };
        if let Some(stop) = result.as_ref().err().and_then(Stop::from_error) {
            return Err(stop);
        }
        let price = |values: &[Value<'_>]| match values {
            [left, right] if equal => cost::equality(left, right),
            [left, right] => cost::inequality(left, right),
            _ => 0,
        };
        if self.tracker.remembers() {
            if let Some(remembered) = self.tracker.take(ids) {
                self.tracker.charge(price(&remembered));
            }
        } else {
            self.tracker.charge(price(&values));
        }
        if let Some(error) = error {
            return Ok(Err(error));
        }
        Ok(if equal { result.map(Value::Bool) } else { Ok(Value::Bool(result != Ok(true))) })
    }

    fn call(&mut self, call: &'a Call) -> Outcome<'a> {
        match call.arguments.as_slice() {
            [operand] => {
                let (values, error) = split([self.evaluate(*operand)?]);
                self.invoke(call, &values, error, true)
            }
            [left, right] if call.eager => {
                let (values, error) = split([self.evaluate(*left)?, self.evaluate(*right)?]);
                self.invoke(call, &values, error, true)
            }
            arguments => {
                let mut values = Vec::with_capacity(arguments.len());
                let mut error = None;
                for argument in arguments {
                    match self.evaluate(*argument)? {
                        Ok(value) => values.push(value),
                        Err(found) => {
                            values.push(cost::failure());
                            error = Some(found);
                            break;
                        }
                    }
                }
                let complete = values.len() == arguments.len();
                self.invoke(call, &values, error, complete)
            }
        }
    }

    /// Calls a function unless an argument is an error, and charges the call if all arguments were evaluated.
    fn invoke(
        &mut self,
        call: &'a Call,
        values: &[Value<'a>],
        error: Option<Error>,
        complete: bool,
    ) -> Outcome<'a> {
        let result = error.map_or_else(|| call::invoke(call, values), Err);
        if let Some(stop) = result.as_ref().err().and_then(Stop::from_error) {
            return Err(stop);
        }
        self.made = self.made.saturating_add(match &result {
            Ok(Value::String(Text::Shared(text))) => text.len(),
            Ok(Value::Bytes(bytes)) => bytes.len(),
            _ => 0,
        });
        if self.made > MAX_BYTES {
            return Err(Stop::Unsupported(format!("more than {MAX_BYTES} bytes of texts")));
        }
        if self.tracker.remembers() {
            match *call.arguments.as_slice() {
                [operand] => {
                    let ids = [self.id(operand)];
                    if let Some(remembered) = self.tracker.take(ids) {
                        self.charge_price(call, &remembered, &result)?;
                    }
                }
                [left, right] => {
                    let ids = [self.id(left), self.id(right)];
                    if let Some(remembered) = self.tracker.take(ids) {
                        self.charge_price(call, &remembered, &result)?;
                    }
                }
                _ => {
                    let plan = self.plan;
                    let ids =
                        call.arguments.iter().map(|step| plan.step(*step).map_or(u32::MAX, |step| step.id));
                    if let Some(remembered) = self.tracker.take_all(ids) {
                        self.charge_price(call, &remembered, &result)?;
                    }
                }
            }
        } else if complete {
            self.charge_price(call, values, &result)?;
        }
        Ok(result)
    }

    fn charge_price(
        &mut self,
        call: &Call,
        arguments: &[Value<'a>],
        result: &Result<Value<'a>, Error>,
    ) -> Result<(), Stop> {
        if let Some(reason) = call.price.panic(arguments) {
            return Err(Stop::Panic(reason));
        }
        self.tracker.charge(call.price.cost(arguments, result.as_ref().ok()));
        Ok(())
    }

    fn insert(&mut self, accumulator: StepId, key: StepId, value: StepId) -> Outcome<'a> {
        let mut evaluated = Vec::with_capacity(3);
        for step in [accumulator, key, value] {
            match self.evaluate(step)? {
                Ok(value) => evaluated.push(value),
                Err(error) => {
                    self.charge_call_of(&[accumulator, key, value], step == value);
                    return Ok(Err(error));
                }
            }
        }
        self.charge_call_of(&[accumulator, key, value], true);
        let (Some(value), Some(key), Some(map)) = (evaluated.pop(), evaluated.pop(), evaluated.pop()) else {
            return Ok(Err(broken()));
        };
        check_hash(&key)?;
        Ok(insert(map, key, value))
    }

    fn charge_call_of(&mut self, arguments: &[StepId], complete: bool) {
        if complete || self.tracker.remembers() {
            self.charge_call(arguments, 1);
        }
    }

    fn optional_or(&mut self, optional: StepId, other: StepId, plain: bool) -> Outcome<'a> {
        match self.evaluate(optional)? {
            Ok(Value::Optional(Some(value))) if plain => Ok(Ok(Value::clone(&value))),
            Ok(Value::Optional(Some(value))) => Ok(Ok(Value::Optional(Some(value)))),
            Ok(Value::Optional(None)) => self.evaluate(other),
            Ok(_) => Ok(Err(Error::no_such_overload())),
            Err(error) => Ok(Err(error)),
        }
    }

    /// Returns whether the caller has interrupted the evaluation; checks the flag only on every 100th call.
    pub(super) fn is_interrupted(&mut self) -> bool {
        const FREQUENCY: u64 = 100;
        self.turns += 1;
        self.turns.is_multiple_of(FREQUENCY)
            && self.interrupted.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}

/// Returns an error with the message of Go's panic if a map key is or contains a slice.
pub(super) fn check_hash(key: &Value<'_>) -> Result<(), Stop> {
    match key.unhashable() {
        Some(name) => Err(Stop::Panic(format!("runtime error: hash of unhashable type {name}"))),
        None => Ok(()),
    }
}

/// Appends a list to the accumulator in place, and returns the accumulator.
fn append<'a>(accumulator: Value<'a>, other: &Value<'a>) -> Result<Value<'a>, Error> {
    match (accumulator, other) {
        (Value::List(mut list), Value::List(other)) => {
            other.iter().for_each(|element| list.push(element));
            Ok(Value::List(list))
        }
        (accumulator, other) => value::add(&accumulator, other),
    }
}

/// Inserts an entry into the accumulator in place, and returns the accumulator.
fn insert<'a>(accumulator: Value<'a>, key: Value<'a>, value: Value<'a>) -> Result<Value<'a>, Error> {
    let Value::Map(mut map) = accumulator else { return Err(Error::no_such_overload()) };
    if map.get(&key).is_some() {
        return Err(Error::new(format!("insert failed: key {key} already exists")));
    }
    map.insert(key, value);
    Ok(Value::Map(map))
}

/// Inserts the entries of another map into the accumulator in place, and returns the accumulator.
fn insert_all<'a>(accumulator: Value<'a>, other: &Value<'a>) -> Result<Value<'a>, Error> {
    let Value::Map(other) = other else {
        return Err(Error::new(format!("no such overload: cel.@mapInsert(map, {})", other.type_name())));
    };
    other.iter().try_fold(accumulator, |map, (key, value)| insert(map, key, value))
}
