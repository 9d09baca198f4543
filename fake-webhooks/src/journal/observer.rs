//! Defines the callback for completed calls.

use std::fmt;
use std::sync::Arc;

use super::Entry;

/// A callback that receives each completed call; the default does nothing.
#[derive(Clone, Default)]
pub struct Observer(Option<Arc<Observe>>);

type Observe = dyn Fn(&Entry) + Send + Sync;

impl Observer {
    /// Creates an observer that calls `observe` for each completed call; `observe` must not block.
    pub fn new(observe: impl Fn(&Entry) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(observe)))
    }

    pub(crate) fn observe(&self, entry: &Entry) {
        if let Some(observe) = &self.0 {
            observe(entry);
        }
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Observer(..)" } else { "Observer(none)" })
    }
}
