//! The Common Expression Language as compiled, evaluated, and charged by kube-apiserver 1.37.
//!
//! An [`Environment`] declares variables, types, and functions. [`Environment::compile`] parses and checks an
//! expression and returns a [`Program`], or kube-apiserver's errors. [`Program::evaluate`] returns a value or
//! an error, and the cost of the evaluation.
//!
//! The crate does not depend on webhooks: [`kubernetes`] provides Kubernetes' libraries by version, and the
//! caller provides the variables.
//!
//! The pipeline has one module per step; each imports only from the modules above it:
//!
//! - [`types`] and [`value`]: static types, and values at run time;
//! - [`schema`]: types and values of custom resources, from their OpenAPI schemas;
//! - [`regexp`]: regular expressions in Go's syntax;
//! - [`function`]: overloads: their signature, implementation, and cost;
//! - `ast` and `parser`: the tree of an expression, and syntax errors with their position;
//! - `checker`: assigns a type to every node and an overload to every call;
//! - `program`: prepares a checked tree for evaluation, and evaluates it with its cost;
//! - `library`: the functions, with one module per library.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "an operation names the types of values that it knows; all others are one case"
)]

pub mod authorization;
pub mod environment;
pub mod estimate;
pub mod function;
pub mod kubernetes;
pub mod names;
pub mod quantity;
pub mod regexp;
pub mod schema;
pub mod selectors;
pub mod types;
pub mod value;

mod ast;
mod checked;
mod checker;
mod declarations;
mod formats;
mod go;
mod library;
mod parser;
mod program;
mod semver;
mod source;
mod stack;
mod well_known;

pub use program::{COST_LIMIT, Evaluation, Limits, Observation, Program, Variables};
pub use source::{Issue, IssueReport};
