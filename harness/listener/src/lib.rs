//! Serves a router of `kubernetes-api-server` over TLS.
//!
//! [`Socket::bind`] comes first, because the address goes into the certificate and the kubeconfig; [`Listener::start`] then
//! serves on the socket until it is stopped. What each peer may cost is bounded: connections, heads, and the time that a
//! handshake, a request, an answer or the end may take. [`Credentials`] hold a certificate that is generated for this
//! process, and [`ClientAuthorities`] authenticate users by their client certificates.
//!
//! Callers in the same process do not need this crate.

mod clients;
mod credentials;
mod delivery;
mod listener;
mod places;

pub use self::clients::{ClientAuthorities, InvalidAuthorities};
pub use self::credentials::{CredentialError, Credentials, server_config};
pub use self::listener::{ListenError, Listener, Socket};
