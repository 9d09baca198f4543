//! Handles watches by path: `/api/v1/watch/…` and `/apis/GROUP/VERSION/watch/…`.

use http::Method;
use kubernetes_types::status::Status;

use super::route::method_not_allowed;
use crate::apimachinery::query::Query;
use crate::registry::request::Target;
use crate::registry::selectors::Selectors;

/// Converts a path below `/watch/` to a collection with a watch query. A name in the path becomes a field selector.
///
/// # Errors
/// Returns 405 for methods other than GET, or 400 for a field selector that does not select the name.
///
/// Source: apiserver pkg/endpoints/handlers/get.go, `ListResource` and `listOpts`.
/// Rule: LST-10.
pub(crate) fn as_list(mut target: Target, method: &Method, query: &mut Query) -> Result<Target, Box<Status>> {
    if method != Method::GET {
        return Err(method_not_allowed());
    }
    let name = std::mem::take(&mut target.name);
    if !name.is_empty() {
        let selection = Selectors::parse(query)?.for_resource(&target.resource)?;
        if !selection.has_fields() {
            query.set("fieldSelector", &format!("metadata.name={name}"));
        } else if selection.name() != Some(&name) {
            let why = "fieldSelector metadata.name doesn't match requested name";
            return Err(Box::new(Status::bad_request(why)));
        }
    }
    query.set("watch", "true");
    Ok(target)
}
