//! Implements `PriorityLevelConfiguration` objects.

use kubernetes_types::json;
use kubernetes_types::json::at;
use serde_json::{Value, json};

use crate::kinds::common::cells::{Context, age_of, name, number, row};
use crate::kinds::common::change::Change;
use crate::kinds::common::defaults::{fill, fill_zero, with};
use crate::kinds::common::fields::{Errors, Path, get, int, set, text};
use crate::kinds::common::formats;
use crate::kinds::flowcontrol::shared;
use crate::kinds::flowcontrol::shared::{semantically_equal_specs, validate_conditions};
use crate::kinds::kind::{Kind, StatusKeeps};

/// The behavior of `PriorityLevelConfiguration` objects.
pub(crate) const KIND: Kind = Kind {
    group: "flowcontrol.apiserver.k8s.io",
    resource: "prioritylevelconfigurations",
    kind: "PriorityLevelConfiguration",
    status_keeps: StatusKeeps::AllMetadata,
    set_defaults: Some(set_defaults),
    validate,
    validate_subresources: &[("status", shared::conditions)],
    cells: Some(cells),
    ..Kind::COUNTED
};

/// Sets the defaults of a `PriorityLevelConfiguration`.
///
/// Source: kubernetes pkg/apis/flowcontrol/v1/defaults.go.
pub(crate) fn set_defaults(object: &mut Value) {
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

/// Validates a `PriorityLevelConfiguration`.
///
/// Source: kubernetes pkg/apis/flowcontrol/validation/validation.go, `ValidatePriorityLevelConfiguration`;
/// `pkg/apis/flowcontrol/v1/zz_generated.validations.go`.
/// Rule: VLO-43.
pub(crate) fn validate(errors: &mut Errors, object: &Value, _: Option<Change<'_>>) {
    const PRESERVE_ZERO_CONCURRENCY_SHARES: &str =
        "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares";
    let metadata = get(object, "metadata");
    if get(metadata, "annotations").get(PRESERVE_ZERO_CONCURRENCY_SHARES).is_some() {
        let path = Path::new("metadata");
        errors.forbidden(
            &path.child("annotations"),
            format!("annotation '{PRESERVE_ZERO_CONCURRENCY_SHARES}' is forbidden"),
        );
    }
    let name = text(metadata, "name");
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    let kind = text(spec, "type");
    if (name == "exempt") != (kind == "Exempt") {
        let why = "must be 'Exempt' if and only if `name` is 'exempt'";
        errors.invalid_text(&path.child("type"), kind, why);
    }
    match kind {
        "Exempt" => {
            if let Some(exempt) = set(spec, "exempt") {
                let path = path.child("exempt");
                not_negative(errors, &path, exempt);
                percentage(errors, &path, exempt);
            }
        }
        "Limited" => {
            if let Some(limited) = set(spec, "limited") {
                self::limited(errors, &path.child("limited"), limited);
            }
        }
        "" => {}
        _ => errors.unsupported(&path.child("type"), kind, &["Exempt", "Limited"]),
    }
    if let Some(fixed) = fixed_level(name) {
        let (is_fixed, which) = if name == "exempt" {
            (kind == "Exempt" && set(spec, "limited").is_none(), " except the 'spec.exempt' field")
        } else {
            (semantically_equal_specs(object, &fixed), "")
        };
        if !is_fixed {
            let why = format!("spec of '{name}'{which} must equal the fixed value");
            errors.invalid_structure(&path, "flowcontrol.PriorityLevelConfigurationSpec", spec, why);
        }
    }
    validate_conditions(errors, object);
    generated_for_level(errors, &path, spec);
}

fn not_negative(errors: &mut Errors, path: &Path<'_>, owner: &Value) {
    let field = "nominalConcurrencyShares";
    if let Some(shares) = int(owner, field).filter(|shares| *shares < 0) {
        errors.invalid(&path.child(field), shares, "must be a non-negative integer");
    }
}

fn percentage(errors: &mut Errors, path: &Path<'_>, owner: &Value) {
    if let Some(percent) = int(owner, "lendablePercent").filter(|percent| !(0..=100).contains(percent)) {
        errors.invalid(&path.child("lendablePercent"), percent, formats::between(0, 100));
    }
}

/// Validates the configuration of a limited priority level.
///
/// Source: kubernetes pkg/apis/flowcontrol/validation/validation.go, `ValidateLimitedPriorityLevelConfiguration`.
fn limited(errors: &mut Errors, path: &Path<'_>, limited: &Value) {
    not_negative(errors, path, limited);
    let response_path = path.child("limitResponse");
    let response = get(limited, "limitResponse");
    match text(response, "type") {
        "Queue" => {
            if let Some(queuing) = set(response, "queuing") {
                self::queuing(errors, &response_path.child("queuing"), queuing);
            }
        }
        "" | "Reject" => {}
        kind => errors.unsupported(&response_path.child("type"), kind, &["Queue", "Reject"]),
    }
    percentage(errors, path, limited);
    let field = "borrowingLimitPercent";
    if let Some(percent) = int(limited, field).filter(|percent| *percent < 0) {
        errors.invalid(&path.child(field), percent, "if specified, must be a non-negative integer");
    }
}

/// Validates the queuing configuration of a priority level.
///
/// Source: kubernetes pkg/apis/flowcontrol/validation/validation.go, `ValidatePriorityLevelQueuingConfiguration`;
/// apiserver pkg/util/shufflesharding/dealer.go, `RequiredEntropyBits`.
fn queuing(errors: &mut Errors, path: &Path<'_>, queuing: &Value) {
    const PRIORITY_LEVEL_CONFIGURATION_QUEUING_MAX_QUEUES: i64 = 10_000_000;
    const MAX_HASH_BITS: f64 = 60.0;
    let number = |field: &str| int(queuing, field).unwrap_or(0);
    let (limit, queues, hand) = (number("queueLengthLimit"), number("queues"), number("handSize"));
    if limit <= 0 {
        errors.invalid(&path.child("queueLengthLimit"), limit, "must be positive");
    }
    if queues <= 0 {
        errors.invalid(&path.child("queues"), queues, "must be positive");
    } else if queues > PRIORITY_LEVEL_CONFIGURATION_QUEUING_MAX_QUEUES {
        errors.invalid(
            &path.child("queues"),
            queues,
            format!("must not be greater than {PRIORITY_LEVEL_CONFIGURATION_QUEUING_MAX_QUEUES}"),
        );
    }
    let path = path.child("handSize");
    let float = |number: i64| i32::try_from(number).map_or(f64::MAX, f64::from);
    if hand <= 0 {
        errors.invalid(&path, hand, "must be positive");
    } else if hand > queues {
        errors.invalid(&path, hand, format!("should not be greater than queues ({queues})"));
    } else if (float(queues).log2() * float(hand)).ceil() > MAX_HASH_BITS {
        let why = format!(
            "required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {MAX_HASH_BITS}"
        );
        errors.invalid(&path, hand, why);
    }
}

/// Validates a priority level as upstream's generated validation does.
fn generated_for_level(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    let kind = text(spec, "type");
    if kind != "Exempt" && set(spec, "exempt").is_some() {
        errors.forbidden_by_type(&path.child("exempt"));
    }
    let limited_path = path.child("limited");
    let limited = set(spec, "limited");
    match limited {
        None if kind == "Limited" => errors.required_by_type(&limited_path),
        Some(_) if kind != "Limited" => errors.forbidden_by_type(&limited_path),
        _ => {}
    }
    if kind.is_empty() {
        errors.required_by_type(&path.child("type"));
    }
    let Some(limited) = limited else { return };
    let (path, response) = (limited_path.child("limitResponse"), get(limited, "limitResponse"));
    let kind = text(response, "type");
    match set(response, "queuing") {
        None if kind == "Queue" => errors.required_by_type(&path.child("queuing")),
        Some(_) if kind != "Queue" => errors.forbidden_by_type(&path.child("queuing")),
        _ => {}
    }
    if kind.is_empty() {
        errors.required_by_type(&path.child("type"));
    }
}

/// Returns the immutable spec of a mandatory priority level; `None` for other names.
///
/// Source: apiserver pkg/apis/flowcontrol/bootstrap/default.go, `MandatoryPriorityLevelConfigurations`.
fn fixed_level(name: &str) -> Option<Value> {
    match name {
        "exempt" => Some(json!({"spec": {"type": "Exempt"}})),
        "catch-all" => Some(json!({"spec": {"type": "Limited", "limited": {
            "nominalConcurrencyShares": 5, "lendablePercent": 0, "limitResponse": {"type": "Reject"},
        }}})),
        _ => None,
    }
}

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let limited = at(object, &["spec", "limited"]);
    let queuing = at(limited, &["limitResponse", "queuing"]);
    let number = |parent: &Value, field| {
        if parent.is_null() { Value::from("<none>") } else { number(parent, &[field]).into() }
    };
    row![
        name(object),
        json::text(object, &["spec", "type"]),
        number(limited, "nominalConcurrencyShares"),
        number(queuing, "queues"),
        number(queuing, "handSize"),
        number(queuing, "queueLengthLimit"),
        age_of(object, context),
    ]
}
