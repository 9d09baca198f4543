//! What commands write: [files](OutputFile) that are there whole or not at all, and [texts](one_line) that cannot steer
//! a terminal; and what they [read], which may never end.

mod append;
mod file;
mod input;
mod text;

pub use append::{open_to_append, truncate_to_last_line};
pub use file::{OutputFile, Readers, write};
pub use input::{MAX_FILE, read, read_regular};
pub use text::{OneLine, json, lines, one_line, styled, xml};
