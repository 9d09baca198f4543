//! Describes the rules of a webhook that do not match a request.

use harness::attributes::Attributes;
use harness::config::{Rule, Webhook};
use harness::matching;
use harness::server::ApiServer;
use harness::verify::similar_name::most_similar;

/// Describes for each rule of a webhook the fields that do not match the request: `rules[0].resources has …`.
///
/// Points out a resource that `server` does not serve and whose name is similar to that of the requested resource.
pub(crate) fn unmatched_rules<'a>(
    webhook: &'a Webhook,
    attributes: &'a Attributes,
    server: &'a ApiServer,
) -> impl Iterator<Item = String> + 'a {
    // The name of a served resource is not a misspelling.
    let is_unknown = |name: &&str| !server.serves_in_any_group(name);
    let describe = move |(index, rule, mismatch): (usize, &Rule, String)| {
        let unknown = rule.resources.iter().map(String::as_str).filter(is_unknown);
        let is_misspelled = mismatch.contains("resources has ")
            && most_similar(&attributes.resource.resource, unknown).is_some();
        let suggestion = if is_misspelled { " (is the resource name misspelled?)" } else { "" };
        format!("rules[{index}].{mismatch}{suggestion}")
    };
    matching::unmatched_rules(webhook, attributes).map(describe)
}
