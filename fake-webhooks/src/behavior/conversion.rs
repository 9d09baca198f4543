//! Defines the parameters of `convert`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Pointer;

/// The parameters of `convert`. The default sets the requested version and changes nothing else.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Convert {
    /// Fields that move to another path in some version.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<FieldMove>,
    /// An annotation that records the versions of each object in order: `v1,v2,v1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trail: Option<String>,
    /// The supported versions without the group; an empty list supports all. Other versions are rejected.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<String>,
    /// How the fake rejects an unsupported version.
    #[serde(skip_serializing_if = "ConversionRejection::is_failure")]
    pub unknown: ConversionRejection,
    /// How the fake rejects objects that already have the requested version; if `None`, it returns them unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same: Option<ConversionRejection>,
    /// The version to convert objects to instead of the requested version, without the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// How multiple objects in one review are converted.
    #[serde(skip_serializing_if = "ConvertedLists::is_in_order")]
    pub lists: ConvertedLists,
    /// A field that is copied from the previous object in the review if an object does not have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carries: Option<Pointer>,
    /// The maximum number of objects in one review; a review with more objects is rejected with status 413.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Required fields; if an object does not have one of them, the fake returns HTTP 500, as after a panic.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Pointer>,
    /// The message of a failure. The fake returns the failure instead of converted objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail: Option<String>,
    /// Values to set in every converted object by JSON pointer; null removes a field.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub objects: BTreeMap<Pointer, Value>,
    /// Values to set in the complete response by JSON pointer; null removes a field.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub review: BTreeMap<Pointer, Value>,
}

/// How a fake rejects a conversion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::exhaustive_enums, reason = "a converter can say so, or fall over it")]
pub enum ConversionRejection {
    /// `failure`: the fake returns the result `Failure`.
    #[default]
    Failure,
    /// `error`: the fake returns HTTP 500.
    Error,
}

/// How multiple objects in one review are converted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ConvertedLists {
    /// `in-order`: all objects are converted in order.
    #[default]
    InOrder,
    /// `reversed`: all objects are converted and returned in reverse order.
    Reversed,
    /// `first-only`: only the first object is returned.
    FirstOnly,
}

/// A field that moves to another path in one version.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FieldMove {
    /// The version without the group.
    pub version: String,
    /// The path in all other versions.
    pub from: Pointer,
    /// The path in this version.
    pub to: Pointer,
}

impl ConversionRejection {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    fn is_failure(&self) -> bool {
        *self == Self::Failure
    }
}

impl ConvertedLists {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    fn is_in_order(&self) -> bool {
        *self == Self::InOrder
    }
}
