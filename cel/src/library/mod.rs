//! The functions of expressions, with one module per library.

pub(crate) mod authorizer;
pub(crate) mod cidr;
pub(crate) mod comprehensions;
pub(crate) mod ip;
pub(crate) mod json_patch;
pub(crate) mod kubernetes_lists;
pub(crate) mod lists;
pub(crate) mod named_format;
pub(crate) mod optional;
pub(crate) mod quantity;
pub(crate) mod regex;
pub(crate) mod semver;
pub(crate) mod sets;
pub(crate) mod standard;
pub(crate) mod strings;
pub(crate) mod url;

pub(crate) mod costs;
pub(crate) mod format;
mod gosort;
