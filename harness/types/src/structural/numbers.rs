//! Compares numbers as Go does.

/// Returns whether a float counts as an integer.
///
/// Source: go-openapi/swag conv/convert.go, `IsFloat64AJSONInteger`.
pub(super) fn is_integer(float: f64) -> bool {
    const MAX_JSON_FLOAT: f64 = 9_007_199_254_740_991.0;
    const MIN_JSON_FLOAT: f64 = -9_007_199_254_740_992.0;
    const EPSILON: f64 = 1e-9;
    if !(MIN_JSON_FLOAT..=MAX_JSON_FLOAT).contains(&float) {
        return false;
    }
    let rounded = float.round();
    let difference = (float - rounded).abs();
    difference == 0.0 || (rounded != 0.0 && difference < EPSILON * rounded.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_close_to_an_integer_count_as_integers() {
        for (float, expected) in
            [(1.0, true), (1.000_000_000_1, true), (1.1, false), (0.0, true), (1e-12, false), (1e300, false)]
        {
            assert_eq!(is_integer(float), expected, "{float}");
        }
    }
}
