//! What a Queue object carries in annotation `tephra.sh/fairness`, so that turns survive a restart and a change of leader:
//! `{"at":1767229200000,"prepaid":"0","service":"123","version":1,"virtualTime":"120","waits":true}`. Numbers beyond 2^53 are texts, since not every
//! reader of JSON keeps them.

use serde_json::{Value, json};

use super::turns::Flow;

const VERSION: u64 = 1;
/// No honest figure is larger: 2^70 a millisecond for 34 years.
const LARGEST: i128 = 1 << 110;
/// Longest time without a scheduler that is charged to what has run on.
const LONGEST_MS: i64 = 24 * 3_600_000;

/// A flow as it was at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// [`Flow::service`].
    pub service: i128,
    /// Entry charges that were not caught up with.
    pub prepaid: i128,
    /// Virtual time among its siblings.
    pub virtual_time: i128,
    /// [`Flow::backlogged`].
    pub waits: bool,
    /// When that was, in milliseconds since 1970.
    pub at_ms: i64,
}

impl Record {
    /// A flow as it is now.
    pub fn of(flow: &Flow, virtual_time: i128, at_ms: i64) -> Self {
        let prepaid = flow.tag() - flow.service;
        Self { service: flow.service, prepaid, virtual_time, waits: flow.backlogged, at_ms }
    }

    /// Gives a flow the tag that it had, and charges what it has run since.
    pub fn restore(&self, flow: &mut Flow, now_ms: i64) {
        (flow.service, flow.prepaid) = (self.service, self.prepaid);
        flow.backlogged = self.waits;
        flow.run(now_ms.saturating_sub(self.at_ms).clamp(0, LONGEST_MS));
    }

    /// The text.
    pub fn text(&self) -> String {
        json!({
            "version": VERSION,
            "service": self.service.to_string(),
            "prepaid": self.prepaid.to_string(),
            "virtualTime": self.virtual_time.to_string(),
            "waits": self.waits,
            "at": self.at_ms,
        })
        .to_string()
    }

    /// Reads the text.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn read(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        match value.get("version").map(Value::as_u64) {
            Some(Some(VERSION)) => {}
            _ => return Err(format!("its version is not {VERSION}")),
        }
        let number = |key: &str| {
            let text = value.get(key).and_then(Value::as_str);
            let number = text.and_then(|text| text.parse::<i128>().ok());
            number
                .filter(|number| (0..=LARGEST).contains(number))
                .ok_or_else(|| format!("{key} is no number in its range"))
        };
        Ok(Self {
            service: number("service")?,
            prepaid: number("prepaid")?,
            virtual_time: number("virtualTime")?,
            waits: value.get("waits").and_then(Value::as_bool).ok_or("waits is missing")?,
            at_ms: value.get("at").and_then(Value::as_i64).ok_or("at is missing")?,
        })
    }
}
