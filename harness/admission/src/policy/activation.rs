//! Evaluates the variables in the expressions of a policy.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use kubernetes_cel::function::Error;
use kubernetes_cel::value::{Origin, Value};
use kubernetes_cel::{Limits, Members, SHALLOW, Variables};
use serde_json::Value as Json;

use super::compilation::{Expression, NamedExpression};
use super::record::{EvaluatedExpression, ExpressionPart};
use crate::conditions::{Bindings, CompileError, variable_error};

/// The variables of one sequence of expressions, such as all validations of a policy.
///
/// A composed variable is evaluated when an expression first uses it, and charged once.
///
/// Source: apiserver pkg/admission/plugin/cel/activation.go and composition.go.
pub(super) struct Activation<'a> {
    bindings: Bindings<'a>,
    scope: Scope<'a>,
    variables: &'a [NamedExpression],
    values: Vec<OnceLock<Result<Value<'a>, Error>>>,
    /// The cost of the variables that were evaluated since the cost was last taken.
    cost: AtomicU64,
    /// The total depth of the programs that run on the current stack.
    depth: AtomicU32,
    evaluated: Mutex<Vec<EvaluatedExpression>>,
}

/// A param.
#[derive(Clone, Copy)]
pub(crate) struct ParamInput<'a> {
    /// The object; `None` without a param.
    pub(crate) object: Option<&'a Json>,
    /// How kube-apiserver represents the object.
    pub(crate) origin: Origin,
}

/// The variables that only some expressions of a policy can use.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    /// The value of `params`.
    pub(super) params: ParamInput<'a>,
    /// The value of `namespaceObject`; null for cluster-scoped objects, Namespaces, and match conditions.
    pub(super) namespace: Option<&'a Json>,
    /// Whether `authorizer` has a value.
    pub(super) authorizer: bool,
}

impl<'a> Activation<'a> {
    pub(super) fn new(bindings: Bindings<'a>, scope: Scope<'a>, variables: &'a [NamedExpression]) -> Self {
        Self {
            bindings,
            scope,
            variables,
            values: variables.iter().map(|_| OnceLock::new()).collect(),
            cost: AtomicU64::new(0),
            depth: AtomicU32::new(0),
            evaluated: Mutex::default(),
        }
    }

    /// Returns the cost of the variables that were evaluated since the last call.
    pub(super) fn take_cost(&self) -> u64 {
        self.cost.swap(0, Ordering::Relaxed)
    }

    /// Returns the variables that were evaluated since the last call.
    pub(super) fn take_evaluated(&self) -> Vec<EvaluatedExpression> {
        std::mem::take(&mut *self.evaluated.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Evaluates an expression and returns its value and its cost. The cost does not include the cost of variables.
    ///
    /// The error text is kube-apiserver's, without the text of the expression.
    pub(super) fn evaluate(&self, expression: &'a Expression) -> (Result<Value<'a>, Error>, u64) {
        let program = match &expression.program {
            Ok(program) => program,
            Err(CompileError::Unsupported(what)) => return (Err(Error::Unsupported(what.clone())), 0),
            Err(CompileError::Invalid(error) | CompileError::Internal(error)) => {
                return (Err(Error::new(error.as_str())), 0);
            }
        };
        let (outer, own) = (self.depth.load(Ordering::Relaxed), program.depth());
        // A program that does not fit on the stack runs on a new thread. The compiler limits the depth of variables that
        // use other variables, and so the number of threads.
        let fits = outer == 0 || outer.saturating_add(own) <= SHALLOW;
        self.depth.store(if fits { outer.saturating_add(own) } else { own }, Ordering::Relaxed);
        let inside = if fits { outer } else { SHALLOW };
        let evaluation = program.evaluate_inside(self, &Limits::default(), inside);
        self.depth.store(outer, Ordering::Relaxed);
        (evaluation.value, evaluation.cost)
    }

    /// Evaluates a composed variable.
    ///
    /// Source: apiserver pkg/admission/plugin/cel/composition.go, `Callback`.
    fn evaluate_variable(&self, variable: &'a NamedExpression) -> Result<Value<'a>, Error> {
        let NamedExpression { name, expression } = variable;
        let (value, cost) = self.evaluate(expression);
        self.cost.fetch_add(cost, Ordering::Relaxed);
        let fails = if expression.program.is_ok() { "evaluate" } else { "compile" };
        let value = value.map_err(|error| variable_error(name, fails, error));
        let evaluated = EvaluatedExpression {
            part: ExpressionPart::Variable(std::sync::Arc::clone(name)),
            expression: std::sync::Arc::clone(&expression.text),
            value: value.as_ref().map(shown).map_err(ToString::to_string),
            cost,
        };
        self.evaluated.lock().unwrap_or_else(PoisonError::into_inner).push(evaluated);
        value
    }
}

impl<'a> Variables<'a> for Activation<'a> {
    fn get(&self, name: &str) -> Option<Value<'a>> {
        match name {
            "params" => {
                let ParamInput { object, origin } = self.scope.params;
                Some(object.map_or(Value::Null, |it| Value::from_json_of(it, origin)))
            }
            "namespaceObject" => {
                let namespace = self.scope.namespace;
                Some(namespace.map_or(Value::Null, |it| Value::from_json_of(it, Origin::Typed)))
            }
            "authorizer" | "authorizer.requestResource" if !self.scope.authorizer => None,
            _ => self.bindings.get(name),
        }
    }

    fn members(&self, name: &str) -> Option<&dyn Members<'a>> {
        (name == "variables").then_some(self)
    }
}

impl<'a> Members<'a> for Activation<'a> {
    fn get(&self, name: &str) -> Option<Result<Value<'a>, Error>> {
        let position = self.variables.iter().rposition(|variable| *variable.name == *name)?;
        let (variable, known) = (self.variables.get(position)?, self.values.get(position)?);
        if let Some(value) = known.get() {
            return Some(value.clone());
        }
        let value = self.evaluate_variable(variable);
        Some(known.get_or_init(|| value).clone())
    }
}

/// The maximum length, in bytes, of a string that a record shows in full.
const SHOWN: usize = 200;

fn counted(count: usize, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

/// Formats a value for the record. Lists, maps, bytes, and long strings are shown by type and size only.
#[expect(clippy::wildcard_enum_match_arm, reason = "all other values are short")]
pub(super) fn shown(value: &Value<'_>) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::List(list) => format!("list of {}", counted(list.len(), "element", "elements")),
        Value::Map(map) => format!("map of {}", counted(map.len(), "entry", "entries")),
        Value::String(text) if text.as_str().len() > SHOWN => {
            format!("string of {} bytes", text.as_str().len())
        }
        Value::String(text) => format!("{:?}", text.as_str()),
        Value::Bytes(bytes) => format!("{} bytes", bytes.len()),
        Value::Object(object) => {
            format!("{} of {}", object.name(), counted(object.fields().count(), "field", "fields"))
        }
        Value::Optional(Some(value)) => format!("optional.of({})", shown(value)),
        Value::Preserved(json) => shown(&Value::from_json(json)),
        other => other.to_string(),
    }
}
