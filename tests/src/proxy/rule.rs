//! What the proxy breaks: which requests or watch events, how many of them, and how.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::Method;

/// How something is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request reaches the server this much later.
    Delay(Duration),
    /// The connection is closed before the server hears of the request.
    Reset,
    /// The server carries the request out, then the connection is closed without an answer.
    LoseAnswer,
    /// The proxy answers with this HTTP code instead of the server; `retry_after` is in seconds.
    Answer {
        /// HTTP code.
        code: u16,
        /// `Retry-After`, in seconds.
        retry_after: Option<u32>,
    },
    /// A list is answered with the first answer that the proxy passed on for its path.
    Stale,
    /// A watch ends in order before this event.
    Cut,
    /// A watch breaks off in the middle of this event's line.
    Truncate,
    /// This event of a watch is left out.
    Drop,
    /// This event of a watch is told twice.
    Duplicate,
    /// A watch ends with an error of code 410 instead of this event.
    Expire,
}

impl Fault {
    /// Whether it breaks events of a watch, and not requests.
    pub(crate) fn is_of_events(self) -> bool {
        matches!(self, Self::Cut | Self::Truncate | Self::Drop | Self::Duplicate | Self::Expire)
    }
}

/// Which requests are meant, and how many of them.
#[derive(Clone, Debug)]
pub struct Rule {
    /// `list`, `watch`, `get`, `create`, `update`, `patch`, `delete`; empty: any. Faults of events only meet `watch`.
    pub verb: &'static str,
    /// Plural resource, with its subresource behind a slash if there is one; empty: any.
    pub resource: &'static str,
    /// Part of the path (requests) or of the event's line; empty: any.
    pub naming: String,
    /// So many that match are let pass first.
    pub skip: u64,
    /// How many are struck then; `u64::MAX`: every one.
    pub times: u64,
    /// What is done to them.
    pub fault: Fault,
}

impl Rule {
    /// Strikes each request or event of a verb and resource.
    pub fn every(verb: &'static str, resource: &'static str, fault: Fault) -> Self {
        Self { verb, resource, naming: String::new(), skip: 0, times: u64::MAX, fault }
    }

    /// Strikes the first `times` of them.
    #[must_use]
    pub fn times(self, times: u64) -> Self {
        Self { times, ..self }
    }

    /// Lets the first `skip` of them pass.
    #[must_use]
    pub fn skip(self, skip: u64) -> Self {
        Self { skip, ..self }
    }

    /// Only those with this text in their path or line.
    #[must_use]
    pub fn naming(self, part: &str) -> Self {
        Self { naming: part.to_owned(), ..self }
    }
}

/// A rule in force: counts what matched and what was struck.
#[derive(Debug)]
pub struct Active {
    rule: Rule,
    matched: Mutex<u64>,
    struck: AtomicU64,
}

impl Active {
    pub(crate) fn new(rule: Rule) -> Self {
        Self { rule, matched: Mutex::new(0), struck: AtomicU64::new(0) }
    }

    /// How many requests or events it broke so far.
    pub fn struck(&self) -> u64 {
        self.struck.load(Ordering::Relaxed)
    }

    pub(crate) fn rule(&self) -> &Rule {
        &self.rule
    }

    /// The fault, when this request or event is to be struck. `text` is its path or line.
    pub(crate) fn strikes(&self, target: &Target, text: &str) -> Option<Fault> {
        let rule = &self.rule;
        let meant = (rule.verb.is_empty() || rule.verb == target.verb)
            && (rule.resource.is_empty() || rule.resource == target.resource)
            && text.contains(&rule.naming);
        if !meant {
            return None;
        }
        let mut matched = self.matched.lock().unwrap_or_else(PoisonError::into_inner);
        let at = *matched;
        *matched += 1;
        let within = at >= rule.skip && at - rule.skip < rule.times;
        within.then(|| {
            self.struck.fetch_add(1, Ordering::Relaxed);
            rule.fault
        })
    }
}

/// Verb and resource of a request, as access rules name them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) verb: &'static str,
    pub(crate) resource: String,
}

impl Target {
    /// Reads a method, path and query of the Kubernetes API; other paths have no resource.
    pub(crate) fn read(method: &Method, path: &str, query: &str) -> Self {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let rest = match parts.as_slice() {
            ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => rest,
            _ => &[],
        };
        // `namespaces/<name>/<resource>` speaks of the resource; `namespaces/<name>` of the namespace.
        let rest = match rest {
            ["namespaces", _, rest @ ..] if !rest.is_empty() => rest,
            rest => rest,
        };
        let (resource, named) = match rest {
            [] => (String::new(), false),
            [resource] => ((*resource).to_owned(), false),
            [resource, _] => ((*resource).to_owned(), true),
            [resource, _, sub, ..] => (format!("{resource}/{sub}"), true),
        };
        let watches = query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"));
        let verb = match *method {
            Method::GET if watches => "watch",
            Method::GET if named => "get",
            Method::GET => "list",
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE => "delete",
            _ => "other",
        };
        Self { verb, resource }
    }
}
