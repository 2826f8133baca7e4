//! Look-ups in labels, which are kept as pairs sorted by key.

/// Value of a label; `labels` are sorted by key, each key once.
pub fn value<'l>(labels: &'l [(String, String)], key: &str) -> Option<&'l str> {
    // Below this size a scan beats the branches of a binary search.
    const SCAN: usize = 8;
    if labels.len() <= SCAN {
        return labels.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str());
    }
    let at = labels.binary_search_by(|(name, _)| name.as_str().cmp(key)).ok()?;
    Some(&labels[at].1)
}

/// True when `text` is a legal label value: at most 63 characters of letters, digits, `-`, `_` and `.`, with a
/// letter or digit at both ends. The empty text is legal.
pub fn is_value(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
        return true;
    };
    bytes.len() <= 63
        && first.is_ascii_alphanumeric()
        && last.is_ascii_alphanumeric()
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(count: usize) -> Vec<(String, String)> {
        (0..count).map(|i| (format!("key-{i:03}"), format!("{i}"))).collect()
    }

    #[test]
    fn every_label_is_found_in_short_and_long_lists() {
        for count in [0, 1, 7, 8, 9, 40] {
            let labels = numbered(count);
            for (key, expected) in &labels {
                assert_eq!(value(&labels, key), Some(expected.as_str()));
            }
            assert_eq!(value(&labels, "a"), None);
            assert_eq!(value(&labels, "key-0005"), None);
            assert_eq!(value(&labels, "z"), None);
        }
    }

    #[test]
    fn label_values_follow_the_syntax_of_kubernetes() {
        for good in ["", "a", "A1", "a-b_c.d", "0", &"x".repeat(63)] {
            assert!(is_value(good), "{good}");
        }
        for bad in ["-a", "a-", ".a", "a_", "a b", "ä", "a/b", &"x".repeat(64)] {
            assert!(!is_value(bad), "{bad}");
        }
    }
}
