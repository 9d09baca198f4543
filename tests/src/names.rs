//! Generates the names that separate cases that run concurrently on one server.
//!
//! A case uses `<id>` in unique names, and `<ns>` for its first namespace. Recordings also contain both placeholders.

use uuid::Uuid;

/// The names of one run of a case.
#[derive(Clone, Debug)]
pub struct Names {
    id: String,
}

/// The label of every namespace of a case; its value is the ID of the run.
pub const CASE_LABEL: &str = "admit.example.com/case";

/// The first label of the marker webhook's name.
pub(crate) const MARKER: &str = "marker";

impl Names {
    /// Returns random names that no other run uses.
    pub fn random() -> Self {
        let id = Uuid::new_v4().simple().to_string();
        Self { id: std::iter::once('c').chain(id.chars().take(9)).collect() }
    }

    /// Returns the unique ID of the run.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the name of the case's first namespace.
    pub fn namespace(&self) -> String {
        format!("{}-ns", self.id)
    }

    /// Returns the full name of a webhook. A name with a dot is already complete.
    pub fn webhook(&self, short: &str) -> String {
        if short.contains('.') { short.to_owned() } else { format!("{short}.{}.example.com", self.id) }
    }

    /// Returns the full name of a configuration. Configurations of one case are adjacent in dispatch order.
    pub fn configuration(&self, short: &str) -> String {
        format!("{}-{short}", self.id)
    }

    /// Replaces the placeholders in a case with the names of this run.
    pub fn expand(&self, text: &str) -> String {
        text.replace("<ns>", &self.namespace()).replace("<id>", &self.id)
    }

    /// Replaces the names of this run in server output with the placeholders.
    pub fn shorten(&self, text: &str) -> String {
        text.replace(&self.namespace(), "<ns>").replace(&self.id, "<id>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expanded_names_are_shortened_again() {
        let names = Names::random();
        let text = "configmaps \"x\" in <ns>, group <id>.example.com";
        assert_ne!(names.expand(text), text);
        assert_eq!(names.shorten(&names.expand(text)), text);
    }

    #[test]
    fn a_webhook_with_a_dot_keeps_its_name() {
        let names = Names::random();
        assert_eq!(names.webhook("a.b.c"), "a.b.c");
        assert_eq!(names.shorten(&names.webhook("a")), "a.<id>.example.com");
    }
}
