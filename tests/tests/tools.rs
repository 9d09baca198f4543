//! Runs the tests of the suite's tools in one binary.

#[path = "../helpers/machine.rs"]
mod machine;

mod catalog;
mod faults;
mod openapi_documents;
mod process_cleanup;
