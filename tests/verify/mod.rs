//! Tests every check of `admit verify` with a webhook that it must report and a webhook that it must not report.

#![expect(clippy::indexing_slicing, reason = "a wrong index fails the test")]
#![expect(clippy::expect_used, reason = "a test may panic about a fake that cannot start")]

mod advice;
mod baseline;
mod cluster_fixture;
mod command;
mod conditions;
mod configuration;
mod configurations;
mod connections;
mod consequences;
mod contract;
mod conversion;
mod conversion_command;
mod corpus;
mod determinism;
mod disclosure;
mod documentation;
mod environment;
mod features;
mod idempotence;
mod interruption;
mod interventions;
mod job;
mod loops;
mod one_defect;
mod patches;
mod proof_features;
mod proofs;
mod quality;
mod quick;
mod recording;
mod reinvocation;
mod reports;
mod requests;
mod returning;
mod robustness;
mod rotation;
mod sides;
mod stopping;
mod together;
