//! Checks which user a client may impersonate.

mod headers;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

pub(crate) use self::headers::{unescaped, wanted};
use kubernetes_admission::attributes::UserInfo;
use kubernetes_admission::authorizer::{
    AccessRequest, AccessTarget, Authorizer, PRIVILEGED_GROUP, ResourceTarget,
};
use kubernetes_types::names;
use kubernetes_types::quoting::quote;
use kubernetes_types::status::Status;

use super::super::request_info::RequestInfo;
use super::access_request;
use crate::registry::authorization::forbidden;

const ANONYMOUS: &str = "system:anonymous";
const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const NODES: &str = "system:nodes";
const AUTHENTICATION: &str = "authentication.k8s.io";

/// The minimum number of groups or extra values for which a wildcard permission is checked first.
///
/// Source: apiserver pkg/endpoints/filters/impersonation/mode.go, `manyAuthorizationChecksInLoop`.
const MANY_AUTHORIZATION_CHECKS_IN_LOOP: usize = 4;

/// The maximum number of users whose impersonation mode is cached.
///
/// Source: apiserver pkg/endpoints/filters/impersonation/cache.go, `newModeIndexCache`.
const MODE_CACHE_SIZE: usize = 10_000;

/// The impersonated user and the verb that allowed the impersonation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Impersonated {
    pub(crate) user: UserInfo,
    /// The verb that allowed the impersonation, such as `impersonate:user-info`; empty for `impersonate`.
    pub(crate) constraint: String,
}

/// The impersonation modes, in the order in which they are tried.
///
/// Source: apiserver pkg/endpoints/filters/impersonation/mode.go, `allImpersonationModes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    AssociatedNode,
    ArbitraryNode,
    ServiceAccount,
    UserInfo,
    /// Impersonation with the verb `impersonate`. It applies to any requested user.
    Legacy,
}

const MODES: [Mode; 5] =
    [Mode::AssociatedNode, Mode::ArbitraryNode, Mode::ServiceAccount, Mode::UserInfo, Mode::Legacy];

/// Resolves impersonation.
///
/// For each user, caches the mode that last allowed an impersonation, and tries that mode first.
#[derive(Debug, Default)]
pub(crate) struct Impersonation {
    last: Mutex<HashMap<String, Mode>>,
}

/// Returns the user that kubectl's `--as` and `--as-group` specify, with the groups that the server adds.
///
/// Source: apiserver pkg/endpoints/filters/impersonation.
pub fn impersonated_user(username: impl Into<String>, groups: Vec<String>) -> UserInfo {
    let mut user = UserInfo { username: username.into(), groups, ..UserInfo::default() };
    if let Some((namespace, _)) = service_account(&user.username)
        && user.groups.is_empty()
    {
        user.groups = service_account_groups(namespace);
    }
    complete_groups(&mut user);
    user
}

impl Impersonation {
    /// Returns the user that `requestor` impersonates in a request.
    ///
    /// Source: apiserver `pkg/endpoints/filters/impersonation/constrained_impersonation.go`, `getImpersonatedUser`. Its
    /// ten-second cache of decisions is not implemented.
    /// Rule: RBAC-23.
    ///
    /// # Errors
    /// Returns 403 if `requestor` may not impersonate the user in this request.
    pub(crate) fn resolve(
        &self,
        authorizer: &dyn Authorizer,
        requestor: &UserInfo,
        wanted: &UserInfo,
        info: &RequestInfo,
    ) -> Result<Impersonated, Box<Status>> {
        let last = self.last().get(&requestor.username).copied();
        let others = MODES.into_iter().filter(|mode| Some(*mode) != last);
        let mut first_refusal = None;
        for mode in last.into_iter().chain(others) {
            let attempt = Attempt { authorizer, requestor, wanted, mode };
            match attempt.check(info) {
                Ok(Some(impersonated)) => {
                    let mut last = self.last();
                    if last.len() >= MODE_CACHE_SIZE {
                        last.clear();
                    }
                    last.insert(requestor.username.clone(), mode);
                    return Ok(impersonated);
                }
                Ok(None) => {}
                Err(refusal) => {
                    first_refusal.get_or_insert(refusal);
                }
            }
        }
        Err(first_refusal
            .unwrap_or_else(|| Box::new(Status::internal_error("all impersonation modes failed"))))
    }

    fn last(&self) -> std::sync::MutexGuard<'_, HashMap<String, Mode>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Attempt<'a> {
    authorizer: &'a dyn Authorizer,
    requestor: &'a UserInfo,
    wanted: &'a UserInfo,
    mode: Mode,
}

impl Attempt<'_> {
    /// Checks whether the mode allows the impersonation. Returns `None` if the mode does not apply to the wanted user.
    fn check(&self, info: &RequestInfo) -> Result<Option<Impersonated>, Box<Status>> {
        if !self.applies() {
            return Ok(None);
        }
        if let Some(name) = self.mode.name() {
            let request = access_request(self.requestor, info);
            let verb = format!("impersonate-on:{name}:{}", request.verb);
            self.ask(&AccessRequest { verb: &verb, ..request })?;
        }
        let mut user = self.wanted.clone();
        self.ask_for_name(&mut user)?;
        if !self.wanted.uid.is_empty() {
            self.ask_for(AUTHENTICATION, "uids", "", &self.wanted.uid)?;
        }
        self.ask_for_groups()?;
        self.ask_for_extra()?;
        complete_groups(&mut user);
        let constraint = self.mode.name().map_or_else(String::new, |name| format!("impersonate:{name}"));
        Ok(Some(Impersonated { user, constraint }))
    }

    fn applies(&self) -> bool {
        let wanted = self.wanted;
        let name_alone = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        let (node, account) = (node(&wanted.username), service_account(&wanted.username));
        match self.mode {
            Mode::AssociatedNode => {
                let key = "authentication.kubernetes.io/node-name";
                let own = self.requestor.extra.get(key).map(Vec::as_slice);
                let is_account = service_account(&self.requestor.username).is_some();
                name_alone && is_account && node.is_some_and(|node| own == Some(&[node.to_owned()]))
            }
            Mode::ArbitraryNode => name_alone && node.is_some(),
            Mode::ServiceAccount => name_alone && account.is_some(),
            Mode::UserInfo => node.is_none() && account.is_none(),
            Mode::Legacy => true,
        }
    }

    fn ask_for_name(&self, user: &mut UserInfo) -> Result<(), Box<Status>> {
        let group = self.mode.group_of_users();
        if let (Some(node), true) = (node(&self.wanted.username), self.mode != Mode::Legacy) {
            user.groups = vec![NODES.to_owned()];
            let name = if self.mode == Mode::AssociatedNode { "*" } else { node };
            return self.ask_for(group, "nodes", "", name);
        }
        let Some((namespace, name)) = service_account(&self.wanted.username) else {
            return self.ask_for(group, "users", "", &self.wanted.username);
        };
        if self.wanted.groups.is_empty() {
            user.groups = service_account_groups(namespace);
        }
        let target = ResourceTarget {
            group,
            version: "v1",
            resource: "serviceaccounts",
            namespace,
            name,
            ..ResourceTarget::default()
        };
        self.ask_about(target)
    }

    fn ask_for_groups(&self) -> Result<(), Box<Status>> {
        let (group, groups) = (self.mode.group_of_users(), &self.wanted.groups);
        if self.mode != Mode::Legacy && !groups.is_empty() {
            let refused = |name: &str, why: &str| Err(self.refusal(group, "groups", name, why));
            if groups.iter().any(String::is_empty) {
                return refused("", "impersonating the empty string group is not allowed");
            }
            if groups.iter().any(|group| group == PRIVILEGED_GROUP) {
                return refused(PRIVILEGED_GROUP, "impersonating the system:masters group is not allowed");
            }
            if groups.len() >= MANY_AUTHORIZATION_CHECKS_IN_LOOP
                && self.ask_for(group, "groups", "", "*").is_ok()
            {
                return Ok(());
            }
        }
        groups.iter().try_for_each(|name| self.ask_for(group, "groups", "", name))
    }

    fn ask_for_extra(&self) -> Result<(), Box<Status>> {
        let extra = &self.wanted.extra;
        if self.mode != Mode::Legacy && !extra.is_empty() {
            if let Some(why) = wrong_extra(extra) {
                return Err(self.refusal(AUTHENTICATION, "userextras", "", &why));
            }
            let is_large = extra.len() >= MANY_AUTHORIZATION_CHECKS_IN_LOOP
                || extra.values().map(Vec::len).sum::<usize>() >= MANY_AUTHORIZATION_CHECKS_IN_LOOP;
            if is_large && self.ask_for(AUTHENTICATION, "userextras", "*", "*").is_ok() {
                return Ok(());
            }
        }
        let values = extra.iter().flat_map(|(key, values)| values.iter().map(move |value| (key, value)));
        values.into_iter().try_for_each(|(key, value)| self.ask_for(AUTHENTICATION, "userextras", key, value))
    }

    fn ask_for(&self, group: &str, resource: &str, subresource: &str, name: &str) -> Result<(), Box<Status>> {
        self.ask_about(ResourceTarget {
            group,
            version: "v1",
            resource,
            subresource,
            name,
            ..ResourceTarget::default()
        })
    }

    fn ask_about(&self, target: ResourceTarget<'_>) -> Result<(), Box<Status>> {
        let verb = self.mode.verb();
        self.ask(&AccessRequest { user: self.requestor, verb: &verb, target: AccessTarget::Resource(target) })
    }

    /// Source: apiserver pkg/endpoints/filters/impersonation/mode.go, `checkAuthorization`.
    fn ask(&self, request: &AccessRequest<'_>) -> Result<(), Box<Status>> {
        let decision = self.authorizer.authorize(request);
        if decision.is_allowed() { Ok(()) } else { Err(Box::new(forbidden(request, &decision.reason))) }
    }

    fn refusal(&self, group: &str, resource: &str, name: &str, why: &str) -> Box<Status> {
        let target = ResourceTarget { group, resource, name, ..ResourceTarget::default() };
        let verb = self.mode.verb();
        let target = AccessTarget::Resource(target);
        Box::new(forbidden(&AccessRequest { user: self.requestor, verb: &verb, target }, why))
    }
}

impl Mode {
    /// Returns the name of a constrained mode; `None` for the legacy mode.
    fn name(self) -> Option<&'static str> {
        match self {
            Self::AssociatedNode => Some("associated-node"),
            Self::ArbitraryNode => Some("arbitrary-node"),
            Self::ServiceAccount => Some("serviceaccount"),
            Self::UserInfo => Some("user-info"),
            Self::Legacy => None,
        }
    }

    fn verb(self) -> String {
        self.name().map_or_else(|| "impersonate".to_owned(), |name| format!("impersonate:{name}"))
    }

    /// Returns the API group of the virtual resources `users` and `groups`.
    fn group_of_users(self) -> &'static str {
        if self == Self::Legacy { "" } else { AUTHENTICATION }
    }
}

/// Returns the namespace and name of a service account; `None` for any other user.
///
/// Source: apiserver pkg/authentication/serviceaccount/util.go, `SplitUsername`.
fn service_account(username: &str) -> Option<(&str, &str)> {
    let (namespace, name) = username.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    let is_valid = names::dns1123_label(namespace).is_empty() && names::dns1123_subdomain(name).is_empty();
    is_valid.then_some((namespace, name))
}

/// Returns the node name in the user name of a node; `None` for any other user.
fn node(username: &str) -> Option<&str> {
    username.strip_prefix("system:node:").filter(|name| names::dns1123_subdomain(name).is_empty())
}

fn service_account_groups(namespace: &str) -> Vec<String> {
    vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]
}

/// Adds the group `system:unauthenticated` to the anonymous user, or `system:authenticated` to any other user.
///
/// Does not add a group twice, and does not add `system:authenticated` to a user in `system:unauthenticated`.
///
/// Rule: RBAC-22.
fn complete_groups(user: &mut UserInfo) {
    let is_in = |group: &str| user.groups.iter().any(|present| present == group);
    let missing = if user.username == ANONYMOUS {
        (!is_in(UNAUTHENTICATED)).then_some(UNAUTHENTICATED)
    } else {
        (!is_in(AUTHENTICATED) && !is_in(UNAUTHENTICATED)).then_some(AUTHENTICATED)
    };
    user.groups.extend(missing.map(str::to_owned));
}

/// Returns the reason why constrained modes reject these extra values; `None` if the values are valid.
///
/// Source: apiserver pkg/endpoints/filters/impersonation/mode.go, `validateExtra`; apimachinery
/// pkg/util/validation/validation.go, `IsDomainPrefixedPath`.
fn wrong_extra(extra: &BTreeMap<String, Vec<String>>) -> Option<String> {
    for (key, values) in extra {
        if key.is_empty() {
            return Some("impersonating the empty string key in extra is not allowed".to_owned());
        }
        if let Some(why) = wrong_key(key) {
            return Some(format!("impersonating an invalid key in extra is not allowed: {why}"));
        }
        if key.chars().any(char::is_uppercase) {
            return Some(format!(
                "impersonating a non-lowercase key in extra is not allowed: {}",
                quote(key)
            ));
        }
        if values.iter().any(String::is_empty) {
            return Some("impersonating the empty string value in extra is not allowed".to_owned());
        }
    }
    None
}

fn wrong_key(key: &str) -> Option<String> {
    let invalid = |value: &str, why: &str| format!("extra.key: Invalid value: {}: {why}", quote(value));
    let split = key.split_once('/').filter(|(host, path)| !host.is_empty() && !path.is_empty());
    let Some((host, path)) = split else {
        return Some(invalid(key, "must be a domain-prefixed path (such as \"acme.io/foo\")"));
    };
    let mut errors: Vec<String> =
        names::dns1123_subdomain(host).iter().map(|why| invalid(host, why)).collect();
    let is_path = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte);
    if !path.bytes().all(is_path) {
        let why = r"Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')";
        errors.push(invalid(path, why));
    }
    match errors.as_slice() {
        [] => None,
        [error] => Some(error.clone()),
        _ => Some(format!("[{}]", errors.join(", "))),
    }
}

#[cfg(test)]
mod tests;
