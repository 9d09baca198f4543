//! Implements the kinds of `policy`.

pub(crate) mod pod_disruption_budget;
