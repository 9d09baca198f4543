//! Runs the tests of the fakes in one binary.

mod admin;
mod answers;
mod behaviors;
mod catalog;
mod documented;
mod files;
mod limits;
mod misbehaving;
mod remembering;
mod scripts;
mod served;
mod transport;
