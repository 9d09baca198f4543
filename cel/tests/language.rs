//! Runs all tests of the expression language in one binary.

mod authorizer;
mod expressions;
mod laws;
mod properties;
mod runaway;
