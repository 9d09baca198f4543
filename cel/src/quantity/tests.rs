//! Tests the parsing, formatting, comparison, and addition of quantities, and their properties.

use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(text: &str, printed: &str) {
    assert_eq!(Quantity::parse(text).map(|quantity| quantity.to_string()), Ok(printed.to_owned()), "{text}");
}

fn quantity(text: &str) -> Quantity {
    Quantity::parse(text).unwrap()
}

#[test]
fn the_canonical_form_has_no_fraction_and_the_largest_suffix() {
    for (text, printed) in [
        ("0", "0"),
        ("0Gi", "0"),
        ("1", "1"),
        ("0.5", "500m"),
        (".5", "500m"),
        ("1000", "1k"),
        ("1500", "1500"),
        ("100m", "100m"),
        ("1000m", "1"),
        ("1.5Gi", "1536Mi"),
        ("1024Ki", "1Mi"),
        ("1000Ki", "1000Ki"),
        ("0.5Ki", "512"),
        ("0.1Ki", "102400m"),
        ("-0.1Ki", "-102400m"),
        ("1e3", "1e3"),
        ("12e6", "12e6"),
        ("1e2", "100"),
        ("1E", "1E"),
        ("1n", "1n"),
        ("-1.5", "-1500m"),
        ("1048576", "1048576"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        ("12345678901234567890e30", "12345678901234567890e30"),
    ] {
        check(text, printed);
    }
}

#[test]
fn canonical_text_is_kept() {
    for text in ["+1", "010", "1.", "1.500", "1E3", "1e+3", "007Mi", "-1.001"] {
        check(text, text);
    }
    check("1.50", "1500m");
    check("+1000", "1k");
    check("008Mi", "8Mi");
}

#[test]
fn missing_digits_are_zero() {
    for text in [".", "-", "+", "m", "Ki", "e5", "-.k"] {
        check(text, "0");
    }
    assert_eq!(Quantity::parse(".e-20").unwrap_err(), QuantityError::Numeric);
}

#[test]
fn powers_without_a_suffix_are_formatted_without_one() {
    check("1000E", "1");
    check("1000000000000E", "1");
}

#[test]
fn amounts_are_bounded_by_nano_units_and_63_bits() {
    check("0.1n", "1n");
    check("-0.1n", "-1n");
    check("1e-1000000000", "1e-9");
    check("8Ei", "9223372036854775807");
    check("-9Ei", "-9223372036854775807");
    check("9223372036854775808", "9223372036854775808");
}

#[test]
fn exponents_beyond_32_bits_lose_bits() {
    assert_eq!(quantity("1e4294967299"), quantity("1000"));
    assert_eq!(Quantity::parse("1e9223372036854775808").unwrap_err(), QuantityError::Suffix);
}

#[test]
fn invalid_quantity_has_the_error_of_the_server() {
    for (text, error) in [
        ("", QuantityError::Format),
        ("a", QuantityError::Format),
        ("1 Gi", QuantityError::Format),
        ("1.2.3", QuantityError::Format),
        ("é", QuantityError::Format),
        ("1i", QuantityError::Suffix),
        ("1GiB", QuantityError::Format),
        ("1e", QuantityError::Suffix),
        ("1ki", QuantityError::Suffix),
        ("12345678901234567890e1000000", QuantityError::TooLarge),
    ] {
        assert_eq!(Quantity::parse(text).map(|_| ()), Err(error), "{text}");
    }
}

#[test]
fn amounts_compare_by_value() {
    assert_eq!(quantity("1Gi"), quantity("1073741824"));
    assert_eq!(quantity("1"), quantity("1000m"));
    assert_eq!(quantity("9223372036854775808"), quantity("9223372036854775.808k"));
    assert!(quantity("1M") < quantity("1Mi"));
    assert!(quantity("-1") < Quantity::ZERO);
    // The comparison does not expand the exponents.
    assert!(quantity("1e2000000000") > quantity("1e1000000000"));
    assert!(quantity("-1e2000000000") < quantity("1n"));
}

#[test]
fn only_fast_64_bit_conversions_are_integers() {
    for (text, integer) in [
        ("5", Some(5)),
        ("5k", Some(5000)),
        ("9E", Some(9_000_000_000_000_000_000)),
        ("10E", None),
        ("5.0", None),
        ("5000m", None),
        ("1.5Ki", None),
        ("2Ki", Some(2048)),
        ("1000000000000000000", None),
    ] {
        assert_eq!(quantity(text).as_integer(), integer, "{text}");
    }
}

#[test]
fn values_are_rounded_up_and_lose_bits() {
    for (text, value, milli_value) in [
        ("1", 1, 1000),
        ("1500m", 2, 1500),
        ("-1500m", -2, -1500),
        ("1n", 1, 1),
        ("1.5Ki", 1536, 1_536_000),
        ("9E", 9_000_000_000_000_000_000, 0),
        ("10E", 0, 0),
        ("9447936385695k", 9_447_936_385_695_000, -8_998_807_688_014_551_616),
        ("9223372036854775808", i64::MIN, 0),
        ("9223372036854775807.5", i64::MIN, -500),
        ("0.0000000000000000000001", 1, 1),
        ("-9223372036854775807.5", 1, 500),
    ] {
        assert_eq!((quantity(text).value(), quantity(text).milli_value()), (value, milli_value), "{text}");
    }
}

#[test]
fn sums_keep_the_suffixes_of_the_first_amount_unless_it_is_zero() {
    for (left, right, sum, difference) in [
        ("1", "1m", "1001m", "999m"),
        ("0", "1Ki", "1Ki", "-1Ki"),
        ("1Mi", "1", "1048577", "1048575"),
        ("9223372036854775807", "1", "9223372036854775808", "9223372036854775806"),
        ("1e3", "1k", "2e3", "0"),
        ("1e1000", "1e999", "11e999", "9e999"),
    ] {
        let (left, right) = (quantity(left), quantity(right));
        assert_eq!(left.plus(&right).unwrap().to_string(), sum);
        assert_eq!(left.minus(&right).unwrap().to_string(), difference);
    }
    assert_eq!(quantity("1e1000000").plus(&quantity("1")).unwrap_err(), QuantityError::TooLarge);
}

#[test]
fn minimum_integer_is_subtracted_as_if_it_were_added() {
    assert_eq!(quantity("0").minus(&i64::MIN.into()).unwrap(), Quantity::from(i64::MIN));
}

#[test]
fn approximations_use_powers_of_ten() {
    for (text, expected) in [
        ("1", 1.0),
        ("1500m", 1.5),
        ("0.1", 0.1),
        ("1e400", f64::INFINITY),
        ("3n", 3.000_000_000_000_000_4e-9),
    ] {
        assert_eq!(quantity(text).as_approximate_float().to_bits(), f64::to_bits(expected), "{text}");
    }
}

#[test]
fn very_many_digits_are_parsed_quickly() {
    let text = format!("1{}", "0".repeat(99_999));
    assert!(quantity(&text) > quantity("1e99998"));
    assert!(quantity(&text).to_string().starts_with('1'));
    assert_eq!(quantity(&format!("{text}e0")).to_string(), "1e99999");
    assert_eq!(Quantity::parse(&"1".repeat(3_000_000)), Err(QuantityError::TooLarge));
}

/// Generates quantities of any kind that keep their suffix when they are formatted.
fn any_text() -> impl Strategy<Value = String> {
    "[+-]?[0-9]{1,20}(\\.[0-9]{0,12})?(|n|u|m|k|M|Ki|Mi|Gi|Ti|Pi|Ei|e[+-]?[0-9]{1,2})"
}

proptest! {
    #[test]
    fn formatting_and_parsing_round_trips(text in any_text()) {
        let quantity = quantity(&text);
        let printed = quantity.to_string();
        let again = Quantity::parse(&printed).unwrap();
        prop_assert_eq!(again.to_string(), printed);
        // Beyond the last suffix, kube-apiserver writes none.
        if text.contains('e') || quantity < Quantity::parse("1E").unwrap() {
            prop_assert_eq!(again, quantity);
        }
    }

    #[test]
    fn subtraction_reverses_addition(left in any_text(), right in any_text()) {
        let (left, right) = (quantity(&left), quantity(&right));
        let sum = left.plus(&right).unwrap();
        prop_assert_eq!(&sum, &right.plus(&left).unwrap());
        prop_assert_eq!(sum.minus(&right).unwrap(), left.clone());
        prop_assert_eq!(left.cmp(&right), left.minus(&right).unwrap().sign().cmp(&0));
    }

    #[test]
    fn no_text_panics(text in "\\PC*") {
        let _ = Quantity::parse(&text);
    }

    #[test]
    fn no_number_panics(text in "[+-]?[0-9.]{0,60}[eEinumkKMGTP]{0,3}[+-]?[0-9]{0,12}") {
        if let Ok(quantity) = Quantity::parse(&text) {
            let _ = quantity.as_approximate_float();
            let _ = quantity.as_integer();
            let _ = quantity.plus(&Quantity::from(i64::MAX));
            prop_assert_eq!(quantity.cmp(&quantity), Ordering::Equal);
        }
    }
}

#[test]
fn amount_is_rounded_up_to_whole_units() {
    for (text, expected) in [
        ("1500u", "2m"),
        ("-1500u", "-2m"),
        ("1u", "1m"),
        ("1500m", "1500m"),
        ("1.5Gi", "1536Mi"),
        ("1e3", "1e3"),
        ("0.0000000001", "1m"),
        ("123456789012345678901234567890u", "123456789012345678901234568m"),
        ("0", "0"),
    ] {
        let rounded = Quantity::parse(text).unwrap().rounded_up(-3).unwrap();
        assert_eq!(rounded.to_string(), expected, "{text}");
    }
}
