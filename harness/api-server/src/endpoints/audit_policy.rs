//! The audit policy: which requests are logged, and at which level.
//!
//! Source: apiserver pkg/apis/audit/v1/types.go; `pkg/audit/policy/{reader,checker}.go`; pkg/apis/audit/validation.

use kubernetes_admission::attributes::UserInfo;
use kubernetes_types::names::dns1123_subdomain;
use kubernetes_types::quoting::quote;
use kubernetes_types::status::{FieldError, aggregate};
use serde::Deserialize;
use serde_json::Value;

use super::audit_log::Stage;
use super::request_info::{RequestInfo, RequestObject};

/// An `audit.k8s.io/v1` Policy, the content of kube-apiserver's `--audit-policy-file`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditPolicy {
    #[serde(default, deserialize_with = "null_is_default")]
    rules: Vec<Rule>,
    #[serde(default, deserialize_with = "null_is_default")]
    omit_stages: Vec<String>,
    #[serde(default, deserialize_with = "null_is_default")]
    omit_managed_fields: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    #[serde(default, deserialize_with = "null_is_default")]
    level: String,
    #[serde(default, deserialize_with = "null_is_default")]
    users: Vec<String>,
    #[serde(default, deserialize_with = "null_is_default")]
    user_groups: Vec<String>,
    #[serde(default, deserialize_with = "null_is_default")]
    verbs: Vec<String>,
    #[serde(default, deserialize_with = "null_is_default")]
    resources: Vec<GroupResources>,
    #[serde(default, deserialize_with = "null_is_default")]
    namespaces: Vec<String>,
    #[serde(default, rename = "nonResourceURLs", deserialize_with = "null_is_default")]
    non_resource_urls: Vec<String>,
    #[serde(default, deserialize_with = "null_is_default")]
    omit_stages: Vec<String>,
    omit_managed_fields: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GroupResources {
    #[serde(default, deserialize_with = "null_is_default")]
    group: String,
    #[serde(default, deserialize_with = "null_is_default")]
    resources: Vec<String>,
    #[serde(default, deserialize_with = "null_is_default")]
    resource_names: Vec<String>,
}

fn null_is_default<'de, D: serde::Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// The audit level. Each level includes the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// The user, the time, the resource, and the result.
    Metadata,
    /// The data of `Metadata` and the request body.
    Request,
    /// The data of `Request` and the response body.
    RequestResponse,
}

impl Level {
    /// Parses a level; returns `None` for the level `None` and for an invalid level.
    fn parse(text: &str) -> Option<Self> {
        match text {
            "Metadata" => Some(Self::Metadata),
            "Request" => Some(Self::Request),
            "RequestResponse" => Some(Self::RequestResponse),
            _ => None,
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Metadata => "Metadata",
            Self::Request => "Request",
            Self::RequestResponse => "RequestResponse",
        }
    }
}

/// The audit settings for one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AuditSettings<'a> {
    pub(crate) level: Level,
    pub(crate) omit_managed_fields: bool,
    omitted: [&'a [String]; 2],
}

impl AuditSettings<'_> {
    /// Returns whether an event is logged at this stage.
    pub(crate) fn logs(&self, stage: Stage) -> bool {
        !self.omitted.iter().copied().flatten().any(|omitted| omitted == stage.as_str())
    }
}

const LEVELS: [&str; 4] = ["None", "Metadata", "Request", "RequestResponse"];
const STAGES: [&str; 4] = ["RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"];

/// The default policy logs all requests at the level `Request`. It omits the stage `RequestReceived`.
impl Default for AuditPolicy {
    fn default() -> Self {
        let everything = Rule { level: Level::Request.as_str().to_owned(), ..Rule::default() };
        Self {
            rules: vec![everything],
            omit_stages: vec![Stage::RequestReceived.as_str().to_owned()],
            omit_managed_fields: false,
        }
    }
}

impl AuditPolicy {
    /// Parses a policy. Ignores unknown fields; kube-apiserver also ignores them, and logs a warning.
    ///
    /// # Errors
    /// Returns an error if the policy is invalid. The message is kube-apiserver's, except for values of the wrong type.
    pub fn parse(document: &Value) -> Result<Self, String> {
        let text = |field| document.get(field).and_then(Value::as_str).unwrap_or_default();
        match (text("apiVersion"), text("kind")) {
            ("audit.k8s.io/v1", "Policy" | "") => {}
            ("audit.k8s.io/v1", kind @ ("PolicyList" | "Event" | "EventList")) => {
                return Err(format!(
                    "failed decoding: converting (v1.{kind}) to (audit.Policy): unknown conversion"
                ));
            }
            ("", "Policy" | "") => {
                let found = "audit.k8s.io/__internal, Kind=Policy";
                return Err(format!("unknown group version field {found} in policy"));
            }
            (version, kind) => {
                let place = match version {
                    "" => "the internal version of group \"audit.k8s.io\"".to_owned(),
                    version => format!("version {}", quote(version)),
                };
                return Err(format!(
                    "failed decoding: no kind {} is registered for {place} in scheme \"pkg/runtime/scheme.go:111\"",
                    quote(kind)
                ));
            }
        }
        let policy = Self::deserialize(document).map_err(|error| format!("failed decoding: {error}"))?;
        let errors: Vec<FieldError> = policy.errors();
        if !errors.is_empty() {
            return Err(aggregate(errors.iter().map(ToString::to_string)));
        }
        if policy.rules.is_empty() {
            return Err("loaded illegal policy with 0 rules".to_owned());
        }
        Ok(policy)
    }

    /// Returns the audit settings of the first rule that matches a request; `None` if the request is not logged.
    pub(crate) fn of_request(
        &self,
        user: Option<&UserInfo>,
        info: &RequestInfo,
    ) -> Option<AuditSettings<'_>> {
        let rule = self.rules.iter().find(|rule| rule.matches(user, info))?;
        Some(AuditSettings {
            level: Level::parse(&rule.level)?,
            omit_managed_fields: rule.omit_managed_fields.unwrap_or(self.omit_managed_fields),
            omitted: [&self.omit_stages, &rule.omit_stages],
        })
    }

    fn errors(&self) -> Vec<FieldError> {
        let mut errors = wrong_stages(&self.omit_stages, "omitStages");
        for (index, rule) in self.rules.iter().enumerate() {
            errors.extend(rule.errors(&format!("rules[{index}]")));
        }
        errors
    }
}

fn wrong_stages(stages: &[String], path: &str) -> Vec<FieldError> {
    let wrong = stages.iter().enumerate().filter(|(_, stage)| !STAGES.contains(&stage.as_str()));
    let detail = format!("allowed stages are {}", STAGES.join(","));
    wrong
        .map(|(index, stage)| {
            FieldError::invalid(format!("{path}[{index}]"), Value::from(stage.as_str()), &detail)
        })
        .collect()
}

impl Rule {
    fn errors(&self, path: &str) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let level = format!("{path}.level");
        if self.level.is_empty() {
            errors.push(FieldError::required(level, ""));
        } else if !LEVELS.contains(&self.level.as_str()) {
            let levels = LEVELS.map(|level| Value::from(level).to_string()).join(", ");
            errors.push(FieldError::not_supported(level, Value::from(self.level.as_str()), levels));
        }
        for (index, url) in self.non_resource_urls.iter().enumerate() {
            if url == "*" {
                continue;
            }
            let wrong = |why| {
                FieldError::invalid(
                    format!("{path}.nonResourceURLs[{index}]"),
                    Value::from(url.as_str()),
                    why,
                )
            };
            if !url.starts_with('/') {
                errors.push(wrong("non-resource URL rules must begin with a '/' character"));
            }
            if url.trim_end_matches('*').contains('*') || url.ends_with("**") {
                errors.push(wrong("non-resource URL wildcards '*' must be the final character of the rule"));
            }
        }
        for resources in &self.resources {
            if !resources.group.is_empty() && resources.group != "*" {
                let wrong = dns1123_subdomain(&resources.group);
                if !wrong.is_empty() {
                    let group = Value::from(resources.group.as_str());
                    errors.push(FieldError::invalid(
                        format!("{path}.resources.group"),
                        group,
                        wrong.join(","),
                    ));
                }
            }
            if !resources.resource_names.is_empty() && resources.resources.is_empty() {
                errors.push(FieldError::invalid(
                    format!("{path}.resources.resourceNames"),
                    Value::from(resources.resource_names.clone()),
                    "using resourceNames requires at least one resource",
                ));
            }
        }
        errors.extend(wrong_stages(&self.omit_stages, &format!("{path}.omitStages")));
        if !self.non_resource_urls.is_empty() && self.is_about_resources() {
            errors.push(FieldError::invalid(
                format!("{path}.nonResourceURLs"),
                Value::from(self.non_resource_urls.clone()),
                "rules cannot apply to both regular resources and non-resource URLs",
            ));
        }
        errors
    }

    fn matches(&self, user: Option<&UserInfo>, info: &RequestInfo) -> bool {
        let any = |wanted: &[String], found: &dyn Fn(&String) -> bool| {
            wanted.is_empty() || wanted.iter().any(found)
        };
        any(&self.users, &|name| user.is_some_and(|user| user.username == *name))
            && any(&self.user_groups, &|group| user.is_some_and(|user| user.groups.contains(group)))
            && any(&self.verbs, &|verb| info.verb == *verb)
            && match &info.object {
                Some(object) => {
                    (self.non_resource_urls.is_empty() || self.is_about_resources())
                        && any(&self.namespaces, &|namespace| object.namespace == *namespace)
                        && (self.resources.is_empty() || self.resources.iter().any(|it| it.matches(object)))
                }
                None => {
                    !self.is_about_resources()
                        && any(&self.non_resource_urls, &|url| path_matches(&info.path, url))
                }
            }
    }

    fn is_about_resources(&self) -> bool {
        !(self.resources.is_empty() && self.namespaces.is_empty())
    }
}

impl GroupResources {
    fn matches(&self, object: &RequestObject) -> bool {
        if self.group != "*" && self.group != object.group {
            return false;
        }
        if !self.resource_names.is_empty() && !self.resource_names.contains(&object.name) {
            // Validation rejects names without resources.
            return false;
        }
        self.resources.is_empty() || self.resources.iter().any(|wanted| resource_matches(wanted, object))
    }
}

/// Returns whether the object matches `wanted`, an item in the `resources` of a rule.
///
/// `wanted` is `*`, `RESOURCE`, `RESOURCE/SUBRESOURCE`, `RESOURCE/*` (which includes the resource itself), or
/// `*/SUBRESOURCE`.
fn resource_matches(wanted: &str, object: &RequestObject) -> bool {
    let RequestObject { resource, subresource, .. } = object;
    if wanted == "*" {
        return true;
    }
    match wanted.split_once('/') {
        None => wanted == resource && subresource.is_empty(),
        Some((first, "*")) if first == resource => true,
        Some(("*", second)) => !subresource.is_empty() && second == subresource,
        Some((first, second)) => first == resource && second == subresource,
    }
}

fn path_matches(path: &str, wanted: &str) -> bool {
    wanted == path
        || wanted.strip_suffix('*').is_some_and(|start| path.starts_with(start.trim_end_matches('*')))
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::json;

    use super::*;
    use crate::apimachinery::query::Query;

    fn policy(rules: &Value) -> AuditPolicy {
        AuditPolicy::parse(&json!({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}))
            .unwrap()
    }

    #[test]
    fn first_matching_rule_wins() {
        let policy = policy(&json!([
            {"level": "None", "users": ["system:kube-proxy"]},
            {"level": "None", "nonResourceURLs": ["/healthz*", "/version"]},
            {"level": "RequestResponse", "resources": [{"group": "apps", "resources": ["deployments/*"]}]},
            {"level": "Request", "resources": [{"resources": ["*/status", "secrets"], "resourceNames": ["a"]}]},
            {"level": "Metadata", "namespaces": ["ns"], "verbs": ["get", "list"], "userGroups": ["dev"]},
        ]));
        let level = |user: &str, groups: &[&str], method: Method, path: &str| {
            let groups = groups.iter().map(|group| (*group).to_owned()).collect();
            let user = UserInfo { username: user.to_owned(), groups, ..UserInfo::default() };
            let info = RequestInfo::new(&method, path, &Query::parse(""));
            policy.of_request(Some(&user), &info).map(|audited| audited.level.as_str())
        };
        for (user, groups, method, path, expected) in [
            ("system:kube-proxy", &["dev"][..], Method::GET, "/api/v1/namespaces/ns/pods", None),
            ("a", &["dev"], Method::GET, "/api/v1/namespaces/ns/pods", Some("Metadata")),
            ("a", &[], Method::GET, "/api/v1/namespaces/ns/pods", None),
            ("a", &["dev"], Method::POST, "/api/v1/namespaces/ns/pods", None),
            ("a", &["dev"], Method::GET, "/healthz/ping", None),
            ("a", &["dev"], Method::GET, "/apis/apps/v1/namespaces/b/deployments", Some("RequestResponse")),
            (
                "a",
                &[],
                Method::PUT,
                "/apis/apps/v1/namespaces/b/deployments/x/scale",
                Some("RequestResponse"),
            ),
            ("a", &[], Method::PUT, "/apis/apps/v1/namespaces/b/statefulsets/x/scale", None),
            ("a", &[], Method::PUT, "/api/v1/namespaces/b/pods/a/status", Some("Request")),
            ("a", &[], Method::PUT, "/api/v1/namespaces/b/pods/b/status", None),
            ("a", &[], Method::GET, "/api/v1/namespaces/b/secrets/a", Some("Request")),
            ("a", &[], Method::POST, "/api/v1/namespaces/b/secrets", None),
        ] {
            assert_eq!(level(user, groups, method, path), expected, "{user} {path}");
        }
    }

    #[test]
    fn invalid_policy_has_upstream_errors() {
        let v1 = |more: Value| {
            let mut policy = json!({"apiVersion": "audit.k8s.io/v1", "kind": "Policy"});
            policy.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            policy
        };
        let stages = "allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic";
        let everything = json!({
            "level": "All", "nonResourceURLs": ["x", "/a*b"], "namespaces": ["a"], "omitStages": ["x"],
            "resources": [{"group": "A/v1", "resourceNames": ["a"]}],
        });
        // The messages that kube-apiserver 1.37.1 logs after `loading audit policy file: `.
        for (document, expected) in [
            (json!({}), "unknown group version field audit.k8s.io/__internal, Kind=Policy in policy".to_owned()),
            (
                json!({"apiVersion": "audit.k8s.io/v1beta1", "kind": "Policy", "rules": []}),
                "failed decoding: no kind \"Policy\" is registered for version \"audit.k8s.io/v1beta1\" in scheme \
                 \"pkg/runtime/scheme.go:111\""
                    .to_owned(),
            ),
            (
                v1(json!({"kind": "PolicyList"})),
                "failed decoding: converting (v1.PolicyList) to (audit.Policy): unknown conversion".to_owned(),
            ),
            (v1(json!({"rulez": []})), "loaded illegal policy with 0 rules".to_owned()),
            (
                v1(json!({"omitStages": ["Never"], "rules": [{}]})),
                format!("[omitStages[0]: Invalid value: \"Never\": {stages}, rules[0].level: Required value]"),
            ),
            (
                v1(json!({"rules": [everything]})),
                format!(
                    "[rules[0].level: Unsupported value: \"All\": supported values: \"None\", \"Metadata\", \"Request\", \
                     \"RequestResponse\", rules[0].nonResourceURLs[0]: Invalid value: \"x\": non-resource URL rules must \
                     begin with a '/' character, rules[0].nonResourceURLs[1]: Invalid value: \"/a*b\": non-resource URL \
                     wildcards '*' must be the final character of the rule, rules[0].resources.group: Invalid value: \
                     \"A/v1\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
                     '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for \
                     validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'), \
                     rules[0].resources.resourceNames: Invalid value: [\"a\"]: using resourceNames requires at least one \
                     resource, rules[0].omitStages[0]: Invalid value: \"x\": {stages}, rules[0].nonResourceURLs: Invalid \
                     value: [\"x\",\"/a*b\"]: rules cannot apply to both regular resources and non-resource URLs]"
                ),
            ),
        ] {
            assert_eq!(AuditPolicy::parse(&document), Err(expected));
        }
    }
}
