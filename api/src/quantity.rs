//! Kubernetes quantities: the numbers of resource lists, such as `500m`, `1.5Gi` or `2e3`.
//!
//! The rules are those of Kubernetes' own quantity type: the same texts parse, fractions below a billionth round away from
//! zero, and a value is written in the family of suffixes it was read in. Where Go's accessors wrap or read an
//! overflow as 0, everything here saturates, so that an absurd limit stays a large limit. Nothing in this module knows
//! what a resource is; see [`crate::resource`].

mod format;
mod parse;

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Add, AddAssign, Neg, Sub, SubAssign};
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::planted::{Bug, planted};

/// Billionths in one unit: the finest grain a quantity has.
const NANO: i128 = 1_000_000_000;
/// Billionths in a thousandth.
const NANO_PER_MILLI: i128 = 1_000_000;
/// Largest magnitude in billionths; sums and texts beyond it read as this (10^29 units, far above `i64`).
const LIMIT: i128 = 10_i128.pow(38);

/// The family of suffixes in which a quantity is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// `n u m k M G T P E` and no suffix: powers of 1000.
    #[default]
    DecimalSi,
    /// `Ki Mi Gi Ti Pi Ei`: powers of 1024.
    BinarySi,
    /// `e3`: powers of ten.
    DecimalExponent,
}

/// A fixed-point number with the family of suffixes it was written in. Equality, order and hash go by value alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quantity {
    nano: i128,
    format: Format,
}

/// Why a text is no quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuantityError {
    /// The text is empty.
    #[error("a quantity must not be empty")]
    Empty,
    /// What follows the number is no suffix and no exponent.
    #[error(
        "unknown suffix {suffix:?}; known are n u m k M G T P E, Ki Mi Gi Ti Pi Ei and exponents like e3"
    )]
    Suffix {
        /// The part behind the number, at most 32 characters.
        suffix: String,
    },
    /// The text does not begin with a number.
    #[error("{text:?} does not begin with a number")]
    Number {
        /// The text, at most 32 characters.
        text: String,
    },
}

impl Quantity {
    /// Zero.
    pub const ZERO: Self = Self { nano: 0, format: Format::DecimalSi };

    /// Reads a quantity. A sign is accepted: whether a negative amount makes sense is the caller's business.
    ///
    /// # Errors
    /// When the text is no quantity to Kubernetes either.
    ///
    /// # Examples
    /// ```
    /// use tephra_api::quantity::Quantity;
    /// assert_eq!(Quantity::parse("1.5Gi")?.to_string(), "1536Mi");
    /// assert_eq!(Quantity::parse("0.1m")?.milli_value(), 1);
    /// assert!(Quantity::parse("1Gib").is_err());
    /// # Ok::<(), tephra_api::quantity::QuantityError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        parse::parse(text)
    }

    /// A number of whole units.
    pub const fn from_value(value: i64) -> Self {
        Self { nano: value as i128 * NANO, format: Format::DecimalSi }
    }

    /// A number of bytes, written with binary suffixes.
    pub const fn from_bytes(bytes: i64) -> Self {
        Self::from_value(bytes).with_format(Format::BinarySi)
    }

    /// A number of thousandths.
    pub const fn from_milli(milli: i64) -> Self {
        Self { nano: milli as i128 * NANO_PER_MILLI, format: Format::DecimalSi }
    }

    /// The same value, written in another family of suffixes.
    #[must_use]
    pub const fn with_format(self, format: Format) -> Self {
        Self { format, ..self }
    }

    /// The family of suffixes in which this quantity is written.
    pub const fn format(&self) -> Format {
        self.format
    }

    /// The value in whole units, rounded away from zero, saturating at the ends of `i64`.
    pub fn value(&self) -> i64 {
        scaled(self.nano, NANO)
    }

    /// The value in thousandths, rounded away from zero, saturating at the ends of `i64`.
    pub fn milli_value(&self) -> i64 {
        scaled(self.nano, NANO_PER_MILLI)
    }

    /// The value as a floating-point number, for ratios and displays.
    pub fn as_f64(&self) -> f64 {
        self.nano as f64 / NANO as f64
    }

    /// True when the value is 0.
    pub const fn is_zero(&self) -> bool {
        self.nano == 0
    }

    /// True when the value is below 0.
    pub const fn is_negative(&self) -> bool {
        self.nano < 0
    }

    /// Sum that stays at the largest magnitude there is instead of wrapping; the same as `+`, said aloud. A zero takes over
    /// the format of the other side, as in Kubernetes.
    #[must_use]
    pub fn saturating_add(self, other: Self) -> Self {
        let format = if self.is_zero() { other.format } else { self.format };
        Self::from_nano(self.nano.saturating_add(other.nano), format)
    }

    /// `part` of `whole` equal parts, rounded up to a billionth; a `whole` of 0 counts as 1.
    #[must_use]
    pub fn portion(self, part: u32, whole: u32) -> Self {
        let (part, whole) = (i128::from(part), i128::from(whole.max(1)));
        let (each, rest) = (self.nano.div_euclid(whole), self.nano.rem_euclid(whole) * part);
        let rest = rest.div_euclid(whole) + i128::from(rest.rem_euclid(whole) != 0);
        Self::from_nano(each.saturating_mul(part).saturating_add(rest), self.format)
    }

    fn from_nano(nano: i128, format: Format) -> Self {
        Self { nano: nano.clamp(-LIMIT, LIMIT), format }
    }
}

/// `nano / unit`, rounded away from zero, saturating.
fn scaled(nano: i128, unit: i128) -> i64 {
    let exact = nano % unit == 0 || planted(Bug::WrongRounding);
    let whole = nano / unit + if exact { 0 } else { nano.signum() };
    i64::try_from(whole).unwrap_or(if whole < 0 { i64::MIN } else { i64::MAX })
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        parse::parse(text)
    }
}

impl fmt::Display for Quantity {
    /// Writes the canonical form: no fraction, the largest suffix that loses nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        format::write(f, self.nano, self.format)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nano == other.nano
    }
}

impl Eq for Quantity {}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nano.hash(state);
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nano.cmp(&other.nano)
    }
}

impl Add for Quantity {
    type Output = Self;

    /// [`Quantity::saturating_add`].
    fn add(self, other: Self) -> Self {
        self.saturating_add(other)
    }
}

impl Sub for Quantity {
    type Output = Self;

    /// Saturating difference. A zero takes over the format of the other side, as in Kubernetes.
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Neg for Quantity {
    type Output = Self;

    fn neg(self) -> Self {
        Self { nano: -self.nano, ..self }
    }
}

impl AddAssign for Quantity {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Quantity {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrNumber)
    }
}

/// Accepts what Kubernetes accepts in JSON: a string, a number, or `null` for 0.
struct TextOrNumber;

impl Visitor<'_> for TextOrNumber {
    type Value = Quantity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity, as string or number")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Quantity, E> {
        Quantity::parse(text.trim()).map_err(|error| E::custom(format!("{text:?}: {error}")))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Quantity, E> {
        Ok(Quantity::from_value(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Quantity, E> {
        Ok(Quantity::from_nano(i128::from(value) * NANO, Format::DecimalSi))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Quantity, E> {
        Quantity::parse(&value.to_string())
            .map_err(|_| E::custom(format!("{value} is no finite number")))
    }

    fn visit_unit<E>(self) -> Result<Quantity, E> {
        Ok(Quantity::ZERO)
    }
}
