//! Parses the query of a request.

use std::collections::HashMap;

/// The values of each parameter, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Query {
    parameters: HashMap<String, Vec<String>>,
}

impl Query {
    /// Parses a query in linear time, because the server parses it before authentication.
    pub(super) fn parse(query: &str) -> Self {
        let mut parameters: HashMap<String, Vec<String>> = HashMap::new();
        for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
            parameters.entry(key.into_owned()).or_default().push(value.into_owned());
        }
        Self { parameters }
    }

    /// Sets a parameter to this single value.
    pub(super) fn set(&mut self, key: &str, value: &str) {
        self.parameters.insert(key.to_owned(), vec![value.to_owned()]);
    }

    pub(super) fn all(&self, key: &str) -> &[String] {
        self.parameters.get(key).map_or(&[], Vec::as_slice)
    }

    pub(super) fn first(&self, key: &str) -> Option<&str> {
        self.all(key).first().map(String::as_str)
    }
}
