//! Creates unique names. They isolate scenarios that run on the same server at the same time.

use std::fmt::Display;

use uuid::Uuid;

/// The unique names of a scenario.
#[derive(Debug)]
pub(crate) struct Names {
    id: String,
    groups: Vec<String>,
}

/// The label of every namespace of a scenario; its value is unique to the scenario.
pub(crate) const SCENARIO_LABEL: &str = "admit.example.com/scenario";

/// The domain that is appended to a webhook's short name.
const WEBHOOK_DOMAIN: &str = "admit.example.com";

impl Names {
    /// Creates the names of a new scenario.
    pub(crate) fn random() -> Self {
        let mut id = Uuid::new_v4().simple().to_string();
        id.truncate(8);
        Self { id: format!("a{id}"), groups: Vec::new() }
    }

    /// Returns the unique ID that all names of this scenario contain.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Returns the namespace of the scenario.
    pub(crate) fn namespace(&self) -> String {
        format!("admit-{}", self.id)
    }

    /// Returns the name of a fake; `what` distinguishes the fakes of one scenario.
    pub(crate) fn fake(&self, what: impl Display) -> String {
        format!("{}-{what}", self.id)
    }

    /// Returns the in-cluster name of a configuration that the scenario loads.
    pub(crate) fn loaded_configuration(&self, name: &str) -> String {
        format!("{name}-{}", self.id)
    }

    /// Returns the name of both webhook configurations of the scenario.
    pub(crate) fn configuration(&self) -> String {
        format!("admit-{}", self.id)
    }

    /// Returns the full name of a webhook; a name with at least three labels is already a full name.
    pub(crate) fn webhook(short: &str) -> String {
        let short = short.to_lowercase().replace(' ', "-");
        if short.split('.').count() >= 3 { short } else { format!("{short}.{WEBHOOK_DOMAIN}") }
    }

    /// Registers an API group, so that [`Names::expand`] replaces it with a unique group.
    pub(crate) fn claim_group(&mut self, group: &str) {
        if !self.groups.iter().any(|known| known == group) {
            self.groups.push(group.to_owned());
        }
    }

    /// Returns `text` with each registered API group replaced with its unique group.
    pub(crate) fn expand(&self, text: &str) -> String {
        let mut expanded = text.to_owned();
        for group in &self.groups {
            expanded = expanded.replace(group.as_str(), &format!("{}.{group}", self.id));
        }
        expanded
    }

    /// Returns `text` with each unique group replaced with the name in the feature file. The namespace is not replaced.
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
    fn claimed_group_is_replaced_by_a_unique_group() {
        let mut names = Names::random();
        names.claim_group("shop.example.com");
        let expanded = names.expand("apiVersion: shop.example.com/v1");
        assert_eq!(expanded, format!("apiVersion: {}.shop.example.com/v1", names.id()));
        assert_eq!(names.shorten(&expanded), "apiVersion: shop.example.com/v1");
    }

    #[test]
    fn namespace_in_a_service_name_is_kept() {
        let mut names = Names::random();
        names.claim_group("shop.example.com");
        let text = format!("policy.{}.svc of {}.shop.example.com", names.namespace(), names.id());
        assert_eq!(names.shorten(&text), format!("policy.{}.svc of shop.example.com", names.namespace()));
    }

    #[test]
    fn short_webhook_name_becomes_a_domain() {
        assert_eq!(Names::webhook("sidecar"), "sidecar.admit.example.com");
        assert_eq!(Names::webhook("Blue only"), "blue-only.admit.example.com");
        assert_eq!(Names::webhook("a.b.c"), "a.b.c");
    }
}
