//! Compiles the stored admission policies and bindings.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use kubernetes_admission::policy::{
    self, Binding, Definition, Hook, MutatingHook, MutatingPolicy, PolicyError, ValidatingBinding,
    ValidatingHook, ValidatingPolicy,
};
use kubernetes_types::status::Status;
use serde_json::Value;

use crate::kinds::webhook_configurations::GROUP;
use crate::plugins::PolicyOrder;
use crate::storage::{ObjectReader, Storage};

/// The resource of validating policies.
pub(crate) const VALIDATING: &str = "validatingadmissionpolicies";
/// The resource of the bindings of validating policies.
pub(crate) const VALIDATING_BINDINGS: &str = "validatingadmissionpolicybindings";
/// The resource of mutating policies.
pub(crate) const MUTATING: &str = "mutatingadmissionpolicies";
/// The resource of the bindings of mutating policies.
pub(crate) const MUTATING_BINDINGS: &str = "mutatingadmissionpolicybindings";

/// The compiled policies and bindings. Unchanged objects are not compiled again.
///
/// Source: apiserver `pkg/admission/plugin/policy/generic/policy_source.go`, `calculatePolicyData` and
/// `compilePolicyLocked`.
/// Rule: MAP-07.
#[derive(Debug, Default)]
pub(crate) struct CompiledPolicies {
    order: PolicyOrder,
    validating: CompiledType<ValidatingPolicy, ValidatingBinding>,
    mutating: CompiledType<MutatingPolicy, Binding>,
}

impl CompiledPolicies {
    /// Creates an empty set of policies.
    pub(crate) fn new(order: PolicyOrder) -> Self {
        Self { order, ..Self::default() }
    }

    /// Compiles the stored policies and bindings that have changed.
    ///
    /// # Errors
    /// Returns an error if an object cannot be parsed.
    pub(crate) fn reloaded(&self, storage: &Storage) -> Result<Self, Box<Status>> {
        let list = |resource: &str| storage.list(GROUP, resource, "");
        let validating = Compiler {
            policy: policy::validating_policy,
            binding: policy::validating_binding,
            definition: |policy| &policy.definition,
            policy_name: |binding| &binding.binding.policy_name,
            name: |binding| &binding.binding.name,
        };
        let mutating = Compiler {
            policy: policy::mutating_policy,
            binding: policy::mutating_binding,
            definition: |policy| &policy.definition,
            policy_name: |binding| &binding.policy_name,
            name: |binding| &binding.name,
        };
        let order = self.order;
        let stored = [list(VALIDATING), list(VALIDATING_BINDINGS)];
        let validating = self.validating.reloaded(stored, order, &validating)?;
        let stored = [list(MUTATING), list(MUTATING_BINDINGS)];
        let mutating = self.mutating.reloaded(stored, order, &mutating)?;
        Ok(Self { order, validating, mutating })
    }

    /// Returns the validating policies that have bindings, in the order in which they are applied.
    pub(crate) fn validating(&self) -> Arc<[ValidatingHook]> {
        Arc::clone(&self.validating.hooks)
    }

    /// Returns the mutating policies that have bindings, in the order in which they are applied.
    pub(crate) fn mutating(&self) -> Arc<[MutatingHook]> {
        Arc::clone(&self.mutating.hooks)
    }
}

/// Compiles policies and bindings of one type.
struct Compiler<P, B> {
    policy: fn(&Value) -> Result<P, PolicyError>,
    binding: fn(&Value) -> Result<B, PolicyError>,
    /// Returns the fields that both types of policies have.
    definition: fn(&P) -> &Definition,
    /// Returns the name of the policy of a binding.
    policy_name: fn(&B) -> &str,
    /// Returns the name of a binding.
    name: fn(&B) -> &str,
}

/// The compiled policies and bindings of one type, each with the object from which it was compiled.
#[derive(Debug)]
struct CompiledType<P, B> {
    policies: Vec<(Arc<Value>, Arc<P>)>,
    bindings: Vec<(Arc<Value>, Arc<B>)>,
    hooks: Arc<[Hook<P, B>]>,
}

impl<P, B> Default for CompiledType<P, B> {
    fn default() -> Self {
        Self { policies: Vec::new(), bindings: Vec::new(), hooks: Arc::new([]) }
    }
}

impl<P, B> CompiledType<P, B> {
    /// Compiles the policies and bindings that have changed.
    ///
    /// # Errors
    /// Returns an error if an object cannot be parsed.
    fn reloaded(
        &self,
        [policies, bindings]: [Vec<Arc<Value>>; 2],
        order: PolicyOrder,
        compiler: &Compiler<P, B>,
    ) -> Result<Self, Box<Status>> {
        let failed = |error: PolicyError| Box::new(Status::internal_error(&error.to_string()));
        let compile = |stored: &Value| (compiler.policy)(stored).map(Arc::new).map_err(failed);
        let policies = recompiled(policies, &self.policies, compile)?;
        let compile = |stored: &Value| (compiler.binding)(stored).map(Arc::new).map_err(failed);
        let bindings = recompiled(bindings, &self.bindings, compile)?;
        let mut by_policy: BTreeMap<&str, Vec<Arc<B>>> = BTreeMap::new();
        for (_, binding) in &bindings {
            by_policy.entry((compiler.policy_name)(binding)).or_default().push(Arc::clone(binding));
        }
        let mut hooks: Vec<Hook<P, B>> = policies
            .iter()
            .filter_map(|(_, policy)| {
                let mut bindings = by_policy.remove(&*(compiler.definition)(policy).name)?;
                order.sort(&mut bindings, |binding| (compiler.name)(binding));
                Some(Hook { policy: Arc::clone(policy), bindings })
            })
            .collect();
        order.sort(&mut hooks, |hook| &(compiler.definition)(&hook.policy).name);
        let hooks: Arc<[Hook<P, B>]> = hooks.into();
        // A param kind keeps its scope while a policy uses it.
        // Source: `ensureParamsForPolicyLocked` in the same file.
        let known = self.hooks.iter().filter_map(|hook| {
            let kind = (compiler.definition)(&hook.policy).param_kind.as_ref()?;
            Some((&kind.kind, *kind.namespaced.get()?))
        });
        let scopes: HashMap<_, _> = known.collect();
        for hook in hooks.iter() {
            if let Some(kind) = &(compiler.definition)(&hook.policy).param_kind
                && let Some(namespaced) = scopes.get(&kind.kind)
            {
                kind.namespaced.get_or_init(|| *namespaced);
            }
        }
        Ok(Self { policies, bindings, hooks })
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
