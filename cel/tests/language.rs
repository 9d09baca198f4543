//! The tests of the language, in one binary.

mod authorizer;
mod expressions;
mod laws;
mod properties;
mod runaway;
