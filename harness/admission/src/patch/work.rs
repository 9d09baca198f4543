//! Limits the computation that one patch can cause.

use kubernetes_types::status::Unsupported;

use super::ApplyError;

/// The number of list elements that the operations of one patch have shifted or measured so far.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Work(usize);

/// The maximum number of values that the operations of one patch may shift and measure.
///
/// Inserting at the front of a list shifts all its elements, so many insertions take quadratic time. kube-apiserver
/// does not have a limit and hangs.
const MAX_WORK: usize = 100_000_000;

/// The limit that applies. Tests have a lower one, because unoptimized code needs seconds for that much work.
pub(super) const LIMIT: usize = if cfg!(test) { MAX_WORK / 10 } else { MAX_WORK };

impl Work {
    /// Adds `values` to the work done so far.
    ///
    /// # Errors
    /// Returns [`ApplyError::Unsupported`] if the limit is exceeded.
    pub(super) fn add(&mut self, values: usize) -> Result<(), ApplyError> {
        self.0 = self.0.saturating_add(values);
        if self.0 > LIMIT {
            let what = format!("a JSON patch that shifts more than {LIMIT} elements of lists");
            return Err(ApplyError::Unsupported(Unsupported { what }));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_beyond_the_limit_is_rejected() {
        let mut work = Work::default();
        assert_eq!(work.add(LIMIT), Ok(()));
        assert_eq!(
            work.add(1).unwrap_err().to_string(),
            format!("unsupported: a JSON patch that shifts more than {LIMIT} elements of lists")
        );
    }
}
