//! Plans the requests for the objects under review, and the objects that must exist before the requests.

mod admission_review;
mod subresource;

use harness::attributes::{GroupVersionKind, Operation};
use harness::chain::Request;
use harness::server::{ApiServer, ResourceName};
use serde_json::Value;

use super::arguments::{DryRun, Review};
use crate::Failure;
use crate::documents::{Document, DocumentLocation};

/// A request and the object that must exist before it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Planned {
    /// The location of the object under review.
    pub(super) place: DocumentLocation,
    /// The request to send.
    pub(super) request: Request,
    /// The object that must exist before the request.
    pub(super) before: Option<Value>,
    /// The location of `before` if it differs from the location of the object under review.
    pub(super) before_place: Option<DocumentLocation>,
    /// Notes about decisions that the user did not make.
    pub(super) notes: Vec<String>,
}

/// Plans the requests for `documents`, in the same order.
///
/// # Errors
/// Returns a usage failure that names the object whose information is missing or contradictory.
pub(super) fn plan(
    arguments: &Review,
    documents: Vec<Document>,
    old: &[Document],
    server: &ApiServer,
) -> Result<Vec<Planned>, Failure> {
    let planned: Vec<Planned> = documents
        .into_iter()
        .map(|document| {
            let is_review = document.object.get("kind").is_some_and(|kind| kind == "AdmissionReview");
            if is_review {
                admission_review::plan(arguments, &document, old, server)
            } else {
                plan_one(arguments, document, old, server)
            }
        })
        .collect::<Result<_, _>>()?;
    let used = |old: &Document| planned.iter().any(|planned| planned.before.as_ref() == Some(&old.object));
    match old.iter().find(|old| !used(old)) {
        Some(unused) => Err(unused.place.failure(format!(
            "no request is about {}: --old takes the objects of -f before an update or a deletion, or \
             the parents of a subresource",
            called(&unused.object)
        ))),
        None => Ok(planned),
    }
}

fn plan_one(
    arguments: &Review,
    document: Document,
    old: &[Document],
    server: &ApiServer,
) -> Result<Planned, Failure> {
    let Document { place, mut object } = document;
    let namespace = namespace(arguments, &place, &object)?;
    let subresource = arguments.subresource.clone().unwrap_or_default();
    let mut operation =
        arguments.operation.map_or_else(|| subresource::operation(&subresource), Operation::from);
    let name = text(&object, "/metadata/name").to_owned();
    let before = before(old, &object, &name);
    let mut target = GroupVersionKind::from_object(&object);
    let mut existing = before.map(|old| old.object.clone());
    if !subresource.is_empty() {
        let of = subresource::belongs_to(&target, &subresource, existing.as_ref());
        if let Some(parent) = of {
            target = parent.map_err(|message| place.failure(message))?;
        } else if operation != Operation::Update {
            // The file contains the parent object of the subresource.
            existing = existing.or_else(|| Some(object.clone()));
            object = subresource::body(&subresource, &object).unwrap_or(object);
        } else if let Some(body) = subresource::body(&subresource, &object) {
            object = body;
        }
    } else if operation == Operation::Delete {
        existing = existing.or_else(|| Some(object.clone()));
    }
    let resource = ResourceName::OfKind(target);
    let is_stored = || {
        server.resource(&resource).is_some_and(|served| {
            let in_namespace = if served.namespaced { namespace.as_str() } else { "" };
            server.stored(&served.name, in_namespace, &name).is_some()
        })
    };
    let mut notes = Vec::new();
    if is_stored() && before.is_none() {
        existing = None;
        if arguments.cluster.is_some() && arguments.operation.is_none() && subresource.is_empty() {
            operation = Operation::Update;
            notes.push("the object exists in the cluster, so the request is an update".to_owned());
        }
    } else if operation == Operation::Update && existing.is_none() && server.resource(&resource).is_some() {
        let message =
            "an update requires the object before the update: pass it with --old FILE or --with FILE";
        return Err(place.failure(message));
    }
    let body = match operation {
        Operation::Create | Operation::Update => Some(object),
        Operation::Delete | Operation::Connect => None,
    };
    let request = Request {
        operation,
        resource,
        namespace,
        name,
        subresource,
        body,
        query: arguments.query.clone(),
        dry_run: arguments.dry_run == DryRun::Server,
        user: arguments.user(),
    };
    let before_place = before.map(|old| old.place.clone());
    Ok(Planned { place, request, before: existing, before_place, notes })
}

/// Returns the namespace on the command line, the namespace of the object, or `default`, in this order of precedence.
fn namespace(arguments: &Review, place: &DocumentLocation, object: &Value) -> Result<String, Failure> {
    let own = text(object, "/metadata/namespace");
    match &arguments.namespace {
        Some(given) if !own.is_empty() && own != given => Err(place.failure(format!(
            "the namespace from the provided object \"{own}\" does not match the namespace \"{given}\". You must pass \
             '--namespace={own}' to perform this operation."
        ))),
        Some(given) => Ok(given.clone()),
        None if own.is_empty() => Ok("default".to_owned()),
        None => Ok(own.to_owned()),
    }
}

/// Returns the object in `--old` with the same kind and name or, for a subresource, any object with the name.
fn before<'a>(old: &'a [Document], object: &Value, name: &str) -> Option<&'a Document> {
    let named = |old: &&Document| text(&old.object, "/metadata/name") == name;
    let kind = text(object, "/kind");
    let mut same = old.iter().filter(named);
    let exact = same.clone().find(|old| {
        let (own, other) = (text(object, "/metadata/namespace"), text(&old.object, "/metadata/namespace"));
        text(&old.object, "/kind") == kind && (own == other || own.is_empty() || other.is_empty())
    });
    exact.or_else(|| same.find(|_| subresource::is_body(kind)))
}

/// Returns the kind and name of an object for messages, such as `Pod web`.
fn called(object: &Value) -> String {
    format!("{} {}", text(object, "/kind"), text(object, "/metadata/name"))
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
