//! Which statements of `tests/behaviours.md` the cases prove.
