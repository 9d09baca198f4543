//! The identities of the controllers and the requests that they send.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubernetes_admission::attributes::UserInfo;
use kubernetes_types::status::Status;

use crate::endpoints::context::Server;
use crate::endpoints::options::Controllers;
use crate::endpoints::outcome;
use crate::kinds::discovery::{Resource, is_newer};
use crate::server::loopback_requests;
use crate::server::loopback_requests::Requester;
pub(super) use crate::server::loopback_requests::{Change, JSON};

/// A controller of kube-controller-manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Actor {
    Namespaces,
    Garbage,
    Accounts,
    RootCertificates,
}

impl Actor {
    const ALL: [Self; 4] = [Self::Namespaces, Self::Garbage, Self::Accounts, Self::RootCertificates];

    /// Returns the name of the controller's service account in `kube-system`.
    fn account(self) -> &'static str {
        match self {
            Self::Namespaces => "namespace-controller",
            Self::Garbage => "generic-garbage-collector",
            Self::Accounts => "service-account-controller",
            Self::RootCertificates => "root-ca-cert-publisher",
        }
    }

    /// Returns the user of the controller's service account.
    fn user(self) -> UserInfo {
        let credential = format!("JTI={}", uuid::Uuid::new_v4());
        UserInfo {
            username: format!("system:serviceaccount:kube-system:{}", self.account()),
            uid: uuid::Uuid::new_v4().to_string(),
            groups: ["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"]
                .map(str::to_owned)
                .to_vec(),
            extra: BTreeMap::from([(
                "authentication.kubernetes.io/credential-id".to_owned(),
                vec![credential],
            )]),
        }
    }
}

/// Sends the requests of the controllers to the server.
pub(super) struct Actors {
    pub(super) server: Arc<Server>,
    pub(super) options: Controllers,
    users: BTreeMap<Actor, UserInfo>,
}

pub(super) const MERGE_PATCH: &str = "application/merge-patch+json";
pub(super) const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";

impl Actors {
    pub(super) fn new(server: Arc<Server>, options: Controllers) -> Self {
        let users = Actor::ALL.into_iter().map(|actor| (actor, actor.user())).collect();
        Self { server, options, users }
    }

    /// Sends a request. The server authorizes and admits it in the same way as a request from a connection.
    ///
    /// # Errors
    /// Returns the Status of the response if the request fails.
    pub(super) async fn send(&self, actor: Actor, change: Change<'_>) -> Result<(), Box<Status>> {
        let account = actor.account();
        let agent = format!(
            "kube-controller-manager/v{} (linux/amd64) kubernetes/system:serviceaccount:kube-system:{account}",
            kubernetes_types::KUBERNETES_VERSION
        );
        let requester = Requester {
            user: self.users.get(&actor).cloned().unwrap_or_default(),
            agent,
            authorizer: Arc::clone(&self.server.registry.state.authorizer),
            keep: outcome::retention_for_audit(&self.server),
        };
        loopback_requests::send(&self.server, change, requester).await
    }

    /// Returns the resources whose objects can be deleted, each in its newest version.
    pub(super) fn deletable(&self) -> Vec<Arc<Resource>> {
        let resources = self.server.registry.state.resources();
        let mut newest: BTreeMap<(String, String), Arc<Resource>> = BTreeMap::new();
        for resource in resources.all() {
            if !resource.is_established() || !resource.verbs.iter().any(|verb| verb == "delete") {
                continue;
            }
            let place = (resource.storage_group().to_owned(), resource.gvr.resource.clone());
            let known = newest.get(&place);
            if known.is_none_or(|known| is_newer(&resource.gvr.version, &known.gvr.version)) {
                newest.insert(place, Arc::clone(resource));
            }
        }
        newest.into_values().collect()
    }

    /// Returns the resource whose objects are stored under this group and plural name.
    pub(super) fn stored_as(&self, group: &str, plural: &str) -> Option<Arc<Resource>> {
        self.deletable()
            .into_iter()
            .find(|resource| resource.storage_group() == group && resource.gvr.resource == plural)
    }
}

/// Returns the path of a collection or, with a name, of an object.
pub(super) fn path(resource: &Resource, namespace: &str, name: &str) -> String {
    let gvr = &resource.gvr;
    let group = if gvr.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", gvr.group) };
    let namespace = if resource.namespaced { format!("/namespaces/{namespace}") } else { String::new() };
    let name = if name.is_empty() {
        String::new()
    } else {
        // Names of roles may contain any character.
        format!("/{}", percent_encoded(name))
    };
    format!("{group}/{}{namespace}/{}{name}", gvr.version, gvr.resource)
}

fn percent_encoded(name: &str) -> String {
    use std::fmt::Write as _;

    let mut encoded = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}
