//! Compiles the stored admission policies and bindings.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use kubernetes_admission::policy::{self, PolicyError, ValidatingBinding, ValidatingHook, ValidatingPolicy};
use kubernetes_types::status::Status;
use serde_json::Value;

use crate::kinds::webhook_configurations::GROUP;
use crate::storage::{ObjectReader, Storage};

const POLICIES: &str = "validatingadmissionpolicies";
const BINDINGS: &str = "validatingadmissionpolicybindings";

/// The compiled policies and bindings. Unchanged objects are not compiled again.
///
/// Source: apiserver `pkg/admission/plugin/policy/generic/policy_source.go`, `calculatePolicyData` and
/// `compilePolicyLocked`.
#[derive(Clone, Default)]
pub(crate) struct CompiledPolicies {
    policies: Vec<Compiled<ValidatingPolicy>>,
    bindings: Vec<Compiled<ValidatingBinding>>,
    hooks: Arc<[ValidatingHook]>,
}

/// A stored object and the result of compiling its spec.
#[derive(Clone)]
struct Compiled<T> {
    stored: Arc<Value>,
    compiled: Arc<T>,
}

impl CompiledPolicies {
    /// Compiles the stored policies and bindings that have changed.
    ///
    /// # Errors
    /// Returns an error if an object cannot be parsed.
    pub(crate) fn reloaded(&self, storage: &Storage) -> Result<Self, Box<Status>> {
        let policies =
            compiled(storage.list(GROUP, POLICIES, ""), &self.policies, policy::validating_policy)?;
        let bindings =
            compiled(storage.list(GROUP, BINDINGS, ""), &self.bindings, policy::validating_binding)?;
        let mut by_policy: BTreeMap<&str, Vec<Arc<ValidatingBinding>>> = BTreeMap::new();
        for Compiled { compiled, .. } in &bindings {
            by_policy.entry(&compiled.binding.policy_name).or_default().push(Arc::clone(compiled));
        }
        let hooks = policies
            .iter()
            .filter_map(|Compiled { compiled, .. }| {
                let bindings = by_policy.remove(&*compiled.definition.name)?;
                Some(ValidatingHook { policy: Arc::clone(compiled), bindings })
            })
            .collect();
        Ok(Self { policies, bindings, hooks })
    }

    /// Returns the policies that have bindings, in the order of their names.
    pub(crate) fn hooks(&self) -> Arc<[ValidatingHook]> {
        Arc::clone(&self.hooks)
    }
}

fn compiled<T>(
    stored: Vec<Arc<Value>>,
    before: &[Compiled<T>],
    compile: impl Fn(&Value) -> Result<T, PolicyError>,
) -> Result<Vec<Compiled<T>>, Box<Status>> {
    let compile_changed = |stored: Arc<Value>| {
        let known = before.iter().find(|known| Arc::ptr_eq(&known.stored, &stored));
        let compiled = match known {
            Some(known) => Arc::clone(&known.compiled),
            None => Arc::new(compile(&stored).map_err(|error| Status::internal_error(&error.to_string()))?),
        };
        Ok(Compiled { stored, compiled })
    };
    stored.into_iter().map(compile_changed).collect()
}

impl fmt::Debug for CompiledPolicies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompiledPolicies").field("hooks", &self.hooks.len()).finish_non_exhaustive()
    }
}
