//! Permissions that a write needs in addition to the permission for the request.

pub(crate) mod escalation;
pub(crate) mod signers;
pub(crate) mod status_fields;
