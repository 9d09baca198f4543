//! Names the finalizers of the garbage collector.

pub(crate) const ORPHAN: &str = "orphan";

pub(crate) const FOREGROUND: &str = "foregroundDeletion";
