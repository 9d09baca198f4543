//! The Common Expression Language, with the results, errors, and costs of kube-apiserver 1.37.
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
//! - `ast` and `parser`: the tree of an expression, and syntax errors with their position;
//! - [`types`] and [`schema`]: static types, and the OpenAPI schemas of custom resources;
//! - [`regexp`]: regular expressions in Go's syntax;
//! - [`value`]: values at run time;
//! - [`function`]: overloads: their signature, implementation, and cost;
//! - `library`: the functions, with one module per library;
//! - `checker`: assigns a type to every node and an overload to every call;
//! - `program`: prepares a checked tree for evaluation, and evaluates it with its cost;
//! - [`environment`]: declares variables, types, and functions, and compiles expressions;
//! - [`declared_type`] and [`kubernetes`]: the types of custom resources, and Kubernetes' libraries by version.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "an operation names the types of values that it knows; all others are one case"
)]

pub mod authorization;
pub mod declared_type;
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
mod error;
mod formats;
mod library;
mod parser;
mod program;
mod semver;
mod source;
mod stack;

pub use library::authorizer::{authorizer_value, request_resource_value};
pub use program::{COST_LIMIT, Evaluation, Limits, Members, Observation, Program, SHALLOW, Variables};
pub use source::{Issue, IssueReport, UndefinedField};
