//! Finds ports for servers with a fixed port.

use std::net::TcpListener;

/// Returns an unused port below the range of ephemeral ports.
///
/// Outgoing connections and listeners on port 0 cannot take such a port before the server starts.
pub(crate) fn free_port() -> u16 {
    let random = || 10_000 + u16::try_from(uuid::Uuid::new_v4().as_u128() % 20_000).unwrap();
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    std::iter::repeat_with(random).find(is_free).unwrap()
}
