//! Parses the name of a webhook's Service.

use std::fmt;
use std::str::FromStr;

use certs::Name;

use crate::error::Error;

/// The namespace and the name of a webhook's Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServiceName {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl FromStr for ServiceName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text.split_once('/') {
            Some((namespace, name)) if is_label(namespace) && is_label(name) => {
                Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
            }
            Some(_) | None => Err(Error::ServiceName(text.to_owned())),
        }
    }
}

impl fmt::Display for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Returns whether a string is a DNS label. The names of Services and namespaces must be DNS labels.
fn is_label(text: &str) -> bool {
    !text.contains('.') && matches!(text.parse(), Ok(Name::Dns(_)))
}
