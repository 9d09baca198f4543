//! Warns about fields of manifests that the API server ignores.

use harness::attributes::GroupVersionKind;
use harness::server::ClusterFixture;
use harness::verify::similar_name::similar_field;

use crate::documents::Document;
use crate::screen;

/// Prints a warning for each field of the objects that their kind does not have: the API server ignores it.
pub(crate) fn warn<'a>(documents: impl Iterator<Item = &'a Document> + Clone) {
    let cluster_fixture = ClusterFixture::new(documents.clone().map(|document| &document.object));
    for Document { place, object } in documents {
        for field in cluster_fixture.unknown_fields(object).unwrap_or_default() {
            let similar = similar_field(&GroupVersionKind::from_object(object), &field);
            let similar = similar.map(|similar| format!(" (did you mean {similar}?)")).unwrap_or_default();
            let field = output::one_line(&field).to_string();
            screen::status!("warning: {place}: the API server ignores the unknown field {field}{similar}");
        }
    }
}
