//! Tests fakes and `admit verify` in a real cluster: deployed, called by its API server, and removed cleanly.
//!
//! Uses the cluster from the kubeconfig in `ADMIT_TEST_CLUSTER`. The images `admit-fakes` and `admit` must be on every
//! node. Needs kubectl 1.36 to 1.38. Without the variable, the tests are skipped with a message; they never use any
//! other cluster.

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
