//! Caches the caller of a webhook together with the webhook's configuration.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::OnceLock;

/// A value that a caller derives from a [`ClientConfig`](super::ClientConfig) and reuses, such as the parsed URL.
///
/// The value is created at the first call and dropped with the configuration. A copy of the configuration starts empty.
#[derive(Default)]
pub struct CallerCache(OnceLock<Box<dyn Any + Send + Sync>>);

impl CallerCache {
    /// Returns the cached value; `make` creates it at first use. Returns `None` if the cached value has a different
    /// type.
    pub fn get_or_init<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.0.get_or_init(|| Box::new(make())).downcast_ref()
    }
}

impl Clone for CallerCache {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// Treats all caches as equal, because the cached value is derived from the configuration.
impl PartialEq for CallerCache {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for CallerCache {}

impl Hash for CallerCache {
    fn hash<H: Hasher>(&self, _state: &mut H) {}
}

impl fmt::Debug for CallerCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallerCache").finish_non_exhaustive()
    }
}
