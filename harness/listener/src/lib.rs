//! Serves the router of `kubernetes-api-server` over TLS.
//!
//! [`Socket::bind`] comes first, because the certificate and the kubeconfig contain the address. [`Listener::start`]
//! then serves on the socket until it is stopped. The resources of each peer are limited: connections, request headers,
//! and the time for a handshake, a request, a response, and a shutdown. [`Credentials`] contain a certificate that is
//! generated for this process, and [`ClientAuthorities`] authenticate users by their client certificates.
//!
//! Callers in the same process do not need this crate.

mod clients;
mod connection_slots;
mod credentials;
mod delivery;
mod listener;

pub use self::clients::{ClientAuthorities, InvalidAuthorities};
pub use self::credentials::{CredentialError, Credentials, server_config};
pub use self::listener::{ListenError, Listener, Socket};
