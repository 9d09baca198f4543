//! Random situations on both servers.
