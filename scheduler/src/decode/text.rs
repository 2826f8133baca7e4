//! Building blocks of slim decoding: strings borrowed from the input, lists and maps that accept `null` as
//! empty (as Go's decoder does), quantities as written. Nothing here knows what a pod or a node is.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A string, borrowed from the input unless it carries escapes. `null` reads as empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

impl Text<'_> {
    /// The text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// True when absent, `null` or `""`.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// An owned copy, `None` when empty.
    pub(crate) fn non_empty(&self) -> Option<String> {
        (!self.is_empty()).then(|| self.0.clone().into_owned())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text_<'a>(PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for Text_<'a> {
            type Value = Text<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, v: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(v)))
            }
            fn visit_str<E>(self, v: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(v.to_owned())))
            }
            fn visit_string<E>(self, v: String) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(v)))
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Text::default())
            }
        }
        deserializer.deserialize_any(Text_(PhantomData))
    }
}

/// A quantity as written: a string, or a bare number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct QuantityText<'a>(pub(crate) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for QuantityText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Quantity<'a>(PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for Quantity<'a> {
            type Value = QuantityText<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity, as string or number")
            }
            fn visit_borrowed_str<E>(self, v: &'de str) -> Result<Self::Value, E> {
                Ok(QuantityText(Cow::Borrowed(v)))
            }
            fn visit_str<E>(self, v: &str) -> Result<Self::Value, E> {
                Ok(QuantityText(Cow::Owned(v.to_owned())))
            }
            fn visit_u64<E>(self, v: u64) -> Result<Self::Value, E> {
                Ok(QuantityText(Cow::Owned(v.to_string())))
            }
            fn visit_i64<E>(self, v: i64) -> Result<Self::Value, E> {
                Ok(QuantityText(Cow::Owned(v.to_string())))
            }
            fn visit_f64<E>(self, v: f64) -> Result<Self::Value, E> {
                Ok(QuantityText(Cow::Owned(v.to_string())))
            }
        }
        deserializer.deserialize_any(Quantity(PhantomData))
    }
}

/// A list; `null` reads as empty.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct List<T>(pub(crate) Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Items<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Items<T> {
            type Value = List<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(List::default())
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(item);
                }
                Ok(List(items))
            }
        }
        deserializer.deserialize_any(Items(PhantomData))
    }
}

/// A map in document order; `null` reads as empty.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pairs<'a, V>(pub(crate) Vec<(Text<'a>, V)>);

impl<V> Default for Pairs<'_, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de: 'a, 'a, V: Deserialize<'de>> Deserialize<'de> for Pairs<'a, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<'a, V>(PhantomData<(&'a (), V)>);
        impl<'de: 'a, 'a, V: Deserialize<'de>> Visitor<'de> for Entries<'a, V> {
            type Value = Pairs<'a, V>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Pairs::default())
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Pairs(entries))
            }
        }
        deserializer.deserialize_any(Entries(PhantomData))
    }
}

impl<'a> Pairs<'a, Text<'a>> {
    /// The value of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(k, _)| k.as_str() == key).map(|(_, v)| v.as_str())
    }

    /// Owned pairs sorted by key; of a repeated key the last value counts, as in Go.
    pub(crate) fn to_labels(&self) -> Vec<(String, String)> {
        let mut labels: Vec<(String, String)> =
            self.0.iter().map(|(k, v)| (k.as_str().to_owned(), v.as_str().to_owned())).collect();
        labels.sort_by(|a, b| a.0.cmp(&b.0));
        labels.reverse();
        labels.dedup_by(|later, kept| later.0 == kept.0);
        labels.reverse();
        labels
    }
}

/// Go's `strconv.ParseBool`; anything else is false.
pub(crate) fn parse_bool(text: &str) -> bool {
    matches!(text, "1" | "t" | "T" | "TRUE" | "true" | "True")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_without_escapes_is_borrowed_and_with_escapes_is_decoded() {
        let plain: Text<'_> = serde_json::from_str(r#""plain 🦀""#).unwrap();
        assert!(matches!(plain.0, Cow::Borrowed("plain 🦀")));
        let escaped: Text<'_> = serde_json::from_str(r#""a\"b\n\ud83e\udd80""#).unwrap();
        assert_eq!(escaped.as_str(), "a\"b\n🦀");
    }

    #[test]
    fn null_is_empty_everywhere() {
        assert!(serde_json::from_str::<Text<'_>>("null").unwrap().is_empty());
        assert!(serde_json::from_str::<List<u8>>("null").unwrap().0.is_empty());
        assert!(serde_json::from_str::<Pairs<'_, Text<'_>>>("null").unwrap().0.is_empty());
    }

    #[test]
    fn labels_are_sorted_and_the_last_value_of_a_repeated_key_counts() {
        let pairs: Pairs<'_, Text<'_>> =
            serde_json::from_str(r#"{"b":"1","a":"2","b":"3"}"#).unwrap();
        assert_eq!(
            pairs.to_labels(),
            [("a".to_owned(), "2".to_owned()), ("b".to_owned(), "3".to_owned())]
        );
    }

    #[test]
    fn quantities_may_be_numbers() {
        let q: List<QuantityText<'_>> = serde_json::from_str(r#"["1Gi", 2, -1, 0.5]"#).unwrap();
        let texts: Vec<&str> = q.0.iter().map(|q| q.0.as_ref()).collect();
        assert_eq!(texts, ["1Gi", "2", "-1", "0.5"]);
    }
}
