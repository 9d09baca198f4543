//! Fields that the API server ignores: warnings about those of manifests, and its own warnings.

use harness::attributes::GroupVersionKind;
use harness::server::ClusterFixture;
use harness::verify::similar_name::{similar_field, suggestion};

use crate::documents::Document;
use crate::screen;

/// Prints a warning for each field of the objects that their kind does not have: the API server ignores it.
pub(crate) fn warn<'a>(documents: impl Iterator<Item = &'a Document> + Clone) {
    let cluster_fixture = ClusterFixture::new(documents.clone().map(|document| &document.object));
    for Document { place, object } in documents {
        for field in cluster_fixture.unknown_fields(object).unwrap_or_default() {
            let similar = suggestion(similar_field(&GroupVersionKind::from_object(object), &field));
            let field = output::one_line(&field).to_string();
            screen::status!("warning: {place}: the API server ignores the unknown field {field}{similar}");
        }
    }
}

/// Returns the path of the field in a warning of the API server about an unknown field.
pub(crate) fn unknown_field(warning: &str) -> Option<&str> {
    warning.strip_prefix("unknown field \"")?.strip_suffix('"')
}
