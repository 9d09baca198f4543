//! The descriptions that `admit steps` prints.

mod calls;
mod requests;
mod results;
mod state;
mod webhooks;

use std::sync::LazyLock;

use super::StepHelp;

/// All steps, in the order of a scenario.
pub(crate) static STEPS: LazyLock<Vec<StepHelp>> =
    LazyLock::new(|| [webhooks::STEPS, state::STEPS, requests::STEPS, results::STEPS, calls::STEPS].concat());
