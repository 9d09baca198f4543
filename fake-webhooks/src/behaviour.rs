//! What a fake does with a call, as data.

use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::bytes_of::RawBytes;
use crate::catalogue::Fault;
use crate::parameters::{
    Allow, AlwaysMutate, Append, BadResponse, ContainerEnv, Deny, Patch, Raw, Sequence, Sidecar, Timeout,
    When,
};

/// What a fake does with a call.
///
/// In files it is a name (`allow`), a name with parameters (`deny: {message: not today}`), or a fault of the catalogue
/// (`fault: E07-missing`), which stands for the behaviour that has it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Behaviour {
    /// `allow`: allows.
    Allow(Allow),
    /// `deny`: denies.
    Deny(Deny),
    /// `patch`: allows and sends these operations, whatever the object looks like.
    Patch(Patch),
    /// `always-mutate`: allows and sets labels and annotations to fixed values. A second call changes nothing more.
    AlwaysMutate(AlwaysMutate),
    /// `non-idempotent`: allows and appends something, again on each call.
    NonIdempotent(Append),
    /// `sidecar`: allows and adds a container to whatever has pods.
    Sidecar(Sidecar),
    /// `container-env`: allows and adds an environment variable to each container that lacks it. It mutates again when
    /// somebody else added a container.
    ContainerEnv(ContainerEnv),
    /// `when`: one behaviour or another, according to the object.
    When(Box<When>),
    /// `timeout`: sends nothing, for ever or for a time.
    Timeout(Timeout),
    /// `bad-response`: answers with something that is no valid review.
    BadResponse(BadResponse),
    /// `raw`: answers with exactly this HTTP response.
    Raw(Raw),
    /// `bytes`: writes exactly these bytes instead of an HTTP response.
    Bytes(RawBytes),
    /// `sequence`: one behaviour after another, call by call; the last one repeats.
    Sequence(Sequence),
}

/// Allows, without a word.
impl Default for Behaviour {
    fn default() -> Self {
        Self::Allow(Allow::default())
    }
}

impl Behaviour {
    /// Whether it may write bytes that are no HTTP response, which HTTP/2 has no place for.
    pub(crate) fn writes_bytes(&self) -> bool {
        match self {
            Self::Bytes(_) => true,
            Self::When(when) => when.then.writes_bytes() || when.otherwise.writes_bytes(),
            Self::Timeout(timeout) => timeout.then.writes_bytes(),
            Self::Sequence(sequence) => sequence.all().any(Self::writes_bytes),
            Self::Allow(_)
            | Self::Deny(_)
            | Self::Patch(_)
            | Self::AlwaysMutate(_)
            | Self::NonIdempotent(_)
            | Self::Sidecar(_)
            | Self::ContainerEnv(_)
            | Self::BadResponse(_)
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
    "sequence",
    "fault",
];

/// A name alone takes the defaults of its parameters. Derived code would ask for parameters always, and an untagged
/// enum would lose the line of what is wrong.
impl<'de> Deserialize<'de> for Behaviour {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameOrMap;

        impl<'de> Visitor<'de> for NameOrMap {
            type Value = Behaviour;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a behaviour: {}, or one of them with its parameters", NAMES.join(", "))
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Behaviour, E> {
                Ok(match name {
                    "allow" => Behaviour::Allow(Allow::default()),
                    "deny" => Behaviour::Deny(Deny::default()),
                    "always-mutate" => Behaviour::AlwaysMutate(AlwaysMutate::labelled()),
                    "non-idempotent" => Behaviour::NonIdempotent(Append::default()),
                    "sidecar" => Behaviour::Sidecar(Sidecar::default()),
                    "container-env" => Behaviour::ContainerEnv(ContainerEnv::default()),
                    "timeout" => Behaviour::Timeout(Timeout::default()),
                    "raw" => return Err(E::custom("`raw` needs `json` or `text`")),
                    "bytes" => return Err(E::custom("`bytes` needs `text`")),
                    "patch" => return Err(E::custom("`patch` needs `operations`")),
                    "when" => return Err(E::custom("`when` needs `if` and `then`")),
                    "bad-response" => {
                        return Err(E::custom("`bad-response` needs to say which, such as `not-json`"));
                    }
                    "sequence" => return Err(E::custom("`sequence` needs a list of behaviours")),
                    "fault" => {
                        return Err(E::custom(
                            "`fault` needs the id or the name of a fault of the catalogue",
                        ));
                    }
                    other => return Err(E::unknown_variant(other, NAMES)),
                })
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Behaviour, A::Error> {
                let Some(name) = map.next_key::<String>()? else {
                    return Err(A::Error::invalid_length(0, &self));
                };
                let behaviour = match name.as_str() {
                    "allow" => Behaviour::Allow(map.next_value()?),
                    "deny" => Behaviour::Deny(map.next_value()?),
                    "patch" => Behaviour::Patch(map.next_value()?),
                    "always-mutate" => Behaviour::AlwaysMutate(map.next_value()?),
                    "non-idempotent" => Behaviour::NonIdempotent(map.next_value()?),
                    "sidecar" => Behaviour::Sidecar(map.next_value()?),
                    "container-env" => Behaviour::ContainerEnv(map.next_value()?),
                    "when" => Behaviour::When(map.next_value()?),
                    "timeout" => Behaviour::Timeout(map.next_value()?),
                    "bad-response" => Behaviour::BadResponse(map.next_value()?),
                    "raw" => Behaviour::Raw(map.next_value()?),
                    "bytes" => Behaviour::Bytes(map.next_value()?),
                    "sequence" => Behaviour::Sequence(map.next_value()?),
                    "fault" => Fault::behaviour(&map.next_value::<String>()?).map_err(A::Error::custom)?,
                    other => return Err(A::Error::unknown_variant(other, NAMES)),
                };
                match map.next_key::<String>()? {
                    None => Ok(behaviour),
                    Some(second) => Err(A::Error::custom(format!(
                        "a fake has one behaviour, and `{second}` stands beside `{name}`: use `sequence` for several"
                    ))),
                }
            }
        }

        deserializer.deserialize_any(NameOrMap)
    }
}
