//! Validates names, label keys, and label values.

pub use kubernetes_cel::names::{dns1035_label, dns1123_label, dns1123_subdomain, label_key, label_value};
