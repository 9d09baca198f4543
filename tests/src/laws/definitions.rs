//! Law: any custom resource definition is served or rejected with a message.
//!
//! A served definition can be sent again, and accepts or rejects any object.
//!
//! The input is the definition as in [`documents`], `---`, an object, `---`, and an object that replaces it.

use harness::attributes::GroupVersionResource;
use harness::chain::{Chain, Request, RequestError};
use harness::server::Options;
use serde_json::Value;

use super::{documents, runtime, with_text};

/// Checks the law for one input.
///
/// # Panics
/// Panics if the law does not hold.
pub(super) fn check(input: &[u8]) {
    with_text(input, |text| {
        let [definition, object, other] = documents::parts(text);
        let Some(definition) = documents::object(&definition) else { return };
        if definition.get("kind").is_none_or(|kind| kind != "CustomResourceDefinition") {
            return;
        }
        let objects = [documents::object(&object), documents::object(&other)];
        runtime::block_on(check_definition(definition, objects));
    });
}

async fn check_definition(definition: Value, [object, other]: [Option<Value>; 2]) {
    let chain = Chain::new(Options::default());
    let created = send(&chain, Request::create(definition)).await;
    let Some((201, created)) = created else { return };
    // The controllers have written its status in the meantime.
    let name = created["metadata"]["name"].as_str().unwrap_or_default();
    let definitions = GroupVersionResource::new("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let Some(definition) = chain.server().stored(&definitions, "", name) else {
        panic!("what was created is not stored: {created}");
    };
    let definition = (*definition).clone();
    let (code, answer) = send(&chain, Request::update(definition.clone())).await.unwrap_or_default();
    assert_eq!((code, answer), (200, definition), "what was taken is taken again");
    let Some(object) = object else { return };
    let Some((201, object)) = send(&chain, Request::create(object)).await else { return };
    let (code, answer) = send(&chain, Request::update(object.clone())).await.unwrap_or_default();
    assert_eq!(code, 200, "what was taken is taken again: {answer}\n{object}");
    if let Some(other) = other {
        send(&chain, Request::update(other)).await;
    }
    let (code, answer) = send(&chain, Request::delete(&object)).await.unwrap_or_default();
    assert!(matches!(code, 200 | 409), "{code}: {answer}");
}

/// Sends a request and returns the status code and the body; `None` if the request is invalid.
async fn send(chain: &Chain, request: Request) -> Option<(u16, Value)> {
    match chain.send(&request).await {
        Ok(sent) => {
            let is_status = sent.body.get("kind").is_some_and(|kind| kind == "Status");
            assert!(sent.code < 400 || is_status, "{}: {}", sent.code, sent.body);
            Some((sent.code, sent.body))
        }
        Err(RequestError::NoUri { .. } | RequestError::NoName) => None,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            None
        }
    }
}
