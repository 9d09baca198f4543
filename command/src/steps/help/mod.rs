//! Collects the descriptions of steps that `admit steps` prints.

mod calls;
mod requests;
mod results;
mod state;
mod webhooks;

use std::sync::LazyLock;

use super::StepHelp;

/// The descriptions of all steps, in the order in which scenarios usually use them.
pub(crate) static STEPS: LazyLock<Vec<StepHelp>> =
    LazyLock::new(|| [webhooks::STEPS, state::STEPS, requests::STEPS, results::STEPS, calls::STEPS].concat());
