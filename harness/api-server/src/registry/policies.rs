//! Compiles the stored admission policies and bindings.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubernetes_admission::policy::{self, PolicyError, ValidatingBinding, ValidatingHook, ValidatingPolicy};
use kubernetes_types::status::Status;
use serde_json::Value;

use crate::kinds::webhook_configurations::GROUP;
use crate::storage::{ObjectReader, Storage};

/// The resource of validating policies.
pub(crate) const POLICIES: &str = "validatingadmissionpolicies";
/// The resource of the bindings of validating policies.
pub(crate) const BINDINGS: &str = "validatingadmissionpolicybindings";

/// The compiled policies and bindings. Unchanged objects are not compiled again.
///
/// Source: apiserver `pkg/admission/plugin/policy/generic/policy_source.go`, `calculatePolicyData` and
/// `compilePolicyLocked`.
#[derive(Debug, Default)]
pub(crate) struct CompiledPolicies {
    policies: Vec<(Arc<Value>, Arc<ValidatingPolicy>)>,
    bindings: Vec<(Arc<Value>, Arc<ValidatingBinding>)>,
    hooks: Arc<[ValidatingHook]>,
}

impl CompiledPolicies {
    /// Compiles the stored policies and bindings that have changed.
    ///
    /// # Errors
    /// Returns an error if an object cannot be parsed.
    pub(crate) fn reloaded(&self, storage: &Storage) -> Result<Self, Box<Status>> {
        let failed = |error: PolicyError| Box::new(Status::internal_error(&error.to_string()));
        let compile = |stored: &Value| policy::validating_policy(stored).map(Arc::new).map_err(failed);
        let policies = recompiled(storage.list(GROUP, POLICIES, ""), &self.policies, compile)?;
        let compile = |stored: &Value| policy::validating_binding(stored).map(Arc::new).map_err(failed);
        let bindings = recompiled(storage.list(GROUP, BINDINGS, ""), &self.bindings, compile)?;
        let mut by_policy: BTreeMap<&str, Vec<Arc<ValidatingBinding>>> = BTreeMap::new();
        for (_, compiled) in &bindings {
            by_policy.entry(&compiled.binding.policy_name).or_default().push(Arc::clone(compiled));
        }
        let hooks = policies
            .iter()
            .filter_map(|(_, compiled)| {
                let bindings = by_policy.remove(&*compiled.definition.name)?;
                Some(ValidatingHook { policy: Arc::clone(compiled), bindings })
            })
            .collect();
        Ok(Self { policies, bindings, hooks })
    }

    /// Returns the policies that have bindings, sorted by name.
    pub(crate) fn hooks(&self) -> Arc<[ValidatingHook]> {
        Arc::clone(&self.hooks)
    }
}

/// Returns each stored object with its compilation result. Reuses the result in `before` for an unchanged object.
///
/// # Errors
/// Returns the error of `compile`.
pub(super) fn recompiled<T: Clone, E>(
    stored: Vec<Arc<Value>>,
    before: &[(Arc<Value>, T)],
    compile: impl Fn(&Value) -> Result<T, E>,
) -> Result<Vec<(Arc<Value>, T)>, E> {
    let compile_changed = |stored: Arc<Value>| {
        let known = before.iter().find(|(known, _)| Arc::ptr_eq(known, &stored));
        let compiled = match known {
            Some((_, compiled)) => compiled.clone(),
            None => compile(&stored)?,
        };
        Ok((stored, compiled))
    };
    stored.into_iter().map(compile_changed).collect()
}
