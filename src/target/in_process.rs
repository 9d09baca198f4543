//! The API server of this crate as a target: its router is the client's transport.

use super::{Target, TargetArguments};
use crate::Failure;

pub(super) fn target(_arguments: &TargetArguments) -> Result<Target, Failure> {
    Err(Failure::unsupported("the API server in process is not there yet: try --target envtest"))
}
