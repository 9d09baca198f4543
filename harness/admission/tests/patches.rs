//! The tests of patches against recorded answers, in one binary.

mod json_patch;
mod strategic_merge;
