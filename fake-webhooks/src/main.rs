//! Serves the fakes of files beside a cluster.

fn main() {}
