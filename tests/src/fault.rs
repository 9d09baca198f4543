//! Injects deliberate faults, to show that the suite detects errors.
//!
//! Each fault changes the input or the result of an in-process run in one way, as a bug in the dispatcher would.

use fake_webhooks::Behavior;
use serde_json::{Value, json};

use crate::case::{Case, Kind};

/// A fault that is deliberately injected into an in-process run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Webhooks are not reinvoked: every `reinvocationPolicy` counts as `Never`.
    NoReinvocation,
    /// All eligible webhooks are reinvoked: `Never` counts as `IfNeeded`.
    AlwaysReinvocation,
    /// An object selector reads the labels of the namespace.
    SelectorOfTheWrongObject,
    /// `failurePolicy: Ignore` counts as `Fail`.
    NothingFailsOpen,
    /// `failurePolicy: Fail` counts as `Ignore`.
    EverythingFailsOpen,
    /// `matchPolicy: Equivalent` counts as `Exact`.
    NoEquivalents,
    /// The annotation `mutation…` is missing.
    LostAnnotation,
    /// The index of mutating webhooks counts from one.
    IndexOffByOne,
    /// A denial without a code causes a 403 response.
    DenialIsForbidden,
    /// The last warning is missing.
    LostWarning,
    /// Webhooks of a configuration are called in alphabetical order of their names.
    OrderOfNames,
    /// `*` in the resources of a rule matches subresources.
    StarMatchesSubresources,
    /// A fail-open call is counted as a rejection.
    WrongCounter,
    /// Reviews do not contain the `oldObject`.
    NoOldObject,
    /// The `request.resource` is the requested resource, even if the webhook matched an equivalent resource.
    ResourceOfTheRequest,
    /// The `timeout` in the query is one second too short.
    TimeoutOffByOne,
    /// `matchPolicy: Exact` counts as `Equivalent`.
    EquivalentThoughExact,
    /// Every patch is applied twice.
    PatchedTwice,
    /// All calls of a request have the same UID.
    SameUid,
    /// Later webhooks do not see earlier changes. All receive the object of the first call.
    StaleObject,
}

impl Fault {
    /// All faults.
    pub const ALL: [Self; 20] = [
        Self::NoReinvocation,
        Self::AlwaysReinvocation,
        Self::SelectorOfTheWrongObject,
        Self::NothingFailsOpen,
        Self::EverythingFailsOpen,
        Self::NoEquivalents,
        Self::LostAnnotation,
        Self::IndexOffByOne,
        Self::DenialIsForbidden,
        Self::LostWarning,
        Self::OrderOfNames,
        Self::StarMatchesSubresources,
        Self::WrongCounter,
        Self::NoOldObject,
        Self::ResourceOfTheRequest,
        Self::TimeoutOffByOne,
        Self::EquivalentThoughExact,
        Self::PatchedTwice,
        Self::SameUid,
        Self::StaleObject,
    ];

    /// Applies the fault to a case before the dispatcher runs it.
    pub(crate) fn spoil_case(self, case: &mut Case) {
        for webhook in &mut case.webhooks {
            let fields = &mut webhook.fields;
            match self {
                Self::NoReinvocation => {
                    fields.remove("reinvocationPolicy");
                }
                Self::AlwaysReinvocation if webhook.kind == Kind::Mutating => {
                    fields.insert("reinvocationPolicy".to_owned(), json!("IfNeeded"));
                }
                Self::SelectorOfTheWrongObject => {
                    if let Some(selector) = fields.remove("objectSelector") {
                        fields.insert("namespaceSelector".to_owned(), selector);
                    }
                }
                Self::NothingFailsOpen => {
                    fields.insert("failurePolicy".to_owned(), json!("Fail"));
                }
                Self::EverythingFailsOpen => {
                    fields.insert("failurePolicy".to_owned(), json!("Ignore"));
                }
                Self::NoEquivalents => {
                    fields.insert("matchPolicy".to_owned(), json!("Exact"));
                }
                Self::EquivalentThoughExact => {
                    fields.insert("matchPolicy".to_owned(), json!("Equivalent"));
                }
                Self::PatchedTwice => {
                    if let Behavior::Patch(patch) = &mut webhook.behavior {
                        patch.operations.extend_from_within(..);
                    }
                }
                Self::StarMatchesSubresources => {
                    for rule in fields.get_mut("rules").and_then(Value::as_array_mut).into_iter().flatten() {
                        if rule["resources"] == json!(["*"]) {
                            rule["resources"] = json!(["*/*"]);
                        }
                    }
                }
                Self::AlwaysReinvocation
                | Self::LostAnnotation
                | Self::IndexOffByOne
                | Self::DenialIsForbidden
                | Self::LostWarning
                | Self::OrderOfNames
                | Self::WrongCounter
                | Self::NoOldObject
                | Self::ResourceOfTheRequest
                | Self::TimeoutOffByOne
                | Self::SameUid
                | Self::StaleObject => {}
            }
        }
        if self == Self::OrderOfNames {
            case.webhooks.sort_by(|one, other| one.name.cmp(&other.name));
        }
    }

    /// Applies the fault to the result that the dispatcher returned.
    pub(crate) fn spoil_result(self, document: &mut Value) {
        for request in document["requests"].as_array_mut().into_iter().flatten() {
            match self {
                Self::LostAnnotation => retain_annotations(request, |key| !key.starts_with("mutation.")),
                Self::IndexOffByOne => {
                    let text = request["audit"]
                        .to_string()
                        .replace("index_1", "index_2")
                        .replace("index_0", "index_1");
                    if let (true, Ok(audit)) = (request.get("audit").is_some(), serde_json::from_str(&text)) {
                        request["audit"] = audit;
                    }
                }
                Self::DenialIsForbidden if request["answer"]["body"]["code"] == 400 => {
                    request["answer"]["status"] = json!(403);
                    request["answer"]["body"]["code"] = json!(403);
                    request["answer"]["body"]["reason"] = json!("Forbidden");
                }
                Self::LostWarning => {
                    request["answer"].get_mut("warnings").and_then(Value::as_array_mut).and_then(Vec::pop);
                }
                Self::NoOldObject => {
                    for call in request["calls"].as_array_mut().into_iter().flatten() {
                        call["review"]["request"]["oldObject"] = Value::Null;
                    }
                }
                Self::ResourceOfTheRequest => {
                    for call in request["calls"].as_array_mut().into_iter().flatten() {
                        let asked = call["review"]["request"]["requestResource"].clone();
                        call["review"]["request"]["resource"] = asked;
                    }
                }
                Self::TimeoutOffByOne => {
                    for call in request["calls"].as_array_mut().into_iter().flatten() {
                        let line =
                            call["request"].as_str().unwrap_or_default().replace("timeout=10s", "timeout=9s");
                        call["request"] = json!(line);
                    }
                }
                Self::SameUid => repeat_of_the_first(request, "uid"),
                Self::StaleObject => repeat_of_the_first(request, "object"),
                Self::DenialIsForbidden
                | Self::NoReinvocation
                | Self::AlwaysReinvocation
                | Self::SelectorOfTheWrongObject
                | Self::NothingFailsOpen
                | Self::EverythingFailsOpen
                | Self::NoEquivalents
                | Self::OrderOfNames
                | Self::StarMatchesSubresources
                | Self::EquivalentThoughExact
                | Self::PatchedTwice
                | Self::WrongCounter => {}
            }
        }
        if self == Self::WrongCounter
            && let Some(metrics) = document["metrics"].as_object_mut()
        {
            let wrong =
                |(name, count): (String, Value)| (name.replace("fail_open_count", "rejection_count"), count);
            *metrics = std::mem::take(metrics).into_iter().map(wrong).collect();
        }
    }
}

/// Copies `field` of the first review to every review of the request.
fn repeat_of_the_first(request: &mut Value, field: &str) {
    let Some(calls) = request["calls"].as_array_mut() else { return };
    let Some(first) = calls.first().map(|call| call["review"]["request"][field].clone()) else { return };
    for call in calls {
        call["review"]["request"][field] = first.clone();
    }
}

fn retain_annotations(request: &mut Value, keep: fn(&str) -> bool) {
    if let Some(audit) = request.get_mut("audit").and_then(Value::as_object_mut) {
        audit.retain(|key, _| keep(key));
    }
}
