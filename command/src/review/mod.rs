//! `admit review`: sends one request through the admission chain and shows the effect of each webhook.
//!
//! Inputs become [requests](request); a request and its response become a [report], which is printed as text or JSON.
//! Only [`run`] accesses files, webhooks, and the terminal.

mod arguments;
mod explain;
mod record;
mod report;
mod request;
mod run;

pub(crate) use arguments::Review;
pub(crate) use record::{EXTENSION as RECORD_EXTENSION, line as record_line};
