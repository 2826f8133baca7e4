//! What was said about which object: repetitions are counted, chatter is cut off, nothing grows without bound.

use std::collections::{BTreeMap, VecDeque};

use rustc_hash::FxHashMap;
use tephra_core::decision::Notice;
use tephra_core::event::ObjectKey;

use super::Record;

/// Repetitions of a message within this time count on one event.
const WINDOW_MS: i64 = 10 * 60 * 1000;
/// Least time between two different messages with one reason about one object: of those in between only the last
/// is told (a count of nodes that changes with every session would be an event each time).
const REWORDED_MS: i64 = 10 * 1000;
/// New events about one object that may come in a burst.
const BURST: f64 = 25.0;
/// After a burst an object gets one more event in this time.
const REFILL_MS: f64 = 5.0 * 60.0 * 1000.0;
/// Messages and objects remembered at most.
const REMEMBERED: usize = 8192;
/// Events waiting to be written at most; beyond that new ones are dropped.
const WAITING: usize = 16_384;

/// One event as written or to be written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) notice: Notice,
    pub(crate) name: String,
    pub(crate) count: u32,
    pub(crate) first_ms: i64,
    pub(crate) last_ms: i64,
}

impl Entry {
    /// Namespace of the event: that of the object; events on cluster-scoped objects live in `default`.
    pub(crate) fn namespace(&self) -> &str {
        match self.notice.object.namespace.as_str() {
            "" => "default",
            namespace => namespace,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    object: ObjectKey,
    uid: String,
    reason: &'static str,
    message: String,
}

impl Key {
    fn of(notice: &Notice) -> Self {
        Self {
            object: notice.object.clone(),
            uid: notice.uid.clone(),
            reason: notice.reason,
            message: notice.message.clone(),
        }
    }
}

/// What an object is told about: everything but the words.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Subject {
    object: ObjectKey,
    uid: String,
    reason: &'static str,
}

impl Subject {
    fn of(notice: &Notice) -> Self {
        let (object, uid) = (notice.object.clone(), notice.uid.clone());
        Self { object, uid, reason: notice.reason }
    }
}

struct Known {
    entry: Entry,
    /// Count that the server has or is being told.
    told: u32,
    under_way: bool,
    /// A newer count was asked for while a write was under way.
    again: bool,
}

#[derive(Clone, Copy)]
struct Bucket {
    tokens: f64,
    at_ms: i64,
}

/// All that is remembered about events.
#[derive(Default)]
pub(super) struct Ledger {
    known: FxHashMap<Key, Known>,
    buckets: FxHashMap<String, Bucket>,
    waiting: VecDeque<Key>,
    /// When a subject was last told in new words.
    worded: FxHashMap<Subject, i64>,
    /// The newest words for subjects that were told something just before.
    held: BTreeMap<Subject, Notice>,
    serial: u64,
}

impl Ledger {
    /// Takes in a notice; false when it was cut off.
    pub(super) fn add(&mut self, notice: Notice, now_ms: i64) -> bool {
        let key = Key::of(&notice);
        if let Some(known) = self.known.get_mut(&key) {
            known.entry.count += 1;
            known.entry.last_ms = now_ms;
            self.held.remove(&Subject::of(&notice));
            return true;
        }
        let subject = Subject::of(&notice);
        if self.worded.get(&subject).is_some_and(|at| now_ms - at < REWORDED_MS) {
            self.held.insert(subject, notice);
            return true;
        }
        if self.waiting.len() >= WAITING || !self.spend(&notice, now_ms) {
            return false;
        }
        self.make_room(now_ms);
        self.worded.insert(subject, now_ms);
        self.serial += 1;
        let name = event_name(&notice, now_ms, self.serial);
        let entry = Entry { notice, name, count: 1, first_ms: now_ms, last_ms: now_ms };
        self.known.insert(key.clone(), Known { entry, told: 0, under_way: false, again: false });
        self.waiting.push_back(key);
        true
    }

    /// Tells what was held and is due (all of it at the end), queues every count that the server does not have
    /// yet, and forgets messages that were not repeated.
    pub(super) fn flush(&mut self, now_ms: i64, closing: bool) {
        self.worded.retain(|_, at| !closing && now_ms - *at < REWORDED_MS);
        let due = std::mem::take(&mut self.held);
        for (_, notice) in due {
            // Those not due yet are held again.
            self.add(notice, now_ms);
        }
        let mut behind: Vec<(&String, &Key)> = self
            .known
            .iter()
            .filter(|(_, known)| known.told > 0 && known.entry.count > known.told)
            .map(|(key, known)| (&known.entry.name, key))
            .collect();
        behind.sort_unstable_by_key(|(name, _)| *name);
        let behind: Vec<Key> = behind.into_iter().map(|(_, key)| key.clone()).collect();
        self.waiting.extend(behind);
        self.known.retain(|_, known| {
            known.told < known.entry.count || now_ms - known.entry.last_ms < WINDOW_MS
        });
        self.buckets.retain(|_, bucket| (now_ms - bucket.at_ms) as f64 <= BURST * REFILL_MS);
    }

    /// The next event to write.
    pub(super) fn next(&mut self) -> Option<Record> {
        loop {
            let key = self.waiting.pop_front()?;
            let Some(known) = self.known.get_mut(&key) else { continue };
            if known.under_way {
                known.again = true;
                continue;
            }
            if known.told >= known.entry.count {
                continue;
            }
            let create = known.told == 0;
            known.under_way = true;
            known.told = known.entry.count;
            return Some(Record { entry: known.entry.clone(), create });
        }
    }

    /// A write has ended; one that failed is forgotten, so that the next repetition tries anew.
    pub(super) fn settled(&mut self, record: &Record, written: bool) {
        let key = Key::of(&record.entry.notice);
        if !written {
            self.known.remove(&key);
        } else if let Some(known) = self.known.get_mut(&key) {
            known.under_way = false;
            if std::mem::take(&mut known.again) {
                self.waiting.push_back(key);
            }
        }
    }

    fn spend(&mut self, notice: &Notice, now_ms: i64) -> bool {
        let full = Bucket { tokens: BURST, at_ms: now_ms };
        let object = format!("{:?}/{}/{}", notice.kind, notice.object, notice.uid);
        let bucket = self.buckets.entry(object).or_insert(full);
        let gained = (now_ms - bucket.at_ms).max(0) as f64 / REFILL_MS;
        bucket.tokens = (bucket.tokens + gained).min(BURST);
        bucket.at_ms = now_ms;
        let allowed = bucket.tokens >= 1.0;
        if allowed {
            bucket.tokens -= 1.0;
        }
        allowed
    }

    fn make_room(&mut self, now_ms: i64) {
        if self.known.len() >= REMEMBERED {
            self.flush(now_ms, false);
        }
        if self.known.len() >= REMEMBERED {
            self.known.retain(|_, known| known.told == 0 || known.under_way);
        }
    }
}

/// `<object>.<hex>` as client-go names events; the serial number keeps names of one millisecond apart.
fn event_name(notice: &Notice, now_ms: i64, serial: u64) -> String {
    let unique = format!("{:x}{:04x}", now_ms.max(0), serial & 0xffff);
    let object = notice.object.name.as_str();
    let fits = object.floor_char_boundary(253 - 1 - unique.len());
    format!("{}.{unique}", object.get(..fits).unwrap_or_default())
}
