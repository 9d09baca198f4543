//! How far a run has come.

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What it does.
    pub stage: Stage,
    /// How much of that is done: objects, checks or findings.
    pub done: u64,
    /// Of how much, if that is known.
    pub total: Option<u64>,
    /// Objects that were tried.
    pub objects: u64,
    /// Calls that were made.
    pub calls: u64,
    /// Kinds of findings.
    pub findings: usize,
}

/// What a run does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the parts of a run")]
pub enum Stage {
    /// Reads the configurations.
    Configurations,
    /// Tries objects.
    Objects,
    /// Looks at each webhook alone.
    Webhooks,
    /// Makes the objects of the findings smaller.
    Shrinking,
    /// Looks at the webhooks while something is done to them.
    Interventions,
}
