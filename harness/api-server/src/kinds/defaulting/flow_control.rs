//! Sets the defaults of API Priority and Fairness objects.

use serde_json::Value;

use crate::kinds::common::defaults::{fill, fill_zero, with};

/// Sets the defaults of a `FlowSchema`.
///
/// Source: kubernetes pkg/apis/flowcontrol/v1/defaults.go, `SetDefaults_FlowSchemaSpec`.
pub(crate) fn flow_schema(object: &mut Value) {
    with(object, "spec", |spec| fill_zero(spec, "matchingPrecedence", 1000));
}

/// Sets the defaults of a `PriorityLevelConfiguration`.
///
/// Source: kubernetes pkg/apis/flowcontrol/v1/defaults.go.
pub(crate) fn priority_level_configuration(object: &mut Value) {
    with(object, "spec", |spec| {
        with(spec, "exempt", |exempt| {
            fill(exempt, "nominalConcurrencyShares", 0);
            fill(exempt, "lendablePercent", 0);
        });
        with(spec, "limited", |limited| {
            fill(limited, "nominalConcurrencyShares", 30);
            fill(limited, "lendablePercent", 0);
            with(limited, "limitResponse", |response| {
                with(response, "queuing", |queuing| {
                    fill_zero(queuing, "handSize", 8);
                    fill_zero(queuing, "queues", 64);
                    fill_zero(queuing, "queueLengthLimit", 50);
                });
            });
        });
    });
}
