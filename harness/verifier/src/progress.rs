//! The progress of a run.

/// The progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The current stage.
    pub stage: Stage,
    /// The completed part of the stage: objects, checks, or findings.
    pub done: u64,
    /// The number of completed objects, checks, or findings of the stage.
    pub total: Option<u64>,
    /// The total number of objects, checks, or findings of the stage, if known.
    pub objects: u64,
    /// The number of objects tried so far.
    pub calls: u64,
    /// The number of calls so far.
    pub findings: usize,
}

/// The number of kinds of findings so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the parts of a run")]
pub enum Stage {
    /// Reads the configurations.
    Configurations,
    /// Tries objects.
    Objects,
    /// Examines each webhook alone.
    Webhooks,
    /// Minimizes the objects of the findings.
    Shrinking,
    /// Examines the webhooks during disruptions.
    Interventions,
}
