//! `admit review`: sends one request through the admission chain and shows the effect of each webhook.
//!
//! Inputs become [requests](request); a request and its response become a [report](crate::request_report), which is
//! printed as text or JSON. Only [`run`] accesses files, webhooks, and the terminal.

mod arguments;
mod cluster;
mod record;
mod request;
mod run;

pub(crate) use arguments::Review;
