//! Shows the record that `--record` writes.

mod flags;
mod list;
mod read;
mod row;

pub(super) use self::flags::RecordFlags;
