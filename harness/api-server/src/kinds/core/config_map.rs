//! Implements ConfigMaps.

use crate::kinds::kind::Kind;

/// The behavior of ConfigMaps.
pub(crate) const KIND: Kind = Kind {
    group: "",
    resource: "configmaps",
    kind: "ConfigMap",
    set_defaults: Some(crate::kinds::defaulting::core::config_map),
    validate: crate::kinds::validation::config_data::config_map,
    cells: Some(crate::kinds::tables::cluster::config_map),
    ..Kind::PLAIN
};
