//! `admit review`: one request through the whole chain, and what each webhook made of it.
//!
//! Inputs become [requests](request), a request and what came back become a [report], a report becomes text or JSON;
//! only [`run`] touches files, webhooks and the terminal.

mod arguments;
mod explain;
mod record;
mod report;
mod request;
mod run;

pub(crate) use arguments::Review;
pub(crate) use record::{EXTENSION as RECORD_EXTENSION, line as record_line};
