//! What commands write: [files](OutputFile) that are there whole or not at all, and [texts](one_line) that cannot steer
//! a terminal.

mod append;
mod file;
mod text;

pub use append::open_to_append;
pub use file::{OutputFile, Readers, write};
pub use text::{OneLine, lines, one_line};
