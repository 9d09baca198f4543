//! Law: any request is converted to a URI or rejected with a message.
//!
//! The URI contains the names in the request, and a dry run stores nothing.
//!
//! The input is one line each for the operation, the resource (`GROUP/VERSION/RESOURCE`), the namespace, the name, the
//! subresource, and the query, and then the body as an object as in [`documents`]. In the lines, escapes such as `%0A`
//! encode characters that lines cannot contain.

use std::sync::LazyLock;

use axum::body::Bytes;
use harness::attributes::{GroupVersionKind, GroupVersionResource, Operation};
use harness::chain::{Chain, Request, RequestError, administrator};
use harness::server::{Options, ResourceName};
use serde_json::Value;

use super::{documents, runtime, with_text};

/// The maximum length of a URI, in bytes.
const MAX_URI_LENGTH: usize = u16::MAX as usize - 1;

static CHAIN: LazyLock<Chain> = LazyLock::new(|| {
    let chain = Chain::new(Options::default());
    for kind in ["CustomResourceDefinition", "ConfigMap", "Pod", "Deployment", "Widget"] {
        let object = documents::object(kind).unwrap_or_else(|| panic!("there is a {kind} in documents.yaml"));
        chain.put(object).unwrap_or_else(|status| panic!("{kind}: {}", status.message));
    }
    chain
});

/// Checks the law for one input.
///
/// # Panics
/// Panics if the law does not hold.
pub(super) fn check(input: &[u8]) {
    with_text(input, |text| runtime::block_on(check_request(&CHAIN, text)));
}

async fn check_request(chain: &Chain, text: &str) {
    let lines: Vec<&str> = text.splitn(7, '\n').collect();
    let &[operation, resource, namespace, name, subresource, query, body] = lines.as_slice() else { return };
    let Some(operation) = self::operation(operation) else { return };
    let body = documents::object(body);
    let resource = match resource.split('/').collect::<Vec<_>>().as_slice() {
        [group, version, resource] => {
            ResourceName::Named(GroupVersionResource::new(*group, *version, *resource))
        }
        _ => ResourceName::OfKind(GroupVersionKind::from_object(body.as_ref().unwrap_or(&Value::Null))),
    };
    let request = Request {
        operation,
        resource,
        namespace: decoded(namespace),
        name: decoded(name),
        subresource: decoded(subresource),
        body,
        query: query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .filter(|(key, _)| *key != "dryRun")
            .map(|(key, value)| (decoded(key), decoded(value)))
            .collect(),
        dry_run: true,
        user: administrator(),
    };
    let before = revision(chain).await;
    match chain.send(&request).await {
        Ok(sent) => {
            assert!((200..600).contains(&sent.code), "{}: {}", sent.code, sent.body);
            // The server reports only objects in the path as missing.
            let details = sent.body.pointer("/details/name").and_then(Value::as_str);
            if let (Some(found), 404, Operation::Delete) = (details, sent.code, operation) {
                assert_eq!(found, request.name, "{request:?}: {}", sent.body);
            }
        }
        Err(RequestError::NoUri { bytes, .. }) => assert!(bytes > MAX_URI_LENGTH, "{request:?}"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    assert_eq!(revision(chain).await, before, "{request:?} stored something");
}

fn operation(text: &str) -> Option<Operation> {
    match text {
        "CREATE" => Some(Operation::Create),
        "UPDATE" => Some(Operation::Update),
        "DELETE" => Some(Operation::Delete),
        "CONNECT" => Some(Operation::Connect),
        _ => None,
    }
}

/// Decodes percent escapes, and replaces bytes that are not valid UTF-8.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the revision of the storage. It increases with each write.
async fn revision(chain: &Chain) -> String {
    let mut request = http::Request::new(Bytes::new());
    *request.uri_mut() = http::Uri::from_static("/api/v1/namespaces");
    let (response, _) = chain.server().exchange(request, administrator()).await;
    let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap_or_default();
    let list: Value = serde_json::from_slice(&body).unwrap_or_default();
    let revision = list.pointer("/metadata/resourceVersion").and_then(Value::as_str);
    revision.unwrap_or_else(|| panic!("no revision: {list}")).to_owned()
}
