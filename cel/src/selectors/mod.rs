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
    /// Whether the field must differ from the value, instead of being equal to it.
    pub negated: bool,
    /// The value that the field is compared with.
    pub value: String,
}

/// A requirement of a label selector.
///
/// Source: apimachinery pkg/labels/selector.go, `Requirement`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LabelRequirement {
    /// The label key.
    pub key: String,
    /// The operator that compares the label with the values.
    pub operator: LabelOperator,
    /// The sorted values: one for most operators, any number for `In` and `NotIn`, and no values for `Exists` and
    /// `DoesNotExist`.
    pub values: Vec<String>,
}

/// The operator of a label requirement.
///
/// Source: apimachinery pkg/selection/operator.go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LabelOperator {
    /// `!key`: the label does not exist.
    DoesNotExist,
    /// `key=value`: the label has the value.
    Equals,
    /// `key==value`: the label has the value.
    DoubleEquals,
    /// `key in (value)`: the label has one of the values.
    In,
    /// `key!=value`: the label does not have the value.
    NotEquals,
    /// `key notin (value)`: the label does not have any of the values.
    NotIn,
    /// `key`: the label exists.
    Exists,
    /// `key>value`: the label is an integer greater than the value.
    GreaterThan,
    /// `key<value`: the label is an integer less than the value.
    LessThan,
}
