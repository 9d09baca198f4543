//! What an in-tree admission plugin is to the dispatcher.

use crate::attributes::Attributes;
use crate::status::Status;

/// An in-tree admission plugin, such as `LimitRanger`.
pub trait Plugin: Send + Sync {
    /// Its name in `--enable-admission-plugins`.
    fn name(&self) -> &'static str;

    /// Changes `attributes.object`, or refuses the request. Runs before the webhooks, in both rounds.
    ///
    /// # Errors
    /// The Status that the client gets.
    fn admit(&self, _attributes: &mut Attributes) -> Result<(), Box<Status>> {
        Ok(())
    }

    /// Refuses the final object. Runs before the validating webhooks.
    ///
    /// # Errors
    /// The Status that the client gets.
    fn validate(&self, _attributes: &Attributes) -> Result<(), Box<Status>> {
        Ok(())
    }
}
