//! Compares patches with recorded results; one binary contains all these tests.

mod json_patch;
mod strategic_merge;
