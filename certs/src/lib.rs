//! A certificate authority in memory, the certificates that it issues, and certificates with chosen defects.
//!
//! Nothing here is ever written to a disk, and nothing secret has to be committed: an authority is made when a test or a
//! command starts and is gone when it ends, unless its user takes out its key ([`CertificateAuthority::key_pem`]).

mod authority;
mod defect;
mod flaws;
mod name;
mod rsa_authority;

// The public interface is:
pub use authority::{CertificateAuthority, Error, Leaf};
pub use defect::{Defect, UnknownDefect};
pub use name::{DnsName, InvalidName, Name};
