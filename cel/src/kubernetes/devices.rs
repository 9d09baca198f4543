//! Declares the variable of device selectors and its maximum sizes.
//!
//! Source: dynamic-resource-allocation cel/compile.go.

use crate::environment::{Environment, MacroSet, ObjectType};
use crate::estimate::{Range, Sizes};
use crate::library::quantity::quantity;
use crate::types::Type;

/// Declares `device`, including the fields for shareable capacities.
///
/// Source: dynamic-resource-allocation cel/compile.go, `newCompiler`.
#[must_use]
pub fn with_device(environment: Environment) -> Environment {
    const DEVICE: &str = "kubernetes.DRADevice";
    let by_name = |of: Type| Type::map(Type::String, Type::map(Type::String, of));
    let device = ObjectType::new(
        DEVICE,
        [
            ("driver", Type::String),
            ("attributes", by_name(Type::Any)),
            ("capacity", by_name(quantity())),
            ("allowMultipleAllocations", Type::Bool),
        ],
    );
    environment
        .with_macros(MacroSet::Bindings)
        .with_object(device)
        .with_names_of_scalar_types()
        .with_variable("device", Type::object(DEVICE))
}

/// The maximum sizes of `device` and its parts.
///
/// Source: dynamic-resource-allocation cel/compile.go, `sizeEstimator`; api resource/v1/types.go.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct DeviceSizes;

/// A part of the variable `device`.
#[derive(Clone, Copy)]
enum Part {
    Device,
    Driver,
    IsShared,
    Domain,
    Id,
    /// The attributes of all domains, by domain.
    Domains,
    Attributes,
    Attribute,
    /// The capacities of all domains, by domain.
    DomainsOfCapacities,
    Capacities,
    Capacity,
}

impl Part {
    fn part(self, name: &str) -> Option<Self> {
        Some(match (self, name) {
            (Self::Device, "driver") => Self::Driver,
            (Self::Device, "allowMultipleAllocations") => Self::IsShared,
            (Self::Device, "attributes") => Self::Domains,
            (Self::Device, "capacity") => Self::DomainsOfCapacities,
            (Self::Domains | Self::DomainsOfCapacities, "@keys") => Self::Domain,
            (Self::Attributes | Self::Capacities, "@keys") => Self::Id,
            (Self::Domains, "@items" | "@values") => Self::Attributes,
            (Self::DomainsOfCapacities, "@items" | "@values") => Self::Capacities,
            (Self::Capacities, "@items" | "@values") => Self::Capacity,
            // For every attribute name.
            (Self::Attributes, _) => Self::Attribute,
            _ => return None,
        })
    }

    /// Returns the maximum number of characters or entries of the part.
    fn most(self) -> u64 {
        match self {
            Self::Device | Self::Capacity => 0,
            Self::IsShared => 1,
            Self::Driver | Self::Domain => 63,
            Self::Attribute => 64,
            Self::Id | Self::Domains | Self::Attributes | Self::DomainsOfCapacities | Self::Capacities => 32,
        }
    }
}

impl Sizes for DeviceSizes {
    fn size(&self, path: &[String], _of: &Type) -> Option<Range> {
        let (variable, parts) = path.split_first()?;
        let begin = (variable == "device").then_some(Part::Device)?;
        let found = parts.iter().try_fold(begin, |part, name| part.part(name))?;
        Some(Range::new(0, found.most()))
    }
}
