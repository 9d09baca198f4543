//! Tests formats and numbers against the results of x/text 0.40 and cel-go 0.29.2.

use std::convert::Infallible;

use super::{Clause, Failure, interpolate, number};

#[test]
fn numbers_have_separators_and_round_to_even() {
    for (value, precision, text) in [
        (0.0, 6, "0.000000"),
        (-0.0, 2, "0.00"),
        (-0.001, 2, "-0.00"),
        (0.5, 0, "0"),
        (2.5, 0, "2"),
        (3.5, 0, "4"),
        (2.675, 2, "2.67"),
        (999.9995, 3, "1,000.000"),
        (-1_234_567.891, 2, "-1,234,567.89"),
        (1e22, 0, "10,000,000,000,000,000,000,000"),
        (f64::NAN, 2, "NaN"),
        (f64::NEG_INFINITY, 2, "-∞"),
        // At least 257 % 256 digits, and at most all of them.
        (0.1, 257, "0.1000000000000000055511151231257827021181583404541015625"),
        (0.5, 256, "0.5"),
        (1.0, 256, "1"),
        // A negative 16-bit number sets no limit, so the shortest digits are used.
        (-3_989_141_337_029.781, 32768, "-3,989,141,337,029.781"),
        (0.1, 65536, "0"),
        (1.5, 10_000_010, "%!(NOVERB)"),
    ] {
        assert_eq!(number::fixed(value, precision), text, "{value} {precision}");
    }
}

#[test]
fn the_precision_of_scientific_notation_is_a_width() {
    for (value, width, text) in [
        (1.5, 6, "1.500000×10⁰⁰"),
        (-1234.5, 0, "-1.234500×10⁰³"),
        (5e-324, 2, "4.940656×10⁻³²⁴"),
        (1e300, 15, " 1.000000×10³⁰⁰"),
        (f64::INFINITY, 6, "     ∞"),
        (f64::NAN, 6, "   NaN"),
        (1.5, 65536, "1.500000×10⁰⁰"),
        (1.5, 100_000_000, "%!(NOVERB)"),
    ] {
        assert_eq!(number::scientific(value, width), text, "{value} {width}");
    }
}

fn clauses(format: &str, arguments: usize) -> Result<(String, Vec<Clause>), String> {
    let (mut output, mut found) = (String::new(), Vec::new());
    let result = interpolate::<Infallible>(format, arguments, &mut output, |index, clause, output| {
        found.push(clause);
        output.extend(["<", &index.to_string(), ">"]);
        Ok(())
    });
    match result {
        Ok(()) => Ok((output, found)),
        Err(Failure::Format(message)) => Err(message),
        Err(Failure::Argument(never)) => match never {},
    }
}

#[test]
fn clauses_follow_percent_signs() {
    let (output, found) = clauses("é%%%s-%.2f%X", 4).unwrap();
    assert_eq!(output, "é%<0>-<1><2>");
    assert_eq!(found, [Clause::Text, Clause::Fixed(2), Clause::Hex { upper: true }]);
}

#[test]
fn invalid_formats_have_the_errors_of_cel_go() {
    let clause = "could not parse formatting clause: ";
    let precision = "error while parsing precision: ";
    let atoi = "error while converting precision to integer: strconv.Atoi: parsing ";
    for (format, message) in [
        ("%d %d", "index 1 out of range".to_owned()),
        ("%d %", "index 1 out of range".to_owned()),
        ("%", "unexpected end of string".to_owned()),
        ("%é", format!("{clause}unrecognized formatting clause \"Ã\"")),
        ("%.3", format!("{clause}{precision}could not find end of precision specifier")),
        ("%.f", format!("{clause}{precision}{atoi}\"\": invalid syntax")),
        (
            "%.99999999999999999999f",
            format!("{clause}{precision}{atoi}\"99999999999999999999\": value out of range"),
        ),
    ] {
        assert_eq!(clauses(format, 1).unwrap_err(), message, "{format}");
    }
}
