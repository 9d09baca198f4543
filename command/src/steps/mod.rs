//! What the sentences of a feature file do: one file per noun.

#![expect(clippy::needless_pass_by_value, reason = "cucumber hands over what it captured in a sentence")]

mod access;
mod api;
mod audit;
mod calls;
mod cluster;
mod configuration;
mod connection;
mod containment;
mod conversion;
mod document;
mod endpoint;
mod failure;
mod fault;
mod help;
pub(crate) mod metrics;
mod names;
mod namespaces;
mod outcome;
mod parameter;
mod request;
mod resource;
mod service;
mod verify;
mod webhook;
pub(crate) mod world;

use serde_json::Value;

pub(crate) use help::STEPS;

/// Whether `actual` has all of `expected`, as steps that say `contains:` see it.
pub(crate) fn contains(expected: &Value, actual: &Value) -> bool {
    containment::differences(expected, actual).is_empty()
}

/// What `admit steps` prints of one step, and what tests hold every step to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepHelp {
    /// `Given`, `When` or `Then`.
    pub(crate) keyword: &'static str,
    /// The step as a cucumber expression.
    pub(crate) expression: &'static str,
    /// One line: what it does.
    pub(crate) help: &'static str,
    /// A sentence that matches it, with its doc string or table if it takes one.
    pub(crate) example: &'static str,
}

const fn given(expression: &'static str, help: &'static str, example: &'static str) -> StepHelp {
    StepHelp { keyword: "Given", expression, help, example }
}

const fn when(expression: &'static str, help: &'static str, example: &'static str) -> StepHelp {
    StepHelp { keyword: "When", expression, help, example }
}

const fn then(expression: &'static str, help: &'static str, example: &'static str) -> StepHelp {
    StepHelp { keyword: "Then", expression, help, example }
}
