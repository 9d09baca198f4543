//! Reads admission policies and their bindings in manifests.

use std::cell::OnceCell;
use std::sync::Arc;

use kubernetes_admission::attributes::{GroupVersionKind, UserInfo};
use kubernetes_admission::policy::{
    self, Binding, Definition, MutatingPolicy, ValidatingBinding, ValidatingPolicy,
};
use kubernetes_api_server::ClusterFixture;
use kubernetes_types::json::{set, text};
use kubernetes_types::status::{Status, StatusCause};
use serde_json::Value;

use super::violation::{Defect, Violation};

pub(super) const GROUP: &str = "admissionregistration.k8s.io";
/// The version whose fields all versions have.
const VERSION: &str = "admissionregistration.k8s.io/v1";

/// The policies and bindings in manifests.
#[derive(Debug, Default)]
pub(super) struct Policies {
    /// All policies and bindings, in file order.
    pub(super) objects: Vec<PolicyObject>,
}

/// A policy or a binding, with its position in the manifests.
#[derive(Debug)]
pub(super) struct PolicyObject {
    pub(super) position: usize,
    /// The object as a v1 object with defaults, or as written if it cannot be decoded.
    pub(super) object: Value,
    /// The version, if the API server does not serve it by default.
    pub(super) old_version: Option<String>,
    /// The fields that the API does not have.
    pub(super) unknown_fields: Vec<String>,
    /// The API server's response if the object cannot be decoded.
    pub(super) undecodable: Option<Box<Status>>,
    /// The fields that the API server rejects.
    pub(super) invalid: Vec<StatusCause>,
    /// The reason why admit cannot validate the object, if the API server might accept it.
    unsupported: Option<String>,
    /// The parsed object; `None` if the API server rejects it, or if admit cannot validate it.
    pub(super) parsed: Option<Parsed>,
    /// What the mutations do to example objects, determined when a check needs it.
    pub(super) mutation_trial: OnceCell<MutationTrial>,
}

/// The violations of checks that apply the mutations of a policy to example objects.
#[derive(Debug, Default)]
pub(super) struct MutationTrial {
    /// The mutations that cannot be applied.
    pub(super) failing: Vec<Violation>,
    /// A mutation that changes its own result, of a policy that is reinvoked.
    pub(super) changing_again: Option<Violation>,
}

/// A parsed policy or binding.
#[derive(Debug)]
pub(super) enum Parsed {
    Validating(Arc<ValidatingPolicy>),
    Mutating(Arc<MutatingPolicy>),
    ValidatingBinding(ValidatingBinding),
    MutatingBinding(Binding),
}

/// Returns whether `object` is a policy or a binding of any version.
pub(super) fn is_policy_object(object: &Value) -> bool {
    let group = text(object, &["apiVersion"]).split_once('/').map_or("", |(group, _)| group);
    let kinds = [
        "ValidatingAdmissionPolicy",
        "MutatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicyBinding",
    ];
    group == GROUP && kinds.contains(&text(object, &["kind"]))
}

impl Policies {
    /// Reads the policies and bindings in `objects`.
    pub(super) fn new(objects: &[Value], cluster_fixture: &ClusterFixture) -> Self {
        let objects = objects.iter().enumerate().filter(|(_, object)| is_policy_object(object));
        Self {
            objects: objects
                .map(|(position, object)| PolicyObject::new(position, object, cluster_fixture))
                .collect(),
        }
    }

    /// Returns the violations that `check` finds in each policy and binding, in file order.
    pub(super) fn examine<'a, V: IntoIterator<Item = Violation>>(
        &'a self,
        check: impl Fn(&'a PolicyObject) -> V,
    ) -> Vec<Defect> {
        let defects = |object: &'a PolicyObject| {
            let violations = check(object).into_iter();
            violations.map(|violation| Defect { position: object.position, violation })
        };
        self.objects.iter().flat_map(defects).collect()
    }

    /// Returns the bindings that name `policy`.
    pub(super) fn bindings_of(&self, policy: &PolicyObject) -> impl Iterator<Item = &PolicyObject> {
        self.objects.iter().filter(|object| object.names(policy))
    }

    /// Returns the policies that `binding` names.
    pub(super) fn policies_of(&self, binding: &PolicyObject) -> impl Iterator<Item = &PolicyObject> {
        self.objects.iter().filter(|object| binding.names(object))
    }
}

impl PolicyObject {
    fn new(position: usize, written: &Value, cluster_fixture: &ClusterFixture) -> Self {
        let mut object = written.clone();
        let kind = GroupVersionKind::from_object(written);
        let old_version = cluster_fixture.resource_of(&kind).is_none().then(|| kind.api_version());
        set(&mut object, &["apiVersion"], VERSION);
        let mut read = Self {
            position,
            object,
            old_version,
            unknown_fields: Vec::new(),
            undecodable: None,
            invalid: Vec::new(),
            unsupported: None,
            parsed: None,
            mutation_trial: OnceCell::new(),
        };
        match cluster_fixture.unknown_fields(&read.object) {
            Ok(unknown) => read.unknown_fields = unknown,
            Err(status) => {
                read.undecodable = Some(status);
                return read;
            }
        }
        let created = cluster_fixture.create(read.object.clone(), "default", UserInfo::default());
        let Ok(mut request) = created else { return read };
        cluster_fixture.prepare(&mut request);
        // The error of an expression that admit does not support is not a finding.
        let invalid = match cluster_fixture.invalid_fields(&request) {
            Ok(invalid) => invalid,
            Err(status) => {
                read.unsupported = Some(status.message);
                return read;
            }
        };
        read.parsed = request.object.as_ref().filter(|_| invalid.is_empty()).and_then(parsed);
        read.object = request.object.unwrap_or_default();
        read.invalid = invalid;
        read
    }

    pub(super) fn name(&self) -> &str {
        text(&self.object, &["metadata", "name"])
    }

    pub(super) fn kind(&self) -> &str {
        text(&self.object, &["kind"])
    }

    pub(super) fn is_binding(&self) -> bool {
        self.kind().ends_with("Binding")
    }

    /// Returns the kind of the policy: its own, or that of the policy that a binding names.
    pub(super) fn policy_kind(&self) -> &str {
        self.kind().strip_suffix("Binding").unwrap_or(self.kind())
    }

    /// Returns the reason why the checks cannot examine the object, or `None` if they can.
    pub(super) fn unreadable(&self) -> Option<String> {
        if self.parsed.is_some() {
            return None;
        }
        let what = if self.is_binding() { "binding" } else { "policy" };
        Some(match (self.invalid.first(), &self.unsupported) {
            (Some(StatusCause { field, .. }), _) => format!("the API server rejects {field}: see L11"),
            (None, Some(unsupported)) => unsupported.clone(),
            (None, None) => format!("the API server rejects the {what}: see L11"),
        })
    }

    /// Returns whether the API server rejects the object.
    pub(super) fn is_rejected(&self) -> bool {
        self.parsed.is_none() && self.unsupported.is_none()
    }

    /// Returns whether the check of policies and bindings with this ID examines the parsed object.
    pub(super) fn is_examined_by(&self, check: &str) -> bool {
        match check {
            "L12" | "L13" => true,
            "L14" => self.is_binding(),
            "L15" => !self.is_binding(),
            "L16" | "L17" | "L19" => self.kind() == "MutatingAdmissionPolicy",
            _ => false,
        }
    }

    /// Returns the policy that a binding names; empty for a policy.
    pub(super) fn policy_name(&self) -> &str {
        text(&self.object, &["spec", "policyName"])
    }

    /// Returns whether this is a binding of `policy`.
    fn names(&self, policy: &Self) -> bool {
        self.is_binding() && self.policy_kind() == policy.kind() && self.policy_name() == policy.name()
    }

    /// Returns the fields that both kinds of policies have, or `None` for a binding or a rejected policy.
    pub(super) fn definition(&self) -> Option<&Definition> {
        match self.parsed.as_ref()? {
            Parsed::Validating(policy) => Some(&policy.definition),
            Parsed::Mutating(policy) => Some(&policy.definition),
            Parsed::ValidatingBinding(_) | Parsed::MutatingBinding(_) => None,
        }
    }

    /// Returns the fields that both kinds of bindings have, or `None` for a policy or a rejected binding.
    pub(super) fn binding(&self) -> Option<&Binding> {
        match self.parsed.as_ref()? {
            Parsed::ValidatingBinding(binding) => Some(&binding.binding),
            Parsed::MutatingBinding(binding) => Some(binding),
            Parsed::Validating(_) | Parsed::Mutating(_) => None,
        }
    }
}

fn parsed(object: &Value) -> Option<Parsed> {
    match text(object, &["kind"]) {
        "ValidatingAdmissionPolicy" => {
            policy::validating_policy(object).ok().map(Arc::new).map(Parsed::Validating)
        }
        "MutatingAdmissionPolicy" => policy::mutating_policy(object).ok().map(Arc::new).map(Parsed::Mutating),
        "ValidatingAdmissionPolicyBinding" => {
            policy::validating_binding(object).ok().map(Parsed::ValidatingBinding)
        }
        _ => policy::mutating_binding(object).ok().map(Parsed::MutatingBinding),
    }
}
