//! Provides input and output for commands: atomic [files](OutputFile), [strings](one_line) that cannot control a
//! terminal, and bounded [reads](read).

mod append;
mod file;
mod input;
mod text;

pub use append::{open_to_append, truncate_to_last_line};
pub use file::{OutputFile, Readers, write};
pub use input::{MAX_FILE, read, read_for_server, read_regular};
pub use text::{OneLine, json, lines, one_line, styled, without_error_numbers, xml};
