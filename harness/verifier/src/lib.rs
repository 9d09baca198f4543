//! Verifies whether a webhook is idempotent, safe to reinvoke, honest about side effects, and conformant.
//!
//! A [`Check`] is data (ID, title, severity, why, help, source) and a probe. The [`driver`] runs checks in this order:
//!
//! 1. checks of [one](Probe::Configuration) configuration or of [all](Probe::Configurations), without calls;
//! 2. checks of [side effects](Probe::Effects), before any other call;
//! 3. checks of [objects](Probe::Object) and of all webhooks [together](Probe::Collection), for many objects at a time;
//! 4. checks of a single [webhook](Probe::Webhook), while nothing else runs;
//! 5. checks of [conversion](Probe::Conversion) webhooks, which admission requests do not call;
//! 6. checks of webhooks that are [disrupted](Probe::Intervention).
//!
//! The result is a [`report::Report`].
//!
//! The requests of a probe go through the complete dispatcher: matching, review, TLS, decoding, patch, defaults, and
//! both rounds. Objects are compared as the API server compares them.
//!
//! # Adding a check
//!
//! 1. Add a file `checks/vNN_name.rs` with `pub(super) const CHECK: Check` and a function that the probe calls. To
//!    examine an object, the function receives an [`ObjectProbe`]: [`ObjectProbe::first`] is the outcome of the
//!    object's creation, and [`ObjectProbe::alone`] is a set that contains only the webhook. [`ObjectProbe::admitted`]
//!    and [`ObjectProbe::answered`] send a request (outcomes are cached across checks); [`ObjectProbe::outcome`] also
//!    returns failures. [`other_webhooks::LIBRARY`] contains the changes that other webhooks make,
//!    `checks/webhook_response.rs` the webhook's raw response, and `checks/requests.rs` the requests that several
//!    checks share.
//! 2. Add a line to [`checks::ALL`].
//! 3. Add a positive and a negative test in `tests/verify/` with a fake webhook.
//!
//! A probe returns an empty list only if it tested the assertion and the assertion holds. If there is nothing to test,
//! or the test is not possible, the probe returns a [`Skipped`] with the reason. `Violation::kind` must not depend on
//! the object, because violations of one kind form one finding, and an object is minimized as long as its kind stays
//! the same. `Violation::message` may depend on the object.

pub mod call_recorder;
mod causes;
pub mod check;
pub mod checks;
pub mod comparison;
mod consequences;
pub mod converter;
pub mod corpus;
mod denials;
mod determinism;
pub mod driver;
pub mod environment;
mod exercised;
mod explanations;
pub mod failed_call;
mod finding_log;
mod interaction;
pub mod lint;
pub mod manifests;
mod masking;
pub mod merge;
pub mod object_probe;
pub mod operand_types;
pub mod other_webhooks;
mod pair_trial;
pub mod patch_advice;
mod plan;
mod plugins;
mod policies;
mod policy_order;
mod progress;
mod reasons;
pub mod recorder;
mod rejection;
mod remark;
pub mod report;
mod request_context;
pub mod sample_request;
mod samples;
pub mod shape;
mod shrink;
pub mod similar_name;
mod smallest;
mod stored;
pub mod subject;
mod subresource_probes;
mod substitutes;
mod tried;
mod turn;
mod validity;
pub mod violation;
pub mod webhook_probe;
mod wrong_type;

// The public interface:
pub use self::check::{Audience, Check, Disruption, Probe, Repeatability};
pub use self::comparison::{Difference, Order};
pub use self::converter::{Converter, ConverterProbe};
pub use self::driver::{run, run_until};
pub use self::environment::{Connection, Environment, Outcome, Verdict, WebhookSet};
pub use self::exercised::{NEVER_CHANGED, NONE_CHANGED};
pub use self::object_probe::ObjectProbe;
pub use self::plan::Plan;
pub use self::progress::{Progress, Stage};
pub use self::reasons::is_timeout;
pub use self::recorder::Recorder;
pub use self::report::Report;
pub use self::subject::{Subject, with_phase};
pub use self::tried::send;
pub use self::validity::{is_within, without_positions};
pub use self::violation::{Observed, Severity, Skipped, Violation, sentence};
pub use self::webhook_probe::{
    Bundle, ConfigurationSet, Intervention, Notes, Rotation, Settings, Stop, WebhookProbe,
};
