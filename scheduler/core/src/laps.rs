//! How a session can be timed from outside. The core reads no clock: it says when a part has ended, and whoever runs
//! it may look at one. And what evictions took, in numbers.

/// A part of a session that has just ended. What a part took is the time since the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lap {
    /// What changed was taken in.
    Prepared,
    /// A plugin has opened.
    PluginOpen(&'static str),
    /// The session is open.
    Open,
    /// An action has run.
    Action(&'static str),
    /// What jobs are told is decided.
    Told,
    /// A plugin has closed.
    PluginClose(&'static str),
}

/// Somebody with a stopwatch.
pub trait Laps {
    /// A part has ended.
    fn lap(&mut self, lap: Lap);
}

/// Nobody.
#[derive(Clone, Copy, Debug)]
pub struct Untimed;

impl Laps for Untimed {
    fn lap(&mut self, _: Lap) {}
}

/// What evictions took in one session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Efforts {
    /// Nodes on which preemption would make room, whether it was carried out or not.
    pub attempts: u32,
    /// Pods that might leave the last of these nodes; `None` when there was none.
    pub last_victims: Option<u32>,
    /// Reasons ([`EvictFor::reason`](crate::plugin::EvictFor::reason)) of the plans that were carried out.
    pub plans: Vec<&'static str>,
}
