//! Parts of the command as functions, for the laws of the package `tests`: no process, nothing on standard output.

use std::path::Path;
use std::sync::LazyLock;

use clap::Parser as _;
use cucumber::World as _;
use cucumber::step::Collection;

use crate::screen::Marks;
use crate::steps::world::World;
use crate::{Admit, Command, Failure, run};

/// Made once: it compiles an expression for each step.
static STEPS: LazyLock<Collection<World>> = LazyLock::new(World::collection);

/// What `admit review` with these arguments prints.
///
/// # Errors
/// The failure that the command ends with; one of usage where clap does not understand the arguments.
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

/// How many scenarios `admit run --tags TAGS` selects in a file, all of whose steps are known.
///
/// # Errors
/// The file is no feature, a sentence is no step, or the tag expression is none.
pub fn features(file: &Path, tags: Option<&str>) -> Result<usize, Failure> {
    run::selected(file, tags, &STEPS)
}
