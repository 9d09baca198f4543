//! The plan of a program: the checked tree, prepared for evaluation.
//!
//! Source: cel-go interpreter/interpretable.go and attributes.go. The plan has the same structure, because the
//! structure determines the cost of an evaluation.

use std::sync::Arc;

use crate::function::{Error, Overload};
use crate::regexp::Regexp;
use crate::value::{Map, Value};

use super::cost::CallPrice;

/// An index into [`Plan::steps`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StepId(pub(super) u32);

/// An index into [`Plan::attributes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AttributeId(pub(super) u32);

/// A checked tree that is prepared for evaluation.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    pub(super) attributes: Vec<Attribute>,
    pub(super) root: Option<StepId>,
    /// The number of comprehensions; each has its own slot for its variables.
    pub(super) folds: usize,
    /// The number of nodes of the tree; all node identifiers are less than this number.
    pub(super) nodes: usize,
    /// The maximum nesting depth of the steps.
    pub(super) depth: u32,
}

/// A step of a plan. It evaluates one or more nodes of the tree.
#[derive(Debug)]
pub(super) struct Step {
    /// The node identifier under which the cost of the step's result is tracked.
    pub(super) id: u32,
    /// The node of the tree that the step evaluates.
    pub(super) node: u32,
    /// Whether the step is an argument of a call whose cost depends on the argument.
    pub(super) argument: bool,
    pub(super) kind: Kind,
}

/// The operation of a step.
#[derive(Debug)]
pub(super) enum Kind {
    Constant(Value<'static>),
    /// A list or map literal of constants that cannot be built, with the error.
    Failed(Error),
    /// A variable or value with its selections and indices. `test` is set for the operand of `has()`.
    Attribute {
        attribute: AttributeId,
        test: bool,
    },
    And(StepId, StepId),
    Or(StepId, StepId),
    Equal(StepId, StepId),
    NotEqual(StepId, StepId),
    NotStrictlyFalse(StepId),
    Call(Box<Call>),
    /// `accumulator + [element]` in a comprehension, applied in place.
    Append {
        accumulator: StepId,
        list: StepId,
    },
    /// `cel.@mapInsert(accumulator, key, value)`, applied in place.
    Insert {
        accumulator: StepId,
        key: StepId,
        value: StepId,
    },
    /// `cel.@mapInsert(accumulator, map)`, applied in place.
    InsertAll {
        accumulator: StepId,
        map: StepId,
    },
    /// `element in [constants]`.
    Member {
        element: StepId,
        set: Map<'static>,
    },
    /// `optional.or(optional)` or, with a plain value, `optional.orValue(value)`.
    OptionalOr {
        optional: StepId,
        other: StepId,
        plain: bool,
    },
    List(Vec<Element>),
    Map(Vec<Entry<StepId>>),
    Object {
        name: Arc<str>,
        fields: Vec<Entry<Arc<str>>>,
    },
    Fold(Box<Fold>),
}

/// An element of a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element {
    pub(super) value: StepId,
    pub(super) optional: bool,
}

/// An entry of a map, or a field of an object.
#[derive(Clone, Debug)]
pub(super) struct Entry<K> {
    pub(super) key: K,
    pub(super) value: StepId,
    pub(super) optional: bool,
}

/// A call to a function.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) function: Arc<str>,
    pub(super) arguments: Vec<StepId>,
    /// The overloads that can apply at run time.
    pub(super) candidates: Vec<Arc<Overload>>,
    /// Whether the arguments after a failed argument are still evaluated.
    pub(super) eager: bool,
    pub(super) regex: Option<Regexp>,
    pub(super) price: CallPrice,
}

/// A comprehension that is prepared for evaluation.
#[derive(Debug)]
pub(super) struct Fold {
    /// The slot that contains the variables of the comprehension.
    pub(super) slot: usize,
    pub(super) two_variables: bool,
    pub(super) range: StepId,
    pub(super) initial: StepId,
    pub(super) condition: StepId,
    pub(super) step: StepId,
    pub(super) result: StepId,
}

/// A variable or value with its selections and indices.
#[derive(Debug)]
pub(super) struct Attribute {
    /// The node of the variable or value.
    pub(super) node: u32,
    pub(super) root: Root,
    pub(super) qualifiers: Vec<Qualifier>,
    /// The identifier of the last selection. The cost is tracked under this identifier.
    pub(super) id: u32,
}

#[derive(Clone, Debug)]
pub(super) enum Root {
    /// A variable of the caller.
    Global(Arc<str>),
    /// A variable of a comprehension.
    Local { slot: usize, variable: Local },
    /// The result of a step.
    Operand(StepId),
    /// One of two attributes, chosen by a condition.
    Conditional { condition: StepId, truthy: AttributeId, falsy: AttributeId },
}

/// A variable of a comprehension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Local {
    Accumulator,
    /// The accumulator. Its value is moved out, because it is not read again before it is set.
    TakenAccumulator,
    First,
    Second,
}

/// A selection or index.
#[derive(Clone, Debug)]
pub(super) struct Qualifier {
    /// The node of the selection.
    pub(super) id: u32,
    pub(super) key: Key,
    /// Whether the selection is `.?field` or `[?index]`.
    pub(super) optional: bool,
    /// Whether the selection is the operand of `has()`.
    pub(super) test: bool,
}

/// The key that a selection or index selects.
#[derive(Clone, Debug)]
pub(super) enum Key {
    Constant(Value<'static>),
    /// The value of an attribute. `bare` is set for a variable of type `dyn` without selections.
    Attribute {
        attribute: AttributeId,
        bare: bool,
    },
    /// The result of a step.
    Step(StepId),
}

impl Plan {
    pub(super) fn step(&self, id: StepId) -> Option<&Step> {
        self.steps.get(id.0 as usize)
    }

    pub(super) fn attribute(&self, id: AttributeId) -> Option<&Attribute> {
        self.attributes.get(id.0 as usize)
    }
}
