//! Describes the circumstances of a call.

/// The circumstances of a call. Equal circumstances and reviews result in equal responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circumstances {
    /// The number of the call, counted from 0.
    pub nth: u64,
    /// The number of earlier calls for this object and operation.
    pub seen: u64,
    /// The time of the call.
    pub time: jiff::Timestamp,
    /// The UID of another review that is in progress, if any.
    pub other_uid: Option<String>,
    /// The credentials of the caller.
    pub caller: Caller,
}

impl Circumstances {
    /// Returns the circumstances of the `nth` call, counted from 0, with defaults for all other fields.
    pub fn for_call(nth: u64) -> Self {
        Self { nth, seen: 0, time: jiff::Timestamp::UNIX_EPOCH, other_uid: None, caller: Caller::default() }
    }

    /// Returns a copy with a different call number, for a nested behavior.
    pub(super) fn numbered(&self, nth: u64) -> Self {
        Self { nth, ..self.clone() }
    }
}

/// The credentials that a caller sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "there are two places for credentials")]
pub struct Caller {
    /// The `Authorization` header.
    pub authorization: Option<String>,
    /// The common name of the client certificate.
    pub certificate: Option<String>,
}
