//! The spec of a template as messages show it.

use kubernetes_types::schema::Type;
use serde_json::Value;

use super::super::fields::get;
use super::super::shown::{Kind, Struct, structure};

const SELECTORS: Kind =
    Kind::List(&[("CEL", "cel", Kind::Maybe(&[("Expression", "expression", Kind::Text)]))]);
const TOLERATIONS: Kind = Kind::List(&[
    ("Key", "key", Kind::Text),
    ("Operator", "operator", Kind::Text),
    ("Value", "value", Kind::Text),
    ("Effect", "effect", Kind::Text),
    ("TolerationSeconds", "tolerationSeconds", Kind::Plain),
]);
const CAPACITY: Kind = Kind::Maybe(&[("Requests", "requests", Kind::Plain)]);
const EXACTLY: Struct = &[
    ("DeviceClassName", "deviceClassName", Kind::Text),
    ("Selectors", "selectors", SELECTORS),
    ("AllocationMode", "allocationMode", Kind::Text),
    ("Count", "count", Kind::Number),
    ("AdminAccess", "adminAccess", Kind::Plain),
    ("Tolerations", "tolerations", TOLERATIONS),
    ("Capacity", "capacity", CAPACITY),
    ("DerivedAttributes", "derivedAttributes", Kind::Plain),
];
const ALTERNATIVE: Struct = &[
    ("Name", "name", Kind::Text),
    ("DeviceClassName", "deviceClassName", Kind::Text),
    ("Selectors", "selectors", SELECTORS),
    ("AllocationMode", "allocationMode", Kind::Text),
    ("Count", "count", Kind::Number),
    ("Tolerations", "tolerations", TOLERATIONS),
    ("Capacity", "capacity", CAPACITY),
    ("DerivedAttributes", "derivedAttributes", Kind::Plain),
];
const REQUEST: Struct = &[
    ("Name", "name", Kind::Text),
    ("Exactly", "exactly", Kind::Maybe(EXACTLY)),
    ("FirstAvailable", "firstAvailable", Kind::List(ALTERNATIVE)),
];
const CONSTRAINT: Struct = &[
    ("Requests", "requests", Kind::Plain),
    ("MatchAttribute", "matchAttribute", Kind::Plain),
    ("DistinctAttribute", "distinctAttribute", Kind::Plain),
];
const CONFIGURATION: Struct = &[
    ("Requests", "requests", Kind::Plain),
    (
        "Opaque",
        "opaque",
        Kind::Maybe(&[("Driver", "driver", Kind::Text), ("Parameters", "parameters", Kind::Plain)]),
    ),
];
const CLAIM: Struct = &[
    ("Requests", "requests", Kind::List(REQUEST)),
    ("Constraints", "constraints", Kind::List(CONSTRAINT)),
    ("Config", "config", Kind::List(CONFIGURATION)),
];
const SPEC: Struct = &[("Devices", "devices", Kind::Inner(CLAIM))];

/// The members of the metadata stand in front of the others.
pub(super) fn template_spec(spec: &Value) -> String {
    let own = format!("\"Spec\":{}", structure(SPEC, get(spec, "spec")));
    let metadata = Type::of_metadata().in_order(get(spec, "metadata"));
    match metadata.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
        None | Some("") => format!("{{{own}}}"),
        Some(members) => format!("{{{members},{own}}}"),
    }
}
