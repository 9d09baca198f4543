//! Fakes, and what verifies webhooks, in a real cluster: put there, called by its API server, taken out without a trace.
//!
//! Runs on the cluster of the kubeconfig that `ADMIT_TEST_CLUSTER` names, where the images `admit-fakes` and `admit` must
//! be on every node; needs kubectl 1.36 to 1.38. Without the variable it is skipped and says so: no other cluster is
//! touched.

#![expect(clippy::indexing_slicing, reason = "a wrong index fails the test")]
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test that cannot go on must stop; it says what it does, and how long a real cluster takes"
)]

mod fakes;
mod fixture;
mod verify_job;
