//! Serves a router of `kubernetes-api-server` over TLS.
//!
//! A [`Socket`] is bound first, so that its address is known to whoever makes certificates and kubeconfigs; a [`Listener`]
//! serves on it until it is stopped. What each peer may cost is bounded: connections, heads, and the time that a handshake,
//! a request, an answer or the end may take. [`Credentials`] are a certificate for as long as the process lives, and
//! [`ClientAuthorities`] know users by the certificates of their connections.
//!
//! Who asks the API server in process needs none of it.

mod clients;
mod credentials;
mod delivery;
mod listener;
mod places;

pub use self::clients::{ClientAuthorities, InvalidAuthorities};
pub use self::credentials::{CredentialError, Credentials, server_config};
pub use self::listener::{ListenError, Listener, Socket, bind};
