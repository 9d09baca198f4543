//! Describes the behaviors of a fake as data.

mod bytes;
mod change;
mod choice;
mod condition;
mod conversion;
mod credentials;
mod delay;
mod effect;
mod hang;
mod pointer;
mod response;
mod time;

use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;

pub use self::bytes::{End, RawBytes};
pub use self::change::{
    Change, DropUnknownFields, EachContainer, InAnyOrder, Keep, ListAppend, Mutate, Order, RemoveContainers,
    ReorderLists, ReplaceContainers,
};
pub use self::choice::{Cycle, First, Probability, Rate, Sequence, When};
pub use self::condition::{Condition, ListEntry, Round};
pub use self::conversion::{ConversionRejection, Convert, ConvertedLists, FieldMove};
pub use self::credentials::{Credentials, Demand};
pub use self::delay::{Delay, Distribution, Exponential, Timeout, Uniform};
pub use self::effect::{Leak, MixUp, Queue, SideEffect, Target, Write};
pub use self::hang::{Hang, InvalidHang};
pub use self::pointer::Pointer;
pub use self::response::{
    Allow, AlwaysMutate, Append, BadResponse, ContainerEnv, Deny, Encoding, Patch, Raw, Repeat, Sidecar,
    StatusCode,
};
pub use self::time::{InvalidTime, Time};
use crate::catalog::{Fault, FaultError};

/// The behavior of a fake.
///
/// A fakes file specifies it as a name (`allow`), as a name with parameters (`deny: {message: not today}`), or as a
/// fault of the catalog (`fault: E07-missing`).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Behavior {
    /// `allow`: allows the request.
    Allow(Allow),
    /// `deny`: denies the request.
    Deny(Deny),
    /// `patch`: allows the request with the same operations for every object.
    Patch(Patch),
    /// `always-mutate`: allows the request and sets labels and annotations to fixed values; the result is idempotent.
    AlwaysMutate(AlwaysMutate),
    /// `non-idempotent`: allows the request and appends a value on each call.
    NonIdempotent(Append),
    /// `sidecar`: allows the request and adds a container to pods and pod templates.
    Sidecar(Sidecar),
    /// `container-env`: allows the request and adds an environment variable to each container that does not have it.
    /// It also changes containers that another webhook has added.
    ContainerEnv(ContainerEnv),
    /// `when`: selects one of two behaviors according to a condition.
    When(Box<When>),
    /// `timeout`: does not respond, forever or for a duration.
    Timeout(Timeout),
    /// `bad-response`: returns an invalid review.
    BadResponse(BadResponse),
    /// `raw`: returns a custom HTTP response.
    Raw(Raw),
    /// `bytes`: writes custom bytes instead of an HTTP response.
    Bytes(RawBytes),
    /// `mutate`: allows the request and makes changes that depend on the object and the call.
    Mutate(Mutate),
    /// `sequence`: uses the next behavior of a list on each call, and repeats the last one.
    Sequence(Sequence),
    /// `cycle`: uses the next behavior of a list on each call, and starts again after the last one.
    Cycle(Cycle),
    /// `first`: uses one behavior for a number of calls, and another behavior for later calls.
    First(Box<First>),
    /// `rate`: selects one of two behaviors at random, with a seed.
    Rate(Box<Rate>),
    /// `delay`: delays another behavior by a fixed or random duration.
    Delay(Box<Delay>),
    /// `side-effect`: adds a persistent side effect to another behavior, even on dry runs.
    SideEffect(SideEffect),
    /// `leak`: adds a memory leak to another behavior.
    Leak(Leak),
    /// `mix-up`: responds with the UID of another call if several calls are in progress.
    MixUp(MixUp),
    /// `queue`: processes calls one after another, even if their callers have disconnected.
    Queue(Queue),
    /// `demand`: requires credentials, and returns 401 or 403 to callers without them.
    Demand(Demand),
    /// `convert`: converts custom resources.
    Convert(Convert),
}

/// Creates a behavior that allows requests without a message.
impl Default for Behavior {
    fn default() -> Self {
        Self::Allow(Allow::default())
    }
}

impl Behavior {
    /// Returns the behavior that has the fault with this ID or name.
    ///
    /// # Errors
    /// Returns an error if the fault is unknown, or if it concerns the connection, the certificate, or the
    /// configuration.
    fn of_fault(id_or_name: &str) -> Result<Self, FaultError> {
        let fault = Fault::find(id_or_name).ok_or_else(|| FaultError::Unknown(id_or_name.to_owned()))?;
        let elsewhere = |what| FaultError::NoBehavior(fault.id.clone(), what);
        if fault.fake.contains_key("connection") {
            Err(elsewhere("the connection"))
        } else if fault.fake.contains_key("certificate") || fault.fake.contains_key("rotate") {
            Err(elsewhere("the certificate"))
        } else {
            let behavior = fault.fake.get("behavior").ok_or_else(|| elsewhere("the configuration"))?;
            Ok(serde_json::from_value(behavior.clone()).unwrap_or_else(|error| fault.invalid(&error)))
        }
    }

    /// Lists the parameters of the behavior with this name, such as `one of code, reason, message`.
    ///
    /// Returns `None` for an unknown name, and for a behavior whose parameters are not a map.
    pub(crate) fn parameters(name: &str) -> Option<String> {
        let unknown = json!({name: {"": null}});
        let message = serde_json::from_value::<Self>(unknown).err()?.to_string();
        Some(message.strip_prefix("unknown field ``, expected ")?.to_owned())
    }

    /// Returns the credentials that a `demand` behavior requires, or `None` for other behaviors.
    pub fn demanded(&self) -> Option<&Credentials> {
        if let Self::Demand(demand) = self { Some(&demand.credentials) } else { None }
    }

    /// Returns whether the behavior can write raw bytes, which HTTP/2 does not support.
    pub(crate) fn writes_bytes(&self) -> bool {
        match self {
            Self::Bytes(_) => true,
            Self::When(when) => when.then.writes_bytes() || when.otherwise.writes_bytes(),
            Self::Timeout(timeout) => timeout.then.writes_bytes(),
            Self::Sequence(sequence) => sequence.all().any(Self::writes_bytes),
            Self::Cycle(cycle) => cycle.all().any(Self::writes_bytes),
            Self::First(first) => first.of.writes_bytes() || first.then.writes_bytes(),
            Self::Rate(rate) => rate.of.writes_bytes() || rate.otherwise.writes_bytes(),
            Self::Delay(delay) => delay.then.writes_bytes(),
            Self::SideEffect(effect) => effect.then.writes_bytes(),
            Self::Leak(leak) => leak.then.writes_bytes(),
            Self::MixUp(mix_up) => mix_up.then.writes_bytes(),
            Self::Queue(queue) => queue.then.writes_bytes(),
            Self::Demand(demand) => demand.then.writes_bytes(),
            Self::Allow(_)
            | Self::Deny(_)
            | Self::Patch(_)
            | Self::AlwaysMutate(_)
            | Self::NonIdempotent(_)
            | Self::Sidecar(_)
            | Self::ContainerEnv(_)
            | Self::Mutate(_)
            | Self::BadResponse(_)
            | Self::Convert(_)
            | Self::Raw(_) => false,
        }
    }
}

const NAMES: &[&str] = &[
    "allow",
    "deny",
    "patch",
    "always-mutate",
    "non-idempotent",
    "sidecar",
    "container-env",
    "when",
    "timeout",
    "bad-response",
    "raw",
    "bytes",
    "mutate",
    "sequence",
    "cycle",
    "first",
    "rate",
    "delay",
    "side-effect",
    "leak",
    "mix-up",
    "queue",
    "demand",
    "convert",
    "fault",
];

/// Accepts a plain name as a behavior with the default parameters.
///
/// Derived code would always require parameters, and an untagged enum would lose the line numbers of errors.
impl<'de> Deserialize<'de> for Behavior {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameOrMap;

        impl<'de> Visitor<'de> for NameOrMap {
            type Value = Behavior;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a behavior: {}, or one of them with its parameters", NAMES.join(", "))
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Behavior, E> {
                Ok(match name {
                    "allow" => Behavior::Allow(Allow::default()),
                    "deny" => Behavior::Deny(Deny::default()),
                    "always-mutate" => Behavior::AlwaysMutate(AlwaysMutate::labeled()),
                    "non-idempotent" => Behavior::NonIdempotent(Append::default()),
                    "sidecar" => Behavior::Sidecar(Sidecar::default()),
                    "container-env" => Behavior::ContainerEnv(ContainerEnv::default()),
                    "timeout" => Behavior::Timeout(Timeout::default()),
                    "raw" => return Err(E::custom("`raw` needs `json` or `text`")),
                    "bytes" => return Err(E::custom("`bytes` needs `text`")),
                    "patch" => return Err(E::custom("`patch` needs `operations`")),
                    "when" => return Err(E::custom("`when` needs `if` and `then`")),
                    "bad-response" => {
                        return Err(E::custom("`bad-response` needs to say which, such as `not-json`"));
                    }
                    "mutate" => return Err(E::custom("`mutate` needs a list of changes")),
                    "sequence" => return Err(E::custom("`sequence` needs a list of behaviors")),
                    "cycle" => return Err(E::custom("`cycle` needs a list of behaviors")),
                    "first" => return Err(E::custom("`first` needs `calls` and `of`")),
                    "rate" => return Err(E::custom("`rate` needs `of` and `probability`")),
                    "delay" => return Err(E::custom("`delay` needs `for`, such as `{fixed: 100ms}`")),
                    "side-effect" => Behavior::SideEffect(SideEffect::default()),
                    "leak" => Behavior::Leak(Leak::default()),
                    "mix-up" => Behavior::MixUp(MixUp::default()),
                    "queue" => Behavior::Queue(Queue::default()),
                    "convert" => Behavior::Convert(Convert::default()),
                    "demand" => {
                        return Err(E::custom("`demand` needs `credentials`, such as `{token: s3cret}`"));
                    }
                    "fault" => {
                        return Err(E::custom("`fault` needs the id or the name of a fault of the catalog"));
                    }
                    other => return Err(E::unknown_variant(other, NAMES)),
                })
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Behavior, A::Error> {
                let Some(name) = map.next_key::<String>()? else {
                    return Err(A::Error::invalid_length(0, &self));
                };
                let behavior = match name.as_str() {
                    "allow" => Behavior::Allow(map.next_value()?),
                    "deny" => Behavior::Deny(map.next_value()?),
                    "patch" => Behavior::Patch(map.next_value()?),
                    "always-mutate" => Behavior::AlwaysMutate(map.next_value::<AlwaysMutate>()?.or_labeled()),
                    "non-idempotent" => Behavior::NonIdempotent(map.next_value()?),
                    "sidecar" => Behavior::Sidecar(map.next_value()?),
                    "container-env" => Behavior::ContainerEnv(map.next_value()?),
                    "when" => Behavior::When(map.next_value()?),
                    "timeout" => Behavior::Timeout(map.next_value()?),
                    "bad-response" => Behavior::BadResponse(map.next_value()?),
                    "raw" => Behavior::Raw(map.next_value()?),
                    "bytes" => Behavior::Bytes(map.next_value()?),
                    "mutate" => Behavior::Mutate(map.next_value()?),
                    "sequence" => Behavior::Sequence(map.next_value()?),
                    "cycle" => Behavior::Cycle(map.next_value()?),
                    "first" => Behavior::First(map.next_value()?),
                    "rate" => Behavior::Rate(map.next_value()?),
                    "delay" => Behavior::Delay(map.next_value()?),
                    "side-effect" => Behavior::SideEffect(map.next_value()?),
                    "leak" => Behavior::Leak(map.next_value()?),
                    "mix-up" => Behavior::MixUp(map.next_value()?),
                    "queue" => Behavior::Queue(map.next_value()?),
                    "demand" => Behavior::Demand(map.next_value()?),
                    "convert" => Behavior::Convert(map.next_value()?),
                    "fault" => Behavior::of_fault(&map.next_value::<String>()?).map_err(A::Error::custom)?,
                    other => return Err(A::Error::unknown_variant(other, NAMES)),
                };
                match map.next_key::<String>()? {
                    None => Ok(behavior),
                    Some(second) => Err(A::Error::custom(format!(
                        "invalid behavior: `{second}` next to `{name}`; use `sequence` for several behaviors"
                    ))),
                }
            }
        }

        deserializer.deserialize_any(NameOrMap)
    }
}
