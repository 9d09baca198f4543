//! Reads the fields that a fault in the catalog sets in an entry of a fakes file.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::admission_registration::{
    MatchCondition, MatchPolicy, ReinvocationPolicy, Rule, Selector, SideEffects,
};
use crate::{Behavior, Certificate, Connection, Family, Fault, HttpVersions};

/// The fields that a fault sets in an entry; fields of the entry itself take precedence.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct FaultFields {
    pub(super) behavior: Option<Behavior>,
    pub(super) certificate: Option<Certificate>,
    pub(super) rotate: Option<Certificate>,
    pub(super) connection: Option<Connection>,
    pub(super) http: Option<HttpVersions>,
    pub(super) client_config: Option<Map<String, Value>>,
    pub(super) rules: Option<Vec<Rule>>,
    pub(super) object_selector: Option<Selector>,
    pub(super) match_conditions: Option<Vec<MatchCondition>>,
    pub(super) match_policy: Option<MatchPolicy>,
    pub(super) side_effects: Option<SideEffects>,
    pub(super) timeout_seconds: Option<u8>,
    pub(super) admission_review_versions: Option<Vec<String>>,
    pub(super) reinvocation_policy: Option<ReinvocationPolicy>,
}

impl FaultFields {
    /// Returns the fields that `fault` sets.
    pub(super) fn from_fault(fault: &Fault) -> Self {
        let fields: Self = serde_json::from_value(Value::Object(fault.fake.clone()))
            .unwrap_or_else(|error| fault.invalid(&error));
        // A conversion webhook is not called for admission.
        if fault.family == Family::Conversion { Self { rules: Some(Vec::new()), ..fields } } else { fields }
    }
}
