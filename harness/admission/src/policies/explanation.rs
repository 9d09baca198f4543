//! Explains why a policy or a binding does not match a request.

use crate::admission_run::AdmissionRun;
use crate::matching::{request, rule_mismatch, rules, unmet_namespace_selector, unmet_object_selector};
use crate::policy::{MatchField, MatchResources, PolicyMismatch};

/// Returns the mismatch for `field`, with the compared values if the admission run explains policies.
pub(super) fn mismatch(
    resources: &MatchResources,
    field: MatchField,
    run: &AdmissionRun<'_>,
) -> PolicyMismatch {
    let compared = if run.explains_policies() { compared(resources, field, run) } else { Vec::new() };
    PolicyMismatch { field, compared }
}

fn compared(resources: &MatchResources, field: MatchField, run: &AdmissionRun<'_>) -> Vec<String> {
    let attributes = run.attributes();
    match field {
        MatchField::NamespaceSelector => {
            let namespace = run.state().namespace(&attributes.namespace);
            unmet_namespace_selector(&resources.namespace_selector, attributes, namespace.as_deref())
        }
        MatchField::ObjectSelector => unmet_object_selector(&resources.object_selector, attributes),
        MatchField::ResourceRules => {
            let mismatches = resources.resource_rules.iter().enumerate().filter_map(|(index, named)| {
                let mismatch = rule_mismatch(&named.rule, attributes, resources.match_policy);
                let mismatch = mismatch.or_else(|| {
                    let names = serde_json::json!(named.resource_names);
                    let name = serde_json::Value::from(attributes.name.as_str());
                    (!named.has_name(&attributes.name))
                        .then(|| format!("resourceNames has {names}, but the request has {name}"))
                });
                Some(format!("resourceRules[{index}].{}", mismatch?))
            });
            mismatches.collect()
        }
        MatchField::ExcludeResourceRules => {
            let own = request(attributes, &attributes.resource);
            let rule = resources
                .exclude_resource_rules
                .iter()
                .position(|named| rules::matches(&named.rule, own) && named.has_name(&attributes.name));
            vec![match rule {
                Some(index) => format!("excludeResourceRules[{index}] matches the request"),
                None => "excludeResourceRules match an equivalent resource".to_owned(),
            }]
        }
        MatchField::Exempt => Vec::new(),
    }
}
