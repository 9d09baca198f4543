//! Provides what several kinds share: field access, errors, formats, cells of tables, and warnings.

pub(crate) mod addresses;
pub(crate) mod age;
pub(crate) mod cells;
pub(crate) mod change;
pub(crate) mod columns;
pub(crate) mod conditions;
pub(crate) mod custom_columns;
pub(crate) mod defaults;
pub(crate) mod disabled_fields;
pub(crate) mod fields;
pub(crate) mod finalizers;
pub(crate) mod formats;
pub(crate) mod internal;
pub(crate) mod json_path;
pub(crate) mod preparation;
pub(crate) mod resources;
pub(crate) mod selectors;
pub(crate) mod volume_defaults;
pub(crate) mod volume_sources;
pub(crate) mod warnings;
