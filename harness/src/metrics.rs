//! The admission metrics of a server: [`Record`]s, counted.

use crate::event::Record;

/// The admission metrics of one server, with kube-apiserver's names and labels.
#[derive(Debug, Default)]
pub struct Metrics;

impl Metrics {
    /// Counts what happened to one request.
    pub fn observe(&self, _operation: crate::attributes::Operation, _record: &Record) {}

    /// The metrics in Prometheus' text format.
    pub fn render(&self) -> String {
        String::new()
    }
}
