//! Compares managedFields with Kubernetes' own packages, and tests hostile input.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test may panic")]

mod answers;
mod facts;
mod free_form;
mod hostile;
mod laws;
mod schemas;
mod writes;
