//! Defines the steps of feature files.

#![expect(clippy::needless_pass_by_value, reason = "cucumber passes the captures of a step by value")]

mod access;
mod annotation;
mod api;
mod apply;
mod audit;
mod calls;
mod cluster;
mod configuration;
mod connection;
mod container;
mod containment;
mod conversion;
mod document;
mod endpoint;
mod failure;
mod fault;
mod help;
mod hints;
mod invalid_fields;
mod loaded;
pub(crate) mod metrics;
mod names;
mod namespaces;
mod not_called;
mod order;
mod outcome;
pub(crate) mod parameter;
mod policies;
mod policy_notes;
mod rejection;
mod request;
mod resource;
mod service;
mod skipped_selectors;
mod verify;
mod webhook;
pub(crate) mod world;

use serde_json::Value;

pub(crate) use document::{file_error, objects_of, yaml_of};
pub(crate) use failure::{HELP, NOTE};
pub(crate) use help::STEPS;

/// Returns whether `actual` contains `expected`, as the steps that end with `contains:` define it.
pub(crate) fn contains(expected: &Value, actual: &Value) -> bool {
    containment::differences(expected, actual).is_empty()
}

/// The description of a step that `admit steps` prints.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepHelp {
    /// The keyword: `Given`, `When`, or `Then`.
    pub(crate) keyword: &'static str,
    /// The step as a cucumber expression.
    pub(crate) expression: &'static str,
    /// The effect of the step, on one line.
    pub(crate) help: &'static str,
    /// An example, with a doc string or table if the step requires one.
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
