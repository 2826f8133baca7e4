//! Reading quantities. The grammar is the scanner of Kubernetes, which is laxer than its documentation: `.`, `+` and `k`
//! are zeros, `1.` and `.5` are numbers.

use super::{Format, LIMIT, NANO, Quantity, QuantityError};

/// What a suffix says.
enum Scale {
    /// Times a power of ten.
    Ten(i64, Format),
    /// Times a power of two.
    Two(u32),
}

pub(super) fn parse(text: &str) -> Result<Quantity, QuantityError> {
    if text.is_empty() {
        return Err(QuantityError::Empty);
    }
    let negative = text.starts_with('-');
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, rest) = split_digits(unsigned);
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => split_digits(rest),
        None => ("", rest),
    };
    let Some(scale) = interpret(suffix) else {
        return Err(if unsigned.len() == suffix.len() && !suffix.is_empty() {
            QuantityError::Number { text: excerpt(text) }
        } else {
            QuantityError::Suffix { suffix: excerpt(suffix) }
        });
    };
    let (nano, format) = match scale {
        Scale::Ten(exponent, format) => (decimal(whole, fraction, exponent), format),
        Scale::Two(exponent) => {
            let nano = binary(whole, fraction, exponent);
            // Kubernetes writes what is smaller than one unit in decimals, to avoid rounding.
            (nano, if nano > 0 && nano < NANO { Format::DecimalSi } else { Format::BinarySi })
        }
    };
    Ok(Quantity::from_nano(if negative { -nano } else { nano }, format))
}

#[expect(clippy::string_slice, reason = "digits are single bytes, so the split is on a boundary")]
fn split_digits(text: &str) -> (&str, &str) {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    (&text[..end], &text[end..])
}

/// An error message is no place for a megabyte of input.
fn excerpt(text: &str) -> String {
    text.chars().take(32).collect()
}

fn interpret(suffix: &str) -> Option<Scale> {
    let ten = |exponent| Some(Scale::Ten(exponent, Format::DecimalSi));
    match suffix {
        "n" => ten(-9),
        "u" => ten(-6),
        "m" => ten(-3),
        "" => ten(0),
        "k" => ten(3),
        "M" => ten(6),
        "G" => ten(9),
        "T" => ten(12),
        "P" => ten(15),
        "E" => ten(18),
        "Ki" => Some(Scale::Two(10)),
        "Mi" => Some(Scale::Two(20)),
        "Gi" => Some(Scale::Two(30)),
        "Ti" => Some(Scale::Two(40)),
        "Pi" => Some(Scale::Two(50)),
        "Ei" => Some(Scale::Two(60)),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E'])?.parse::<i64>().ok()?;
            Some(Scale::Ten(exponent, Format::DecimalExponent))
        }
    }
}

fn digit(byte: u8) -> i128 {
    i128::from(byte - b'0')
}

/// Reads digits, saturating at the limit.
fn integer(digits: impl Iterator<Item = u8>) -> i128 {
    digits.fold(0, |value: i128, byte| (value.min(LIMIT / 10) * 10 + digit(byte)).min(LIMIT))
}

/// Billionths in `whole.fraction * 10^exponent`, rounded up.
fn decimal(whole: &str, fraction: &str, exponent: i64) -> i128 {
    let digits = || whole.bytes().chain(fraction.bytes());
    // Digits left of this position count whole billionths; those right of it only decide about rounding.
    let point = i128::try_from(whole.len()).unwrap_or(LIMIT) + i128::from(exponent) + 9;
    let kept = usize::try_from(point.max(0)).unwrap_or(usize::MAX);
    let mut value = integer(digits().take(kept));
    let missing = point - i128::try_from(whole.len() + fraction.len()).unwrap_or(LIMIT);
    for _ in 0..missing.clamp(0, 39) {
        value = (value.min(LIMIT / 10) * 10).min(LIMIT);
    }
    let inexact = digits().skip(kept).any(|byte| byte != b'0');
    value + i128::from(inexact)
}

/// Billionths in `whole.fraction * 2^exponent`, rounded up and capped at the largest `i64`, as Kubernetes caps
/// quantities with binary suffixes.
fn binary(whole: &str, fraction: &str, exponent: u32) -> i128 {
    let cap = i128::from(i64::MAX) * NANO;
    let whole = integer(whole.bytes()).min(1 << 63) << exponent.min(60);
    // Multiplies the fraction from its last digit on, so that any number of digits is exact.
    let unit = NANO << exponent;
    let mut part = 0;
    let mut inexact = false;
    for byte in fraction.bytes().rev() {
        part += digit(byte) * unit;
        inexact |= part % 10 != 0;
        part /= 10;
    }
    let whole = whole.min(1 << 63) * NANO;
    (whole + part + i128::from(inexact)).min(cap)
}
