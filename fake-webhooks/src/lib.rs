//! Admission webhooks that respond correctly or misbehave on demand.
//!
//! A [`Behavior`] describes a fake; [`act()`] maps it and a review to an [`Answer`] without I/O; [`FakeWebhook`] sends
//! the response over TLS and records the calls in a journal.
//!
//! Each module imports only from the modules above it:
//!
//! - `json`, `random`, and `suggestion`: JSON documents, reproducible random numbers, and similar names;
//! - `admission_registration`: the fields of a webhook configuration;
//! - `catalog`: the faults that a webhook can have;
//! - `behavior`: what a fake does, as data;
//! - `answer`: the response to a call, a pure function of the behavior, the circumstances, and the review;
//! - `transport`: the connections, the certificate, and the HTTP versions of a fake, as data;
//! - `limits`, `journal`, and `metrics`: the calls that a fake received;
//! - `socket`: serves a router on a port, with TLS;
//! - `endpoint`: the handler of a fake: reads calls, remembers objects, and performs side effects;
//! - `fake_webhook`: one fake on its own port, for tests;
//! - `fakes_file`, `plan`, and `kubeconfig`: parses fakes files, assigns the fakes to ports, and creates the
//!   configurations for an API server;
//! - `running`, `admin`, and `fleet`: the running fakes of fakes files, and the endpoint that changes them;
//! - `command`: the command line.
//!
//! Reviews are plain JSON here. No code is shared with the caller of webhooks, so that both sides cannot have the same
//! bug.

mod admin;
mod admission_registration;
mod answer;
mod behavior;
mod catalog;
mod command;
mod endpoint;
mod fake_webhook;
mod fakes_file;
mod fleet;
mod journal;
mod json;
mod kubeconfig;
mod limits;
mod metrics;
mod plan;
mod random;
mod running;
mod socket;
mod suggestion;
mod transport;

// The public interface is:
pub use admin::{AdminOptions, InvalidToken, Token};
pub use admission_registration::{
    FailurePolicy, MatchCondition, MatchPolicy, Operation, Operator, ReinvocationPolicy, Requirement, Rule,
    Scope, Selector, SideEffects, WebhookFields, WebhookType,
};
pub use answer::{Act, Answer, ByteScript, Caller, Circumstances, Effect, Reply, act, answer};
pub use behavior::{
    Allow, AlwaysMutate, Append, BadResponse, Behavior, Change, Condition, ContainerEnv, ConversionRejection,
    Convert, ConvertedLists, Credentials, Cycle, Delay, Demand, Deny, Distribution, DropUnknownFields,
    EachContainer, Encoding, End, Exponential, FieldMove, First, Hang, InAnyOrder, InvalidHang, InvalidTime,
    Keep, Leak, ListAppend, ListEntry, MixUp, Mutate, Order, Patch, Pointer, Probability, Queue, Rate, Raw,
    RawBytes, RemoveContainers, ReorderLists, Repeat, ReplaceContainers, Round, Sequence, SideEffect,
    Sidecar, StatusCode, Target, Time, Timeout, Uniform, When, Write,
};
pub use catalog::{Class, Family, Fault, FaultError, Reference, catalog};
pub use command::{
    Arguments, CommandError, List, ParseFakes, StopSignal, StopSignals, raise_open_file_limit,
};
pub use fake_webhook::{Fake, FakeWebhook, TooFewCalls};
pub use fakes_file::{FakeEntry, FakesFile, FileError, needed_parameters};
pub use fleet::{Fleet, FleetError, FleetOptions};
pub use journal::{CallOutcome, Entry, Filter, Observer, Subject, UnreadableEntry};
pub use limits::Limits;
pub use plan::{Plan, PlanError, PlannedFake, PlannedListener};
pub use running::{BehaviorError, FakeStatus, Log, UnknownFake};
pub use socket::{RefusingPort, StartError, TlsError};
pub use suggestion::plain_yaml_message;
pub use transport::{
    Authority, Certificate, Connection, HttpVersions, RemoteAccess, Transport, UnknownCertificate,
};
