//! Reports the progress of a run.

/// The progress of a run and its current stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The current stage.
    pub stage: Stage,
    /// The number of completed objects, checks, or findings in the stage.
    pub done: u64,
    /// The total number of objects, checks, or findings in the stage, if known.
    pub total: Option<u64>,
    /// The number of objects checked so far.
    pub objects: u64,
    /// The number of calls to webhooks so far.
    pub calls: u64,
}

/// A stage of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the parts of a run")]
pub enum Stage {
    /// The configurations are examined.
    Configurations,
    /// The side effects of each webhook are examined.
    Effects,
    /// The objects of the corpus are sent to the webhooks.
    Objects,
    /// The webhooks are examined one at a time.
    Webhooks,
    /// The objects of the findings are minimized.
    Shrinking,
    /// The webhooks are examined during disruptions.
    Interventions,
}
