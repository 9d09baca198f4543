//! Parses the query of a request.

use std::collections::HashMap;

/// The query of a request: the values of each parameter, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query {
    parameters: HashMap<String, Vec<String>>,
}

impl Query {
    /// Parses a query in linear time, because the server parses it before authentication.
    pub(crate) fn parse(query: &str) -> Self {
        let mut parameters: HashMap<String, Vec<String>> = HashMap::new();
        for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
            parameters.entry(key.into_owned()).or_default().push(value.into_owned());
        }
        Self { parameters }
    }

    /// Sets a parameter to a single value.
    pub(crate) fn set(&mut self, key: &str, value: &str) {
        self.parameters.insert(key.to_owned(), vec![value.to_owned()]);
    }

    pub(crate) fn all(&self, key: &str) -> &[String] {
        self.parameters.get(key).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn first(&self, key: &str) -> Option<&str> {
        self.all(key).first().map(String::as_str)
    }
}
