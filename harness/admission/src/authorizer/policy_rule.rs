//! Determines which requests a rule of a role allows.

use kubernetes_types::quoting::quote;
use serde_json::Value;

use super::{AccessRequest, AccessTarget};

/// A `rbac.authorization.k8s.io/v1` `PolicyRule`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "the API has these fields")]
pub struct PolicyRule {
    /// The allowed verbs; `*` for all.
    pub verbs: Vec<String>,
    /// The API groups; `*` for all.
    pub api_groups: Vec<String>,
    /// The resources: `pods`, `pods/status`, `*/scale`, or `*`.
    pub resources: Vec<String>,
    /// The object names; empty for all objects.
    pub resource_names: Vec<String>,
    /// The non-resource paths; `*` may be the last character or the whole path.
    pub non_resource_urls: Vec<String>,
}

impl PolicyRule {
    /// Reads a rule from a role. Fields that are not lists of strings are read as empty.
    pub fn from_value(value: &Value) -> Self {
        let texts = |field: &str| {
            let items = value.get(field).and_then(Value::as_array).into_iter().flatten();
            items.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Self {
            verbs: texts("verbs"),
            api_groups: texts("apiGroups"),
            resources: texts("resources"),
            resource_names: texts("resourceNames"),
            non_resource_urls: texts("nonResourceURLs"),
        }
    }

    /// Parses the `rules` of a role.
    pub fn all_from_role(role: &Value) -> Vec<Self> {
        role.get("rules").and_then(Value::as_array).into_iter().flatten().map(Self::from_value).collect()
    }

    /// Returns whether the rule allows `request`.
    ///
    /// Source: kubernetes plugin/pkg/auth/authorizer/rbac/rbac.go, `RuleAllows`;
    /// `pkg/apis/rbac/v1/evaluation_helpers.go`.
    /// Rule: RBAC-05.
    pub fn allows(&self, request: &AccessRequest<'_>) -> bool {
        let has = |list: &[String], wanted: &str| list.iter().any(|item| item == "*" || item == wanted);
        if !has(&self.verbs, request.verb) {
            return false;
        }
        match request.target {
            AccessTarget::Resource(target) => {
                has(&self.api_groups, target.group)
                    && self
                        .resources
                        .iter()
                        .any(|rule| matches_resource(rule, target.resource, target.subresource))
                    && (self.resource_names.is_empty()
                        || self.resource_names.iter().any(|name| name == target.name))
            }
            AccessTarget::Path(path) => self.non_resource_urls.iter().any(|url| covers_path(url, path)),
        }
    }

    /// Formats the rule for messages: `{APIGroups:[""], Resources:["pods"], Verbs:["get"]}`.
    ///
    /// Source: kubernetes `pkg/apis/rbac/v1/evaluation_helpers.go`, `CompactString`.
    pub(super) fn compact(&self) -> String {
        let members = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        let present = members.into_iter().filter(|(_, list)| !list.is_empty());
        let shown: Vec<String> = present.map(|(name, list)| format!("{name}:{}", quoted(list))).collect();
        format!("{{{}}}", shown.join(", "))
    }
}

/// Formats a list as Go's `%q` prints it.
pub(super) fn quoted(list: &[String]) -> String {
    let quoted: Vec<String> = list.iter().map(|text| quote(text)).collect();
    format!("[{}]", quoted.join(" "))
}

/// Returns whether a rule's resource matches: `*`, `RESOURCE`, `RESOURCE/SUBRESOURCE`, or `*/SUBRESOURCE`.
///
/// Rule: RBAC-06.
fn matches_resource(rule: &str, resource: &str, subresource: &str) -> bool {
    if rule == "*" {
        return true;
    }
    if subresource.is_empty() {
        return rule == resource;
    }
    // In an access review, a resource may contain a slash.
    rule.strip_suffix(subresource)
        .and_then(|rest| rest.strip_suffix('/'))
        .is_some_and(|rest| rest == "*" || rest == resource)
}

/// Returns whether a rule's path matches `path`. Several `*` at the end of a rule's path count as one.
///
/// Source: kubernetes `pkg/apis/rbac/v1/evaluation_helpers.go`, `NonResourceURLMatches`.
/// Rule: RBAC-07.
pub(super) fn covers_path(rule: &str, path: &str) -> bool {
    rule == path || (rule.ends_with('*') && path.starts_with(rule.trim_end_matches('*')))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::ResourceTarget;
    use super::*;
    use crate::attributes::UserInfo;

    #[track_caller]
    fn check(rule: &Value, verb: &str, target: AccessTarget<'_>, expected: bool) {
        let user = UserInfo::default();
        let request = AccessRequest { user: &user, verb, target };
        assert_eq!(PolicyRule::from_value(rule).allows(&request), expected, "{rule} {verb} {target:?}");
    }

    #[test]
    fn a_rule_allows_only_its_verbs_groups_resources_and_names() {
        let rule = json!({"verbs": ["get", "list"], "apiGroups": ["", "apps"],
            "resources": ["pods", "*/scale", "pods/log"], "resourceNames": ["a"]});
        let target = ResourceTarget { resource: "pods", name: "a", ..ResourceTarget::default() };
        for (verb, target, expected) in [
            ("get", target, true),
            ("watch", target, false),
            ("get", ResourceTarget { group: "apps", ..target }, true),
            ("get", ResourceTarget { group: "batch", ..target }, false),
            ("get", ResourceTarget { name: "b", ..target }, false),
            ("list", ResourceTarget { name: "", ..target }, false),
            ("get", ResourceTarget { subresource: "log", ..target }, true),
            ("get", ResourceTarget { subresource: "status", ..target }, false),
            ("get", ResourceTarget { resource: "x", subresource: "scale", ..target }, true),
            ("get", ResourceTarget { resource: "pods/log", ..target }, true),
            ("get", ResourceTarget { resource: "x/scale", ..target }, false),
        ] {
            check(&rule, verb, AccessTarget::Resource(target), expected);
        }
        check(&rule, "get", AccessTarget::Path("pods"), false);
    }

    #[test]
    fn a_star_matches_any_value() {
        let rule = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]});
        let target = ResourceTarget {
            group: "a",
            resource: "b",
            subresource: "c",
            name: "d",
            ..ResourceTarget::default()
        };
        check(&rule, "x", AccessTarget::Resource(target), true);
        check(&rule, "get", AccessTarget::Path("/x"), false);
        let rule = json!({"verbs": ["*"], "nonResourceURLs": ["*"]});
        check(&rule, "get", AccessTarget::Path("/x"), true);
        check(&rule, "get", AccessTarget::Resource(target), false);
    }

    #[test]
    fn a_path_rule_matches_exactly_or_by_prefix() {
        for (rule, path, expected) in [
            ("/healthz", "/healthz", true),
            ("/healthz", "/healthz/ping", false),
            ("/healthz/*", "/healthz/ping", true),
            ("/healthz/*", "/healthz", false),
            ("/healthz*", "/healthz", true),
            ("/a**", "/ab", true),
            ("/*/b", "/a/b", false),
            ("*", "/a", true),
        ] {
            let rule = json!({"verbs": ["get"], "nonResourceURLs": [rule]});
            check(&rule, "get", AccessTarget::Path(path), expected);
        }
    }
}
