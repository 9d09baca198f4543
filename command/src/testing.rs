//! Provides parts of the command as functions for the property tests of the package `tests`.
//!
//! The functions do not start processes and do not print anything.

use std::path::Path;
use std::sync::LazyLock;

use clap::Parser as _;
use cucumber::World as _;
use cucumber::step::Collection;

use crate::screen::Marks;
use crate::steps::world::World;
use crate::{Admit, Command, Failure, run};

/// The collection of all steps. It is created only once, because each step compiles an expression.
static STEPS: LazyLock<Collection<World>> = LazyLock::new(World::collection);

/// Returns the output of `admit review` with these arguments.
///
/// # Errors
/// Returns the failure that the command ends with, or a usage failure if clap rejects the arguments.
pub async fn review(arguments: &[String]) -> Result<String, Failure> {
    let words = ["admit", "review"].into_iter().chain(arguments.iter().map(String::as_str));
    let admit = Admit::try_parse_from(words).map_err(Failure::usage)?;
    let Command::Review(review) = admit.command else {
        return Err(Failure::usage("this is not `admit review`"));
    };
    let mut printed = String::new();
    let print = |text: &str| {
        printed.push_str(text);
        Ok(())
    };
    review.run_printing(Marks::ASCII_DECISIONS, print).await?;
    Ok(printed)
}

/// Returns the number of scenarios in a file that `admit run --tags TAGS` selects; all steps must be defined.
///
/// # Errors
/// Returns an error if the file is not a feature, a step is not defined, or the tag expression is invalid.
pub fn features(file: &Path, tags: Option<&str>) -> Result<usize, Failure> {
    run::selected(file, tags, &STEPS)
}
