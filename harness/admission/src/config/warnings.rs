//! Generates the API's warnings about configurations that it accepts.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{list, text};

/// The groups and resources of the reviews for which webhooks are never called.
///
/// Source: kubernetes pkg/kubeapiserver/admission/exclusion/resources.go.
pub const EXCLUDED: [(&str, &str); 6] = [
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
];

/// Returns the warnings for a create or an update of `configuration`: one for each rule and resource without effect.
///
/// Source: kubernetes pkg/apis/admissionregistration/validation/warnings.go.
/// Rule: VLD-34.
pub fn warnings(configuration: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    for (index, webhook) in list(configuration, "webhooks").iter().enumerate() {
        for (rule_index, rule) in list(webhook, "rules").iter().enumerate() {
            for (group, resource) in excluded(rule) {
                warnings.push(format!(
                    "webhooks[{index}].rules[{rule_index}]: {resource}.{group} is excluded from admission webhooks; \
                     this rule will have no effect"
                ));
            }
        }
    }
    warnings
}

/// Returns the distinct resources in a rule for which webhooks are never called; empty for a rule with `*`.
fn excluded(rule: &Value) -> Vec<(&str, &str)> {
    let texts = |field| list(rule, field).iter().filter_map(Value::as_str).collect::<Vec<_>>();
    let (groups, resources) = (texts("apiGroups"), texts("resources"));
    if groups.contains(&"*") || resources.contains(&"*") {
        return Vec::new();
    }
    // Deduplicate names and keep only those in the table: a rule may contain a hundred thousand groups and resources.
    let (mut seen_groups, mut seen_resources) = (BTreeSet::new(), BTreeSet::new());
    let groups = groups
        .into_iter()
        .filter(|name| EXCLUDED.iter().any(|(group, _)| group == name) && seen_groups.insert(*name));
    let resources: Vec<&str> = resources
        .into_iter()
        .filter(|name| EXCLUDED.iter().any(|(_, resource)| resource == name) && seen_resources.insert(*name))
        .collect();
    groups
        .flat_map(|group| resources.iter().map(move |resource| (group, *resource)))
        .filter(|named| EXCLUDED.contains(named))
        .collect()
}

/// Returns the warning for an update of a configuration with a reserved name; a create is an error instead.
///
/// Source: kubernetes `pkg/apis/admissionregistration/validation/static_suffix.go`, `WarningsForStaticSuffix`.
/// Rule: VLD-33.
pub fn update_warnings(configuration: &Value) -> Vec<String> {
    let name = configuration.get("metadata").and_then(|metadata| text(metadata, "name")).unwrap_or_default();
    let reserved = name.ends_with(super::STATIC_SUFFIX).then(|| {
        format!(
            "metadata.name: names ending with \"{}\" are reserved for static manifest-based configurations and \
             cannot be managed via the API",
            super::STATIC_SUFFIX
        )
    });
    reserved.into_iter().chain(warnings(configuration)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(groups: &[&str], resources: &[&str], expect: &[&str]) {
        let rule = json!({"apiGroups": groups, "resources": resources});
        let given = warnings(&json!({"webhooks": [{"rules": []}, {"rules": [{}, rule]}]}));
        let expect: Vec<String> = expect
            .iter()
            .map(|resource| {
                format!(
                    "webhooks[1].rules[1]: {resource} is excluded from admission webhooks; this rule will have no effect"
                )
            })
            .collect();
        assert_eq!(given, expect, "{rule}");
    }

    #[test]
    fn each_excluded_resource_in_a_rule_causes_a_warning() {
        check(
            &["authentication.k8s.io", "authorization.k8s.io"],
            &["tokenreviews", "pods", "tokenreviews", "subjectaccessreviews"],
            &["tokenreviews.authentication.k8s.io", "subjectaccessreviews.authorization.k8s.io"],
        );
        check(&["apps"], &["tokenreviews"], &[]);
    }

    #[test]
    fn a_rule_with_a_star_causes_no_warning() {
        check(&["*", "authentication.k8s.io"], &["tokenreviews"], &[]);
        check(&["authentication.k8s.io"], &["tokenreviews", "*"], &[]);
    }

    #[test]
    fn an_update_with_a_reserved_name_causes_a_warning() {
        let named = |name: &str| update_warnings(&json!({"metadata": {"name": name}}));
        assert_eq!(
            named("a.static.k8s.io"),
            ["metadata.name: names ending with \".static.k8s.io\" are reserved for static manifest-based \
                 configurations and cannot be managed via the API"]
        );
        assert!(named("a").is_empty());
    }
}
