//! A window of the day, `HH:MM-HH:MM`, in which a revocable zone is lent. The words of refusal are Go's, as users know them.

/// Seconds in an hour and a minute.
const HOUR: u32 = 3600;
const MINUTE: u32 = 60;

/// From a time of day to a later one, or to the same or an earlier one of the next day; in seconds since midnight, both
/// ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// When it opens.
    pub start: u32,
    /// When it closes.
    pub end: u32,
}

/// Why a text is no window.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// It does not have two parts.
    #[error("revocable zone {0} format error")]
    Format(String),
    /// A part is no time of day.
    #[error("parsing time \"{text}\" as \"15:04\": cannot parse \"{rest}\" as \"{element}\"")]
    Time {
        /// The part.
        text: String,
        /// Where reading it ended.
        rest: String,
        /// What should stand there: `15` the hour, `:` a colon, `04` the minute in two digits.
        element: &'static str,
    },
    /// A part has text behind the time.
    #[error("parsing time \"{text}\": extra text: \"{rest}\"")]
    Extra {
        /// The part.
        text: String,
        /// What is too much.
        rest: String,
    },
    /// An hour above 23 or a minute above 59.
    #[error("parsing time \"{text}\": {unit} out of range")]
    Range {
        /// The part.
        text: String,
        /// `hour` or `minute`.
        unit: &'static str,
    },
}

impl Window {
    /// Reads `HH:MM-HH:MM`; hours may have one digit.
    ///
    /// # Errors
    /// When there are not two parts, or one is no time of day.
    pub fn parse(text: &str) -> Result<Self, WindowError> {
        let mut parts = text.trim().split('-');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(start), Some(end), None) => {
                Ok(Self { start: time_of_day(start)?, end: time_of_day(end)? })
            }
            _ => Err(WindowError::Format(text.to_owned())),
        }
    }

    /// Open at a time of day. `overnight`: also in the hours after midnight of a window that opened the day before (P65).
    pub fn contains(self, second: u32, overnight: bool) -> bool {
        if self.start < self.end {
            return (self.start..=self.end).contains(&second);
        }
        second >= self.start || (overnight && second <= self.end)
    }
}

fn time_of_day(text: &str) -> Result<u32, WindowError> {
    let error = |rest: &str, element| WindowError::Time {
        text: text.to_owned(),
        rest: rest.to_owned(),
        element,
    };
    let (hour, rest) = digits(text, 1).ok_or_else(|| error(text, "15"))?;
    if hour > 23 {
        return Err(WindowError::Range { text: text.to_owned(), unit: "hour" });
    }
    let rest = rest.strip_prefix(':').ok_or_else(|| error(rest, ":"))?;
    let (minute, rest) = digits(rest, 2).ok_or_else(|| error(rest, "04"))?;
    if minute > 59 {
        return Err(WindowError::Range { text: text.to_owned(), unit: "minute" });
    }
    if !rest.is_empty() {
        return Err(WindowError::Extra { text: text.to_owned(), rest: rest.to_owned() });
    }
    Ok(hour * HOUR + minute * MINUTE)
}

/// A number of at least `least` and at most two digits, and what follows it.
fn digits(text: &str, least: usize) -> Option<(u32, &str)> {
    let count = text.bytes().take(2).take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(count);
    (count >= least).then(|| number.parse().ok().map(|number| (number, rest))).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> String {
        match Window::parse(text) {
            Ok(window) => format!("{}..{}", window.start, window.end),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn hours_may_have_one_digit_and_minutes_may_not() {
        assert_eq!(told("0:00-23:59"), "0..86340");
        assert_eq!(told("  01:00-0:00 "), "3600..0");
        assert_eq!(
            told("1:0-0:0"),
            "parsing time \"1:0\" as \"15:04\": cannot parse \"0\" as \"04\""
        );
    }

    #[test]
    fn what_is_no_window_says_why() {
        assert_eq!(told("00:00_01:00"), "revocable zone 00:00_01:00 format error");
        assert_eq!(told("1:00-2:00-3:00"), "revocable zone 1:00-2:00-3:00 format error");
        assert_eq!(told("63:59-23:59"), "parsing time \"63:59\": hour out of range");
        assert_eq!(told("1:00-2:60"), "parsing time \"2:60\": minute out of range");
        assert_eq!(told("1:00x-2:00"), "parsing time \"1:00x\": extra text: \"x\"");
        assert_eq!(
            told("noon-2:00"),
            "parsing time \"noon\" as \"15:04\": cannot parse \"noon\" as \"15\""
        );
        assert_eq!(
            told("1.00-2:00"),
            "parsing time \"1.00\" as \"15:04\": cannot parse \".00\" as \":\""
        );
        assert_eq!(
            told("é:00-ß"),
            "parsing time \"é:00\" as \"15:04\": cannot parse \"é:00\" as \"15\""
        );
    }

    #[test]
    fn both_ends_belong_to_a_window() {
        let window = Window::parse("1:00-2:00").unwrap();
        let open = [3599, 3600, 7200, 7201].map(|second| window.contains(second, true));
        assert_eq!(open, [false, true, true, false]);
    }

    #[test]
    fn a_window_over_midnight_stays_open_until_it_ends_unless_compatible() {
        let window = Window::parse("22:00-6:00").unwrap();
        let at = |hour: u32, overnight| window.contains(hour * HOUR, overnight);
        assert_eq!([21, 23, 0, 6, 7].map(|hour| at(hour, true)), [false, true, true, true, false]);
        assert_eq!(
            [21, 23, 0, 6, 7].map(|hour| at(hour, false)),
            [false, true, false, false, false]
        );
        let always = Window::parse("0:00-0:00").unwrap();
        assert!([0, 1, 86_399].iter().all(|&second| always.contains(second, false)));
    }
}
