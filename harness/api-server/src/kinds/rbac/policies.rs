//! Implements the RBAC authorizer. It evaluates the stored roles and bindings.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use kubernetes_admission::attributes::UserInfo;
use kubernetes_admission::authorizer::{
    AccessDecision, AccessRequest, AccessRules, Authorizer, Policies, PolicyRule, RBAC_GROUP, RbacObjects,
    RoleNotFound, is_privileged,
};

use crate::storage::{ObjectReader as _, Storage};

/// Authorizes requests according to the stored roles and bindings.
///
/// Loads the roles and bindings for the first request that needs them, and again after a change.
///
/// Rule: RBAC-04.
pub(crate) struct StoredPolicies {
    storage: Arc<Storage>,
    read: RwLock<Option<LoadedPolicies>>,
}

struct LoadedPolicies {
    /// The `resourceVersion` of the latest RBAC write that `policies` reflects.
    version: u64,
    policies: Arc<Policies>,
}

impl StoredPolicies {
    pub(crate) fn new(storage: Arc<Storage>) -> Self {
        Self { storage, read: RwLock::default() }
    }

    pub(crate) fn current(&self) -> Arc<Policies> {
        let version = self.storage.group_version(RBAC_GROUP);
        let known = self.read.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(read) = known.as_ref().filter(|read| read.version == version) {
            return Arc::clone(&read.policies);
        }
        drop(known);
        let mut known = self.read.write().unwrap_or_else(PoisonError::into_inner);
        // A write after this point changes the version, so that the next call loads the objects again.
        let version = self.storage.group_version(RBAC_GROUP);
        let all = |resource: &str| self.storage.list(RBAC_GROUP, resource, "");
        let objects = RbacObjects {
            cluster_roles: all("clusterroles"),
            roles: all("roles"),
            cluster_role_bindings: all("clusterrolebindings"),
            role_bindings: all("rolebindings"),
        };
        let before = known.as_ref().map(|read| Arc::clone(&read.policies)).unwrap_or_default();
        let policies = Arc::new(before.updated(&objects));
        *known = Some(LoadedPolicies { version, policies: Arc::clone(&policies) });
        policies
    }

    /// Returns the rules of a role that a binding in `namespace` references.
    ///
    /// # Errors
    /// Returns [`RoleNotFound`] if the role does not exist.
    pub(crate) fn role_rules(
        &self,
        kind: &str,
        name: &str,
        namespace: &str,
    ) -> Result<Vec<PolicyRule>, RoleNotFound> {
        self.current().role_rules(kind, name, namespace).map(<[PolicyRule]>::to_vec)
    }
}

impl Authorizer for StoredPolicies {
    fn authorize(&self, request: &AccessRequest<'_>) -> AccessDecision {
        if is_privileged(request.user) {
            // Privileged users do not need roles, so the roles need not be loaded.
            return Policies::default().authorize(request);
        }
        self.current().authorize(request)
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> AccessRules {
        self.current().rules_for(user, namespace)
    }
}

impl fmt::Debug for StoredPolicies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredPolicies").finish_non_exhaustive()
    }
}
