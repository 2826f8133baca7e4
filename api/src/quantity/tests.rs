//! Quantities against Kubernetes' rules and against a slow reference.

use proptest::prelude::*;

use super::*;

fn q(text: &str) -> Quantity {
    Quantity::parse(text).unwrap()
}

#[test]
fn every_suffix_scales_as_kubernetes_says() {
    let cases = [
        ("1n", 1, 1),
        ("1u", 1, 1),
        ("1m", 1, 1),
        ("1500m", 2, 1500),
        ("1", 1, 1000),
        ("2k", 2000, 2_000_000),
        ("3M", 3_000_000, 3_000_000_000),
        ("1G", 1_000_000_000, 1_000_000_000_000),
        ("1T", 1_000_000_000_000, 1_000_000_000_000_000),
        ("1P", 1_000_000_000_000_000, 1_000_000_000_000_000_000),
        ("1E", 1_000_000_000_000_000_000, i64::MAX),
        ("1Ki", 1024, 1_024_000),
        ("1.5Gi", 1_610_612_736, 1_610_612_736_000),
        ("1Ei", 1 << 60, i64::MAX),
        ("1e3", 1000, 1_000_000),
        ("12E-1", 2, 1200),
        (".5", 1, 500),
        ("1.", 1, 1000),
        ("+1", 1, 1000),
        ("-1", -1, -1000),
        ("-0.1m", -1, -1),
    ];
    for (text, value, milli) in cases {
        assert_eq!((q(text).value(), q(text).milli_value()), (value, milli), "{text}");
    }
}

#[test]
fn fractions_round_away_from_zero() {
    assert_eq!(q("0.1m").milli_value(), 1);
    assert_eq!(q("0.0000000001").milli_value(), 1);
    assert_eq!(q("100.5").value(), 101);
    assert_eq!(q("1.0000000001Ki").value(), 1025);
}

#[test]
fn too_large_values_saturate() {
    for text in
        ["9E", "10E", "100P", "9223372036854775807", "99999999999999999999999", "1e100", "8Ei"]
    {
        assert!(q(text).value() >= 100_000_000_000_000_000, "{text}");
        assert!(q(text).milli_value() > 0, "{text}");
    }
    assert_eq!(q("10E").value(), i64::MAX);
    assert_eq!(q("-10E").value(), i64::MIN);
    assert_eq!(q("1e-100").value(), 1);
}

#[test]
fn text_that_is_no_quantity_is_refused_and_the_error_shows_the_part_at_fault() {
    assert_eq!(Quantity::parse(""), Err(QuantityError::Empty));
    let suffixes = [
        ("1Gib", "Gib"),
        ("1..2", ".2"),
        ("1.2.3", ".3"),
        ("1 Gi", " Gi"),
        ("1K", "K"),
        ("0x10", "x10"),
        ("1e", "e"),
        ("1e+", "e+"),
        ("1Ki3", "Ki3"),
        ("1e5.", "e5."),
        ("1eE5", "eE5"),
        ("1e99999999999999999999", "e99999999999999999999"),
        ("10%", "%"),
        ("1\u{1F980}", "\u{1F980}"),
    ];
    for (text, suffix) in suffixes {
        let expected = QuantityError::Suffix { suffix: suffix.to_owned() };
        assert_eq!(Quantity::parse(text), Err(expected), "{text}");
    }
    for text in ["one", " 1", "--1", "inf", "NaN", "\u{1F980}"] {
        let expected = QuantityError::Number { text: text.to_owned() };
        assert_eq!(Quantity::parse(text), Err(expected), "{text}");
    }
    let QuantityError::Suffix { suffix } =
        Quantity::parse(&format!("1{}", "x".repeat(999))).unwrap_err()
    else {
        panic!("a bad suffix is an error about the suffix");
    };
    assert_eq!(suffix.len(), 32, "an error does not repeat a long text");
}

#[test]
fn the_scanner_is_as_lax_as_the_one_of_kubernetes() {
    for text in [".", "+", "-", "k", "Ki", "-0", "00", "0E", ".m"] {
        assert!(q(text).is_zero(), "{text}");
    }
    assert_eq!(q("007").value(), 7);
}

#[test]
fn digits_beyond_eighteen_count_and_never_wrap() {
    assert_eq!(q("0.123456789012345678901234567890").to_string(), "123456790n");
    assert_eq!(
        q("1.00000000000000000000000000000000000000000000000001").to_string(),
        "1000000001n"
    );
    assert_eq!(q("123456789012345678901234567890e-20").to_string(), "1234567890123456790e-9");
    assert_eq!(q("18446744073709551616").to_string(), "18446744073709551616");
    assert_eq!(q(&"9".repeat(400)).to_string(), "100e27");
    assert_eq!(q("1e2000000000"), q("1e29"));
    assert_eq!(q("0e2000000000"), Quantity::ZERO);
    assert_eq!(q("1e-2000000000").to_string(), "1e-9");
    assert_eq!(q("8Ei").value(), i64::MAX);
    assert_eq!(q("9999999999999999999999999999999999999999Ei").value(), i64::MAX);
    assert_eq!(q("1e29") + q("1e29"), q("1e29"));
    assert_eq!((q("-1e29") - q("1e29")).milli_value(), i64::MIN);
}

#[test]
fn sums_are_exact_and_zero_takes_the_other_format() {
    let sum = (0..1000).fold(Quantity::ZERO, |sum, _| sum + q("0.1"));
    assert_eq!(sum, q("100"));
    assert_eq!((Quantity::ZERO + q("1Gi")).to_string(), "1Gi");
    assert_eq!((q("1Gi") - q("1")).to_string(), "1073741823");
    assert!(q("999m") < q("1") && q("1Ki") == q("1024") && q("-1") < Quantity::ZERO);
}

#[test]
fn printing_is_canonical_and_keeps_the_family() {
    let cases = [
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("1024Ki", "1Mi"),
        ("1536Mi", "1536Mi"),
        ("1000k", "1M"),
        ("0.5", "500m"),
        ("1e3", "1e3"),
        ("0", "0"),
        ("1000Ki", "1000Ki"),
        ("-2000m", "-2"),
        ("512", "512"),
        ("0.5Ki", "512"),
        ("1000E", "1e21"),
        ("1500e-3", "1500e-3"),
        ("12345e1", "123450"),
        ("1.5Ki", "1536"),
        ("2048.5Ki", "2097664"),
        ("0.9n", "1n"),
        ("7Ei", "7Ei"),
    ];
    for (text, printed) in cases {
        assert_eq!(q(text).to_string(), printed, "{text}");
    }
}

#[test]
fn json_may_hold_a_string_or_a_number() {
    let list: Vec<Quantity> = serde_json::from_str(r#"["1Gi", 2, 0.5, -1]"#).unwrap();
    assert_eq!(list, [q("1Gi"), q("2"), q("500m"), q("-1")]);
    assert_eq!(serde_json::to_string(&list).unwrap(), r#"["1Gi","2","500m","-1"]"#);
}

proptest! {
    #[test]
    fn milli_values_equal_a_slow_reference(whole in 0_u64..1_000_000_000, fraction in 0_u32..1_000_000, suffix in 0_usize..8) {
        let (text, ten, two) = [("m", -3, 0), ("", 0, 0), ("k", 3, 0), ("M", 6, 0), ("Ki", 0, 10), ("Mi", 0, 20), ("e3", 3, 0), ("u", -6, 0)][suffix];
        let written = format!("{whole}.{fraction:06}{text}");
        // Micro-units times the scale, in milli-units, rounded up.
        let micro = i128::from(whole) * 1_000_000 + i128::from(fraction);
        let numerator = micro * (1_i128 << two) * 10_i128.pow((ten + 6) as u32);
        let denominator = 10_i128.pow(6 + 6 - 3);
        let expected = (numerator + denominator - 1) / denominator;
        prop_assert_eq!(i128::from(q(&written).milli_value()), expected, "{}", written);
    }

    #[test]
    fn what_is_printed_reads_back_equal(nano in -1_000_000_000_000_000_000_i64..1_000_000_000_000_000_000) {
        let quantity = Quantity { nano: i128::from(nano), format: Format::DecimalSi };
        prop_assert_eq!(q(&quantity.to_string()), quantity);
    }

    #[test]
    fn any_text_is_read_or_refused_without_panic(text in "\\PC{0,24}") {
        let _ = Quantity::parse(&text);
    }
}

#[test]
fn a_portion_is_rounded_up_and_saturates() {
    assert_eq!(q("3").portion(1, 2), q("1500m"));
    assert_eq!(q("1").portion(1, 3), q("333333334n"));
    assert_eq!(q("1").portion(3, 3), q("1"));
    assert_eq!(q("1Gi").portion(1, 4).to_string(), "256Mi");
    assert_eq!(q("5").portion(0, 3), Quantity::ZERO);
    assert_eq!(q("2").portion(1, 0), q("2"));
    assert!(q("1e29").portion(u32::MAX, 1) >= q("1e29"));
}
