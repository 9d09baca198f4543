//! The names that keep cases apart which run on one server at the same time.
//!
//! A case says `<id>` where a name must be its own, and `<ns>` for its first namespace. Both stand in recordings too.

use uuid::Uuid;

/// The names of one run of a case.
#[derive(Clone, Debug)]
pub struct Names {
    id: String,
}

/// The label of every namespace of a case; its value is the id of the run.
pub const CASE_LABEL: &str = "admit.example.com/case";

impl Names {
    /// Names that no other run has.
    pub fn random() -> Self {
        let id = Uuid::new_v4().simple().to_string();
        Self { id: std::iter::once('c').chain(id.chars().take(9)).collect() }
    }

    /// The text that no other run has.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The first namespace of the case.
    pub fn namespace(&self) -> String {
        format!("{}-ns", self.id)
    }

    /// The whole name of a webhook; one with a dot is whole already.
    pub fn webhook(&self, short: &str) -> String {
        if short.contains('.') { short.to_owned() } else { format!("{short}.{}.example.com", self.id) }
    }

    /// The whole name of a configuration: those of one case stand together in the order of dispatch.
    pub fn configuration(&self, short: &str) -> String {
        format!("{}-{short}", self.id)
    }

    /// The text of a case with the names of this run.
    pub fn expand(&self, text: &str) -> String {
        text.replace("<ns>", &self.namespace()).replace("<id>", &self.id)
    }

    /// What the server says, as the case would have written it.
    pub fn shorten(&self, text: &str) -> String {
        text.replace(&self.namespace(), "<ns>").replace(&self.id, "<id>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_expanded_is_shortened_again() {
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
