//! Implements the kinds of `storagemigration.k8s.io`.

pub(crate) mod storage_version_migration;
