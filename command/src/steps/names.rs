//! The names that keep scenarios apart which run on one server at the same time.

use std::fmt::Display;

use uuid::Uuid;

/// The names of one scenario.
#[derive(Debug)]
pub(crate) struct Names {
    id: String,
    groups: Vec<String>,
}

/// The label of every namespace that a scenario makes; its value is the scenario's own.
pub(crate) const SCENARIO_LABEL: &str = "admit.example.com/scenario";

/// The domain that gives a webhook's name its second and third segment.
const WEBHOOK_DOMAIN: &str = "admit.example.com";

impl Names {
    /// Names that no other scenario has.
    pub(crate) fn random() -> Self {
        let mut id = Uuid::new_v4().simple().to_string();
        id.truncate(8);
        Self { id: format!("a{id}"), groups: Vec::new() }
    }

    /// What makes this scenario's names its own.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The namespace of its objects.
    pub(crate) fn namespace(&self) -> String {
        format!("admit-{}", self.id)
    }

    /// The name of a fake, which `what` tells from the others of the scenario.
    pub(crate) fn fake(&self, what: impl Display) -> String {
        format!("{}-{what}", self.id)
    }

    /// The name of both webhook configurations.
    pub(crate) fn configuration(&self) -> String {
        format!("admit-{}", self.id)
    }

    /// The whole name of the webhook that the feature calls `short`: itself if it is a domain already.
    pub(crate) fn webhook(short: &str) -> String {
        let short = short.to_lowercase().replace(' ', "-");
        if short.split('.').count() >= 3 { short } else { format!("{short}.{WEBHOOK_DOMAIN}") }
    }

    /// From now on `group` stands for a group that only this scenario has.
    pub(crate) fn claim_group(&mut self, group: &str) {
        if !self.groups.iter().any(|known| known == group) {
            self.groups.push(group.to_owned());
        }
    }

    /// The text with each claimed group replaced by the scenario's own.
    pub(crate) fn expand(&self, text: &str) -> String {
        let mut expanded = text.to_owned();
        for group in &self.groups {
            expanded = expanded.replace(group.as_str(), &format!("{}.{group}", self.id));
        }
        expanded
    }

    /// The text as the feature would have written it; the namespace keeps its name, also in that of a service.
    pub(crate) fn shorten(&self, text: &str) -> String {
        let (id, namespace) = (format!("{}.", self.id), self.namespace());
        let parts: Vec<String> = text.split(&namespace).map(|part| part.replace(&id, "")).collect();
        parts.join(&namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claimed_group_stands_for_one_that_only_this_scenario_has() {
        let mut names = Names::random();
        names.claim_group("shop.example.com");
        let expanded = names.expand("apiVersion: shop.example.com/v1");
        assert_eq!(expanded, format!("apiVersion: {}.shop.example.com/v1", names.id()));
        assert_eq!(names.shorten(&expanded), "apiVersion: shop.example.com/v1");
    }

    #[test]
    fn a_service_keeps_its_namespace() {
        let mut names = Names::random();
        names.claim_group("shop.example.com");
        let text = format!("policy.{}.svc of {}.shop.example.com", names.namespace(), names.id());
        assert_eq!(names.shorten(&text), format!("policy.{}.svc of shop.example.com", names.namespace()));
    }

    #[test]
    fn a_short_webhook_name_becomes_a_domain() {
        assert_eq!(Names::webhook("sidecar"), "sidecar.admit.example.com");
        assert_eq!(Names::webhook("Blue only"), "blue-only.admit.example.com");
        assert_eq!(Names::webhook("a.b.c"), "a.b.c");
    }
}
