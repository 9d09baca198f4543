//! How much one patch may have the server do.

use kubernetes_types::status::Unsupported;

use super::ApplyError;

/// How many values the operations of one patch have shifted in lists or measured so far.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Work(usize);

/// How many values the operations of one patch may shift and measure: an insertion at the front of a list shifts all of
/// it, so that many of them take the square of their number. kube-apiserver has no such limit, and hangs.
const MAX_WORK: usize = 100_000_000;

impl Work {
    /// # Errors
    /// [`ApplyError::Unsupported`] once it is too much.
    pub(super) fn add(&mut self, values: usize) -> Result<(), ApplyError> {
        self.0 = self.0.saturating_add(values);
        if self.0 > MAX_WORK {
            let what = format!("a JSON patch that shifts more than {MAX_WORK} elements of lists");
            return Err(ApplyError::Unsupported(Unsupported { what }));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_more_than_all_is_too_much() {
        let mut work = Work::default();
        assert_eq!(work.add(MAX_WORK), Ok(()));
        assert_eq!(
            work.add(1).unwrap_err().to_string(),
            "unsupported: a JSON patch that shifts more than 100000000 elements of lists"
        );
    }
}
