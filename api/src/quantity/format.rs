//! Writing quantities in Kubernetes' canonical form.

use std::fmt;

use super::{Format, NANO};

/// Writes billionths in a family of suffixes.
pub(super) fn write(f: &mut fmt::Formatter<'_>, nano: i128, format: Format) -> fmt::Result {
    if nano == 0 {
        return f.write_str("0");
    }
    // Binary suffixes are for whole numbers from 1024 on; what they cannot show exactly is written in decimals.
    if format == Format::BinarySi && nano % NANO == 0 && (nano / NANO).abs() >= 1024 {
        return binary(f, nano / NANO);
    }
    decimal(f, nano, format)
}

fn binary(f: &mut fmt::Formatter<'_>, mut value: i128) -> fmt::Result {
    let mut suffix = "";
    for larger in ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"] {
        if value % 1024 != 0 {
            break;
        }
        value /= 1024;
        suffix = larger;
    }
    write!(f, "{value}{suffix}")
}

fn decimal(f: &mut fmt::Formatter<'_>, mut mantissa: i128, format: Format) -> fmt::Result {
    let mut exponent = -9;
    while mantissa % 1000 == 0 {
        mantissa /= 1000;
        exponent += 3;
    }
    let suffix = match (format, exponent) {
        (_, 0) => "",
        (Format::DecimalExponent, _) => return write!(f, "{mantissa}e{exponent}"),
        (_, -9) => "n",
        (_, -6) => "u",
        (_, -3) => "m",
        (_, 3) => "k",
        (_, 6) => "M",
        (_, 9) => "G",
        (_, 12) => "T",
        (_, 15) => "P",
        (_, 18) => "E",
        // No suffix is left beyond E.
        _ => return write!(f, "{mantissa}e{exponent}"),
    };
    write!(f, "{mantissa}{suffix}")
}
