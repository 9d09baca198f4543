//! Admission webhooks that respond correctly or misbehave on demand.
//!
//! A [`Behavior`] describes a fake; [`act()`] maps it and a review to an [`Answer`] without I/O; [`FakeWebhook`] sends
//! the response over TLS and records the calls in a journal.
//!
//! Reviews are plain JSON here. No code is shared with the caller of webhooks, so that both sides cannot have the same
//! bug.

mod admin;
mod answer;
mod behavior;
mod bound_port;
mod bytes_of;
mod catalog;
mod certificate;
mod change;
mod changed;
mod circumstances;
mod client_config;
mod command;
mod condition;
mod configurations;
mod connection;
mod conversion;
mod demand;
mod dice;
mod endpoint;
mod fakes_file;
mod fields;
mod fleet;
mod hang;
mod journal;
mod json;
mod kubeconfig;
mod list;
mod listener;
mod log_line;
mod memory;
mod metrics;
mod misanswer;
mod mutation;
mod open_files;
mod parameters;
mod plan;
mod pointer;
mod raw;
mod refusing_port;
mod script;
mod server;
mod signals;
mod slots;
mod tls;
mod transport;
mod write;

// The public interface is:
pub use admin::{AdminOptions, InvalidToken, Token};
pub use answer::{Act, Answer, Effect, Reply, act, answer};
pub use behavior::Behavior;
pub use bytes_of::{End, RawBytes, Script};
pub use catalog::{Class, Family, Fault, FaultError, Reference, catalog};
pub use certificate::{Authority, Certificate, UnknownCertificate};
pub use change::{
    Change, DropUnknownFields, EachContainer, InAnyOrder, Keep, ListAppend, Mutate, Order, RemoveContainers,
    ReorderLists, ReplaceContainers,
};
pub use circumstances::Circumstances;
pub use command::{Arguments, CommandError, Understand};
pub use condition::{Condition, ListEntry, Round};
pub use conversion::{Convert, Lists, Move, Unknown};
pub use demand::{Caller, Credentials, Demand};
pub use fakes_file::{FakeEntry, FakesFile, FileError, Kind};
pub use fields::{
    FailurePolicy, Fields, MatchCondition, MatchPolicy, Operation, Operator, ReinvocationPolicy, Requirement,
    Rule, Scope, Selector, SideEffects,
};
pub use fleet::{Fleet, FleetError, FleetOptions, Log};
pub use hang::{Hang, InvalidHang};
pub use journal::{Answered, Entry, Filter, Subject, UnreadableEntry};
pub use list::List;
pub use open_files::raise_open_file_limit;
pub use parameters::{
    Allow, AlwaysMutate, Append, BadResponse, ContainerEnv, Deny, Encoding, Patch, Raw, Repeat, Sidecar,
    StatusCode, Timeout, When,
};
pub use plan::{Plan, PlanError, PlannedFake, PlannedListener};
pub use pointer::Pointer;
pub use refusing_port::RefusingPort;
pub use script::{
    Cycle, Delay, Distribution, Exponential, First, InvalidTime, Leak, MixUp, Probability, Queue, Rate,
    Sequence, SideEffect, Target, Time, Uniform, Write,
};
pub use server::{Fake, FakeWebhook, Limits, Observer, RemoteAccess, StartError, TooFewCalls};
pub use signals::{StopSignal, StopSignals};
pub use tls::TlsError;
pub use transport::{Connection, HttpVersions, Transport};
