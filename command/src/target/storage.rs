//! Writes directly to the storage of a target, to test objects that an earlier release stored.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use harness::json::text;
use harness::server::ApiServer;
use http::Request;
use serde_json::{Value, json};

use super::Target;
use crate::Failure;

/// The storage of a target, if tests can write to it.
pub(super) enum Storage {
    /// The memory of the in-process API server.
    InProcess(ApiServer),
    /// The etcd at this URL.
    Etcd(String),
    /// Storage that only the API server can access.
    Inaccessible,
}

impl Target {
    /// Writes a cluster-scoped object of `resource` in its storage version, without validation or admission.
    ///
    /// # Errors
    /// Returns an error if the storage is not accessible or rejects the object.
    ///
    /// Source: apiserver pkg/storage/etcd3/store.go, whose keys are `/registry/RESOURCE/NAME`; etcd's gRPC gateway uses
    /// base64 for keys and values.
    pub async fn store(&self, resource: &str, object: Value) -> Result<(), Failure> {
        let name = text(&object, &["metadata", "name"]).to_owned();
        let failed =
            |error: &dyn std::fmt::Display| Failure::environment(format!("cannot store {name}: {error}"));
        match &self.storage {
            Storage::InProcess(server) => {
                server.put_stored(object).map(drop).map_err(|status| failed(&status.message))
            }
            Storage::Etcd(url) => {
                let url = url.parse::<http::Uri>().map_err(|error| failed(&error))?;
                let client =
                    kube::Client::try_from(kube::Config::new(url)).map_err(|error| failed(&error))?;
                let put = json!({
                    "key": BASE64_STANDARD.encode(format!("/registry/{resource}/{name}")),
                    "value": BASE64_STANDARD.encode(object.to_string()),
                });
                let request = Request::post("/v3/kv/put").body(put.to_string().into_bytes());
                let request = request.map_err(|error| failed(&error))?;
                client.request_text(request).await.map(drop).map_err(|error| failed(&error))
            }
            Storage::Inaccessible => Err(failed(&"the storage of --target cluster is not accessible")),
        }
    }
}
