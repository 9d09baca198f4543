//! Is a webhook idempotent, reinvocable, honest, conformant?
//!
//! A [`Check`] is data (id, title, severity, why, source) and a probe. The [`driver`] runs the checks: those of
//! [one](Probe::Configuration) configuration or [all](Probe::Configurations) without a call; those of
//! [objects](Probe::Object) and of all webhooks [together](Probe::Collection) for each object of a corpus, many at a
//! time; those of one [webhook](Probe::Webhook) alone and while nothing else runs; those of [conversion](Probe::Conversion)
//! webhooks, which no request reaches; and at last those that need something to be [done](Probe::Intervention) to the
//! webhooks. What they see becomes a [`report::Report`].
//!
//! Whatever a probe asks goes through the whole dispatcher: matching, review, TLS, decoding, patch, defaults, both
//! rounds. Objects are compared as the API server compares them.
//!
//! # To add a check
//!
//! 1. A file `checks/vNN_what.rs` with `pub(super) const CHECK: Check`, and a function that the probe calls. For an
//!    object it gets a [`ObjectProbe`]: [`ObjectProbe::first`] is `W(x)`, [`ObjectProbe::alone`] the webhook alone, [`ObjectProbe::admitted`]
//!    and [`ObjectProbe::answered`] send a request (what another check asked already is not asked again),
//!    [`ObjectProbe::outcome`] shows failures too. What other webhooks do stands in [`other_webhooks::LIBRARY`]. What the webhook said in
//!    its own words is `checks/said.rs`, further requests that several checks make are `checks/requests.rs`.
//! 2. A line in [`checks::ALL`].
//! 3. A positive and a negative test in `tests/verify/`, with a fake as the webhook.
//!
//! A probe returns an empty list only if it looked and all is well. If there is nothing to look at, or it cannot tell,
//! it returns an [`Obstacle`] that says why. `Violation::kind` must not depend on the object, since equal kinds are
//! counted as one finding and an object shrinks for as long as the kind stays; `message` may.

mod causes;
pub mod check;
pub mod checks;
pub mod comparison;
pub mod converter;
pub mod corpus;
mod denials;
pub mod driver;
pub mod environment;
mod finding_log;
pub mod line;
pub mod lint;
mod masking;
pub mod merge;
pub mod object_probe;
pub mod other_webhooks;
mod plan;
mod plugins;
mod progress;
pub mod recorder;
pub mod report;
mod samples;
pub mod shape;
pub mod shown;
mod shrink;
mod steadiness;
mod stored;
pub mod subject;
mod turn;
mod validity;
pub mod webhook_probe;

// The public interface is:
pub use self::check::{Audience, Check, Observed, Obstacle, Occasion, Probe, Severity, Violation};
pub use self::comparison::{Difference, Order};
pub use self::converter::{Converter, ConverterProbe};
pub use self::driver::run;
pub use self::environment::{Connection, Environment, Outcome, Verdict, WebhookSet};
pub use self::object_probe::ObjectProbe;
pub use self::plan::Plan;
pub use self::progress::{Progress, Stage};
pub use self::recorder::Recorder;
pub use self::report::Report;
pub use self::subject::{Subject, with_phase};
pub use self::webhook_probe::{
    Bundle, ConfigurationSet, Intervention, Notes, Rotation, Settings, Stop, WebhookProbe,
};
