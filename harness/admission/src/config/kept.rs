//! What the caller of a webhook keeps with its configuration.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::OnceLock;

/// What a caller made of a [`ClientConfig`](super::ClientConfig) for the first call and needs for the next ones, such as the
/// parsed URL. It goes with the configuration; a copy of that begins with nothing.
#[derive(Default)]
pub struct Kept(OnceLock<Box<dyn Any + Send + Sync>>);

impl Kept {
    /// What is kept, which `make` makes if that is nothing; none if somebody keeps a value of another type.
    pub fn get_or_init<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.0.get_or_init(|| Box::new(make())).downcast_ref()
    }
}

impl Clone for Kept {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// It follows from the configuration.
impl PartialEq for Kept {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for Kept {}

impl Hash for Kept {
    fn hash<H: Hasher>(&self, _state: &mut H) {}
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").finish_non_exhaustive()
    }
}
