//! In-memory certificate authorities, the certificates that they issue, and certificates with defects.
//!
//! Nothing is written to disk. A certificate authority exists only as long as the test or command runs, unless the
//! caller exports its key with [`CertificateAuthority::key_pem`].

mod authority;
mod defect;
mod flaws;
mod name;
mod rsa_authority;

// The public interface is:
pub use authority::{CertificateAuthority, Error, Leaf};
pub use defect::{Defect, UnknownDefect};
pub use name::{DnsName, InvalidName, Name};
