//! Label and field selectors in the syntax of `kubectl`: `app in (a,b),!skip` and `spec.nodeName=node-1`.

mod fields;
mod labels;

pub(crate) use fields::parse_fields;
pub(crate) use labels::parse_labels;

/// A requirement of a field selector.
///
/// Source: apimachinery pkg/fields/requirements.go, `Requirement`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldRequirement {
    /// The path of the field, such as `spec.nodeName`.
    pub field: String,
    /// Whether the field must differ from the value instead of being equal.
    pub negated: bool,
    /// The value.
    pub value: String,
}

/// A requirement of a label selector.
///
/// Source: apimachinery pkg/labels/selector.go, `Requirement`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LabelRequirement {
    /// The label.
    pub key: String,
    /// The operator.
    pub operator: LabelOperator,
    /// The sorted values: one for most operators, any number for `In` and `NotIn`, none for `Exists` and
    /// `DoesNotExist`.
    pub values: Vec<String>,
}

/// The operator of a label requirement.
///
/// Source: apimachinery pkg/selection/operator.go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LabelOperator {
    /// `!key`
    DoesNotExist,
    /// `key=value`
    Equals,
    /// `key==value`
    DoubleEquals,
    /// `key in (value)`
    In,
    /// `key!=value`
    NotEquals,
    /// `key notin (value)`
    NotIn,
    /// `key`
    Exists,
    /// `key>value`
    GreaterThan,
    /// `key<value`
    LessThan,
}
