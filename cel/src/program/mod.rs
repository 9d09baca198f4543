//! Compiled programs and their evaluation.

mod attribute;
mod call;
mod constant;
mod cost;
mod evaluate;
mod fold;
mod literal;
mod message;
mod plan;
mod planner;
mod runtime_type;
mod span;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::ast::{Ast, Expression};
use crate::checked::Checked;
use crate::function::Error;
use crate::stack;
use crate::types::Type;
use crate::value::Value;

pub use crate::stack::SHALLOW;

/// A compiled expression that can be evaluated.
#[derive(Clone, Debug)]
pub struct Program {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    ast: Ast,
    result: Type,
    plan: plan::Plan,
}

/// Provides the values of variables, on demand.
pub trait Variables<'a>: Sync {
    /// Returns the value of a variable. If the variable is not bound, returns `None`, and evaluation fails.
    fn get(&self, name: &str) -> Option<Value<'a>>;

    /// Returns the members of a composed variable. A member is evaluated when an expression selects it.
    ///
    /// This method is called only if [`Variables::get`] returns `None` for the variable.
    fn members(&self, _name: &str) -> Option<&dyn Members<'a>> {
        None
    }
}

/// Provides the members of a composed variable, on demand.
pub trait Members<'a>: Sync {
    /// Returns the value of a member or the error of its evaluation, or `None` if the member does not exist.
    ///
    /// The cost of the evaluation is not a part of the cost of the expression that selects the member.
    fn get(&self, name: &str) -> Option<Result<Value<'a>, Error>>;
}

/// The limits of an evaluation.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits<'l> {
    /// The maximum cost. An evaluation that exceeds it ends with an error.
    pub cost: u64,
    /// A flag that ends comprehensions with an error once it is set; it is checked after every 100 iterations.
    pub interrupted: Option<&'l AtomicBool>,
}

/// The outcome of an evaluation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Evaluation<'a> {
    /// The value, or the error that ended the evaluation.
    pub value: Result<Value<'a>, Error>,
    /// The cost, in kube-apiserver's units.
    pub cost: u64,
}

/// The value of a part of an expression; a part of a macro can have several observations.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Observation<'a> {
    /// The text of the part.
    pub text: &'a str,
    /// The byte offset of the part in the expression.
    pub start: usize,
    /// The value or the error of the part.
    pub value: Result<Value<'a>, Error>,
    /// The cost of the evaluation until the value was known.
    pub cost: u64,
}

/// The value or error of a node, and the cost of the evaluation so far.
#[derive(Debug)]
struct NodeValue<'a> {
    node: u32,
    value: Result<Value<'a>, Error>,
    cost: u64,
}

/// The maximum cost of an expression. kube-apiserver ends an evaluation that exceeds it.
///
/// Source: apiserver pkg/apis/cel/config.go, `PerCallLimit`.
/// Rule: MC-14.
pub const COST_LIMIT: u64 = 1_000_000;

impl Default for Limits<'_> {
    fn default() -> Self {
        Self { cost: COST_LIMIT, interrupted: None }
    }
}

impl Limits<'_> {
    /// Creates limits with this maximum cost and without an interrupt flag.
    pub fn of_cost(cost: u64) -> Self {
        Self { cost, interrupted: None }
    }
}

impl Program {
    /// Compiles a checked expression into a plan.
    ///
    /// # Errors
    ///
    /// Returns the error that kube-apiserver reports after `program instantiation failed: `.
    pub(crate) fn new(checked: Checked) -> Result<Self, Error> {
        let plan =
            stack::with_room(checked.ast.depth, || planner::plan(&checked)).ok_or_else(no_thread)??;
        let result = checked.type_of(checked.ast.root).clone();
        Ok(Self { inner: Arc::new(Inner { ast: checked.ast, result, plan }) })
    }

    /// Returns the text of the expression.
    pub fn source(&self) -> &str {
        &self.inner.ast.source
    }

    /// Returns the static type of the result.
    pub fn result_type(&self) -> &Type {
        &self.inner.result
    }

    /// Returns whether the expression uses the variable `name`, or a variable whose declared name begins with `name.`.
    pub fn mentions(&self, name: &str) -> bool {
        // The checker puts a dot before a name that a macro also declares.
        let is_meant = |ident: &str| {
            let ident = ident.strip_prefix('.').unwrap_or(ident);
            ident.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let mut nodes = self.inner.ast.nodes.iter();
        nodes.any(|node| matches!(&node.expression, Expression::Ident(ident) if is_meant(ident)))
    }

    /// Returns whether the expression calls `function`.
    pub fn calls(&self, function: &str) -> bool {
        let mut nodes = self.inner.ast.nodes.iter();
        nodes.any(|node| matches!(&node.expression, Expression::Call { function: called, .. } if called == function))
    }

    /// Evaluates the expression with these variables, and returns its value and cost.
    pub fn evaluate<'a>(&'a self, variables: &dyn Variables<'a>, limits: &Limits<'_>) -> Evaluation<'a> {
        self.run(variables, limits, false, 0).0
    }

    /// Evaluates the program within the evaluation of other programs, whose total depth is `outer`.
    ///
    /// If the total depth exceeds [`SHALLOW`], the evaluation runs on a thread with a larger stack.
    pub fn evaluate_inside<'a>(
        &'a self,
        variables: &dyn Variables<'a>,
        limits: &Limits<'_>,
        outer: u32,
    ) -> Evaluation<'a> {
        self.run(variables, limits, false, outer).0
    }

    /// Returns the depth of the program. It bounds the recursion of the evaluation.
    pub fn depth(&self) -> u32 {
        self.inner.plan.depth
    }

    /// Evaluates the expression, and also returns the value of each part in the text, in order of evaluation.
    ///
    /// Constants that were folded into other constants are not included.
    pub fn observe<'a>(
        &'a self,
        variables: &dyn Variables<'a>,
        limits: &Limits<'_>,
    ) -> (Evaluation<'a>, Vec<Observation<'a>>) {
        let (evaluation, seen) = self.run(variables, limits, true, 0);
        let ast = &self.inner.ast;
        let spans = span::spans(ast);
        let written = |node: u32| {
            let span = spans.get(node as usize)?.clone()?;
            Some((span.start, ast.source.get(span)?))
        };
        let observations = seen.into_iter().filter_map(|NodeValue { node, value, cost }| {
            written(node).map(|(start, text)| Observation { text, start, value, cost })
        });
        (evaluation, observations.collect())
    }

    fn run<'a>(
        &'a self,
        variables: &dyn Variables<'a>,
        limits: &Limits<'_>,
        observed: bool,
        outer: u32,
    ) -> (Evaluation<'a>, Vec<NodeValue<'a>>) {
        let plan = &self.inner.plan;
        let run = || evaluate::run(plan, variables, limits, observed);
        stack::with_room(plan.depth.saturating_add(outer), run)
            .unwrap_or_else(|| (Evaluation { value: Err(no_thread()), cost: 0 }, Vec::new()))
    }
}

fn no_thread() -> Error {
    Error::Unsupported("no thread can be started".to_owned())
}

impl<'a, S: std::hash::BuildHasher + Sync> Variables<'a> for HashMap<&str, Value<'a>, S> {
    fn get(&self, name: &str) -> Option<Value<'a>> {
        Self::get(self, name).cloned()
    }
}

impl<'a> Variables<'a> for [(&str, Value<'a>)] {
    fn get(&self, name: &str) -> Option<Value<'a>> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
    }
}

impl<'a, const N: usize> Variables<'a> for [(&str, Value<'a>); N] {
    fn get(&self, name: &str) -> Option<Value<'a>> {
        Variables::get(self.as_slice(), name)
    }
}
