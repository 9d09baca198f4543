//! Enforces the space limits of the storage.

use kubernetes_types::status::Status;
use kubernetes_types::weight::{json_length, weight};
use serde_json::Value;

use super::{Key, Storage, StoredObject};

/// The maximum size of an object, in bytes of JSON.
///
/// etcd accepts 1.5 MiB of protobuf, which rarely exceeds this size as JSON. A request body cannot be this large, but
/// successive patches can exceed the maximum.
///
/// Source: etcd server/embed/config.go, `DefaultMaxRequestBytes`.
pub(super) const MAX_OBJECT_BYTES: usize = 2 * crate::apimachinery::limits::MAX_REQUEST_BODY_BYTES;

impl Storage {
    /// Checks that there is space for an object. The object may replace an existing object.
    ///
    /// # Errors
    /// Returns 500 with etcd's message if the object is too large or the storage is full.
    ///
    /// Source: etcd api/v3rpc/rpctypes/error.go, `ErrGRPCNoSpace` and `ErrGRPCRequestTooLarge`.
    pub(crate) fn check_space(&self, key: &Key, object: &Value) -> Result<(), Box<Status>> {
        let full = |why: &str| Err(Box::new(Status::failure(500, "", format!("etcdserver: {why}"))));
        // An object with a small weight is short, so that only large objects are measured.
        let at_most = size_of::<StoredObject>() + weight(object);
        let is_short = at_most <= MAX_OBJECT_BYTES;
        if !is_short && json_length(object) > MAX_OBJECT_BYTES {
            return full("request is too large");
        }
        let contents = self.read();
        if contents.weight + at_most > contents.quota {
            let new = size_of::<StoredObject>() + json_length(object);
            let old = contents.stored(key).map_or(0, |stored| stored.weight());
            if new > old && contents.weight + (new - old) > contents.quota {
                return full("mvcc: database space exceeded");
            }
        }
        Ok(())
    }
}
