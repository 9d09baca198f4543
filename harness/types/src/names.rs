//! What the API accepts as a name, a label's key or a label's value.

pub use kubernetes_cel::names::{dns1035_label, dns1123_label, dns1123_subdomain, label_key, label_value};
