//! Filters the calls in a journal.

use crate::Entry;

/// A filter for calls; the default matches all calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Filter {
    /// The name of the fake; `None` matches all fakes.
    pub fake: Option<String>,
    /// The number that the call's number must exceed.
    pub after: u64,
    /// The operation of the review, such as `CREATE`; `None` matches all calls.
    pub operation: Option<String>,
    /// The namespace of the object, or an empty string for cluster-scoped objects; `None` matches all calls.
    pub namespace: Option<String>,
}

impl Filter {
    /// Returns whether the filter matches a call.
    pub fn matches(&self, entry: &Entry) -> bool {
        let subject = entry.subject.as_ref();
        let is = |wanted: &Option<String>, there: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| there == Some(wanted))
        };
        entry.number > self.after
            && is(&self.fake, Some(&entry.fake))
            && is(&self.operation, subject.map(|subject| subject.operation.as_str()))
            && is(&self.namespace, subject.map(|subject| subject.namespace.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::tests::entry;
    use crate::journal::{Entry, Subject};

    #[test]
    fn every_condition_must_hold() {
        let subject =
            Subject { operation: "CREATE".to_owned(), namespace: "demo".to_owned(), ..Subject::default() };
        let call = Entry { number: 3, subject: Some(subject), ..entry(1) };
        let check =
            |filter: Filter, expected: bool| assert_eq!(filter.matches(&call), expected, "{filter:?}");
        let some = |text: &str| Some(text.to_owned());
        check(Filter::default(), true);
        check(Filter { fake: some("a.b.c"), ..Filter::default() }, true);
        check(Filter { fake: some("other"), ..Filter::default() }, false);
        check(Filter { after: 2, ..Filter::default() }, true);
        check(Filter { after: 3, ..Filter::default() }, false);
        check(Filter { operation: some("CREATE"), namespace: some("demo"), ..Filter::default() }, true);
        check(Filter { operation: some("UPDATE"), namespace: some("demo"), ..Filter::default() }, false);
        check(Filter { operation: some("CREATE"), namespace: some(""), ..Filter::default() }, false);
    }

    #[test]
    fn body_without_a_review_does_not_match_an_operation() {
        let filter = Filter { operation: Some(String::new()), ..Filter::default() };
        assert!(!filter.matches(&Entry { number: 1, ..entry(1) }));
    }
}
