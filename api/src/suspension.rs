//! What scheduler and controller write into annotations when a gang makes room and comes back: the scheduler's intent
//! (`tephra.sh/suspend`), the controller's record (`tephra.sh/suspended`) and the ledger of a life (`tephra.sh/suspensions`).
//!
//! JSON both ways. Fields that a newer version adds are passed over. A text that is not valid counts as absent: whoever reads
//! it says so in an event, and nobody is stopped by it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

/// How a gang is told that it has to go (`QueuePolicy`, `spec.preemption.checkpoint.mode`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// Not at all: it is stopped at once.
    #[default]
    None,
    /// Its pods get a request for a checkpoint and all the time until the deadline.
    Signal,
    /// Its pods get a request, and it is stopped as soon as each of them has acknowledged, at the deadline at the latest.
    Ack,
}

/// `tephra.sh/suspend` on a PodGroup: the scheduler wants the gang's room. It may take the annotation away again as long as
/// the PodGroup has no [`Record`], guarded by `metadata.resourceVersion`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// Names this suspension; unique in the life of the PodGroup, never empty.
    pub id: String,
    /// `namespace/name` of the gang that is to start; empty where a person wants it.
    #[serde(default)]
    pub by: String,
    /// `Preempt`, `Reclaim`, or a person's word.
    #[serde(default)]
    pub reason: String,
    /// When the gang is stopped at the latest.
    pub deadline: Timestamp,
    /// How it is told.
    #[serde(default)]
    pub mode: Mode,
}

/// The object whose switch stops the pods of a gang: the topmost of a known kind above them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// Group and version, `batch/v1`.
    pub api_version: String,
    /// Kind, `Job`.
    pub kind: String,
    /// Name, in the namespace of the PodGroup.
    pub name: String,
    /// Identity: an object of the same name and another uid is not meant.
    pub uid: String,
}

/// Pods of one shape that come back with the gang.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// How many there are.
    pub count: u32,
    /// Names under which the controller creates the pods again; empty where somebody else does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// A pod (`metadata` with labels and annotations, `spec`), as far as it is kept.
    pub pod: Value,
}

/// `tephra.sh/suspended` on a PodGroup and on its owner: the controller stops the gang, or has stopped it. From this
/// annotation on the way back is a resume.
///
/// The owner's copy has no members.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// Id of the [`Intent`].
    pub id: String,
    /// `namespace/name` of the gang that made it go.
    #[serde(default)]
    pub by: String,
    /// `Preempt` or `Reclaim`.
    #[serde(default)]
    pub reason: String,
    /// When the stopping began.
    pub at: Timestamp,
    /// The intent's deadline, or the last acknowledgement if that came before it.
    pub since: Timestamp,
    /// The intent's deadline: until then PodDisruptionBudgets are respected.
    pub deadline: Timestamp,
    /// Who has the switch; none: the pods are evicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// Name of the PodGroup whose pods get the room that is held on resume. Another name than that of the PodGroup which
    /// carries the record: that one stands in for a PodGroup that the operator has deleted.
    pub group: String,
    /// Since when the gang has its place in the queue: the creation of the first PodGroup of its life. What stands in for
    /// that PodGroup, or comes after it, is younger and waits no longer for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued: Option<Timestamp>,
    /// Suspensions of the owner's life, this one included.
    #[serde(default)]
    pub suspensions: u64,
    /// Seconds that it was suspended before this suspension.
    #[serde(default)]
    pub suspended_seconds: i64,
    /// What comes back, one entry for each shape of pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Member>,
}

/// `tephra.sh/suspensions` on an owner and its PodGroup: what past suspensions add up to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ledger {
    /// Whose life it is: another object of the same name starts anew. Empty for pods without an owner.
    #[serde(default)]
    pub uid: String,
    /// How often it was suspended.
    #[serde(default)]
    pub suspensions: u64,
    /// How long in all, in seconds.
    #[serde(default)]
    pub suspended_seconds: i64,
    /// Its place in the queue, as in [`Record::queued`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued: Option<Timestamp>,
}

/// Why the text of an annotation counts as absent.
#[derive(Debug, thiserror::Error)]
pub enum Invalid {
    /// Not the JSON that is expected.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// It names no suspension.
    #[error("`id` is empty")]
    NoId,
}

fn read<T: DeserializeOwned>(text: &str, id: fn(&T) -> &str) -> Result<T, Invalid> {
    let value: T = serde_json::from_str(text)?;
    if id(&value).is_empty() { Err(Invalid::NoId) } else { Ok(value) }
}

fn write<T: Serialize>(value: &T) -> String {
    // Strings and numbers only: there is nothing that could fail.
    serde_json::to_string(value).unwrap_or_default()
}

impl Intent {
    /// Reads the annotation.
    ///
    /// # Errors
    /// When it is no valid intent.
    pub fn parse(text: &str) -> Result<Intent, Invalid> {
        read(text, |intent: &Intent| &intent.id)
    }

    /// The text of the annotation.
    pub fn text(&self) -> String {
        write(self)
    }

    /// It makes room for nobody: a person wants it, and only a person takes it back.
    pub fn is_a_persons(&self) -> bool {
        self.by.is_empty()
    }
}

impl Record {
    /// Reads the annotation.
    ///
    /// # Errors
    /// When it is no valid record.
    pub fn parse(text: &str) -> Result<Record, Invalid> {
        read(text, |record: &Record| &record.id)
    }

    /// The text of the annotation.
    pub fn text(&self) -> String {
        write(self)
    }

    /// The same without members: what an owner carries.
    #[must_use]
    pub fn without_members(&self) -> Record {
        Record { members: Vec::new(), ..self.clone() }
    }

    /// The ledger when this suspension ends at `now`.
    pub fn ledger(&self, now: Timestamp) -> Ledger {
        let seconds = now.duration_since(self.at).as_secs().max(0);
        Ledger {
            uid: self.owner.as_ref().map(|owner| owner.uid.clone()).unwrap_or_default(),
            suspensions: self.suspensions,
            suspended_seconds: self.suspended_seconds.saturating_add(seconds),
            queued: self.queued,
        }
    }
}

impl Ledger {
    /// Reads the annotation, whosever life it tells of; `None` when it is not valid.
    pub fn parse(text: &str) -> Option<Ledger> {
        serde_json::from_str(text).ok()
    }

    /// Reads the annotation of the object with this uid; a new ledger when there is none, or it is another's or not valid.
    pub fn of(text: Option<&str>, uid: &str) -> Ledger {
        let stored = text.and_then(Ledger::parse);
        let new = || Ledger { uid: uid.to_owned(), ..Ledger::default() };
        stored.filter(|ledger| ledger.uid == uid).unwrap_or_else(new)
    }

    /// The text of the annotation.
    pub fn text(&self) -> String {
        write(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record() -> Record {
        let owner = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u"});
        let value = json!({
            "id": "s-1", "by": "ns/big", "reason": "Preempt", "at": "2026-12-02T01:00:00Z",
            "since": "2026-12-02T01:00:01Z", "deadline": "2026-12-02T01:10:00Z", "owner": owner,
            "group": "train", "suspensions": 2, "suspendedSeconds": 30, "queued": "2026-12-01T00:00:00Z",
            "members": [{"count": 8, "pod": {"spec": {}}}, {"count": 1, "names": ["a"], "pod": {}}],
        });
        Record::parse(&value.to_string()).unwrap()
    }

    #[test]
    fn an_intent_is_read_as_the_protocol_spells_it_and_written_the_same() {
        let text = r#"{"id":"s-7f3","by":"ns/big","reason":"Preempt","deadline":"2026-12-02T01:10:00Z","mode":"Ack"}"#;
        let intent = Intent::parse(text).unwrap();
        assert_eq!((intent.id.as_str(), intent.mode), ("s-7f3", Mode::Ack));
        assert_eq!(intent.deadline.as_second(), 1_796_173_800);
        assert_eq!(intent.text(), text);
    }

    #[test]
    fn what_an_intent_leaves_out_is_none_and_what_it_adds_is_passed_over() {
        let text = r#"{"id":"s","deadline":"2026-12-02T01:10:00+01:00","colour":"red"}"#;
        let intent = Intent::parse(text).unwrap();
        assert_eq!((intent.by.as_str(), intent.reason.as_str(), intent.mode), ("", "", Mode::None));
        assert_eq!(intent.deadline.to_string(), "2026-12-02T00:10:00Z");
    }

    #[test]
    fn an_intent_without_id_deadline_or_sense_is_refused() {
        let texts = [
            "",
            "yes",
            r#"{"deadline":"2026-12-02T01:10:00Z"}"#,
            r#"{"id":"","deadline":"2026-12-02T01:10:00Z"}"#,
            r#"{"id":"s"}"#,
            r#"{"id":"s","deadline":"soon"}"#,
            r#"{"id":"s","deadline":"2026-12-02T01:10:00Z","mode":"Shout"}"#,
        ];
        for text in texts {
            assert!(Intent::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_record_comes_back_as_it_was_written_and_leaves_out_what_is_empty() {
        let record = record();
        assert_eq!(Record::parse(&record.text()).unwrap(), record);
        let members: Value = serde_json::from_str(&record.text()).unwrap();
        let wanted =
            json!([{"count": 8, "pod": {"spec": {}}}, {"count": 1, "names": ["a"], "pod": {}}]);
        assert_eq!(members["members"], wanted);
        let plain = Record { owner: None, ..record.without_members() };
        let plain: Value = serde_json::from_str(&plain.text()).unwrap();
        assert_eq!((plain.get("owner"), plain.get("members")), (None, None));
        assert_eq!((&plain["suspendedSeconds"], &plain["group"]), (&json!(30), &json!("train")));
    }

    #[test]
    fn a_ledger_adds_the_suspension_up_and_belongs_to_one_object() {
        let ledger = record().ledger("2026-12-02T01:01:40Z".parse().unwrap());
        let queued = Some("2026-12-01T00:00:00Z".parse().unwrap());
        let wanted = Ledger { uid: "u".into(), suspensions: 2, suspended_seconds: 130, queued };
        assert_eq!(ledger, wanted);
        assert_eq!(Ledger::of(Some(&ledger.text()), "u"), wanted);
        assert_eq!(Ledger::of(Some(&ledger.text()), "v").suspensions, 0);
        assert_eq!(Ledger::of(Some("{"), "u").uid, "u");
        let earlier = record().ledger("2026-12-01T00:00:00Z".parse().unwrap());
        assert_eq!(earlier.suspended_seconds, 30);
    }
}
