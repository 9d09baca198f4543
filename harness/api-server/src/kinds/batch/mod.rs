//! Implements the kinds of `batch`.

pub(crate) mod cron_job;
pub(crate) mod job;
