//! The two lists: which actions and which plugins exist. Adding one is one file and one line here.

use crate::action::{self, Action};
use crate::plugin::{self, Plugin};

/// Makes an action.
pub type MakeAction = fn() -> Box<dyn Action>;
/// Makes a plugin with its defaults.
pub type MakePlugin = fn() -> Box<dyn Plugin>;

/// Every action by its name in the configuration.
pub const ACTIONS: &[(&str, MakeAction)] = &[
    ("enqueue", || Box::new(action::enqueue::Enqueue)),
    ("allocate", || Box::new(action::allocate::Allocate)),
    ("preempt", || Box::<action::preempt::Preempt>::default()),
    ("reclaim", || Box::new(action::reclaim::Reclaim)),
    ("gangpreempt", || Box::<action::gangpreempt::GangPreempt>::default()),
    ("gangreclaim", || Box::<action::gangreclaim::GangReclaim>::default()),
    ("backfill", || Box::new(action::backfill::Backfill)),
    ("shuffle", || Box::new(action::shuffle::Shuffle)),
];

/// Every plugin by its name in the configuration.
pub const PLUGINS: &[(&str, MakePlugin)] = &[
    ("priority", || Box::new(plugin::priority::Priority)),
    ("gang", || Box::new(plugin::gang::Gang)),
    ("conformance", || Box::new(plugin::conformance::Conformance)),
    ("drf", || Box::<plugin::drf::Drf>::default()),
    ("proportion", || Box::<plugin::proportion::Proportion>::default()),
    ("capacity", || Box::<plugin::capacity::Capacity>::default()),
    ("predicates", || Box::<plugin::predicates::Predicates>::default()),
    ("nodeorder", || Box::<plugin::nodeorder::NodeOrder>::default()),
    ("binpack", || Box::<plugin::binpack::Binpack>::default()),
    ("overcommit", || Box::<plugin::overcommit::Overcommit>::default()),
    ("network-topology-aware", || {
        Box::<plugin::network_topology_aware::NetworkTopologyAware>::default()
    }),
    ("sla", || Box::<plugin::sla::Sla>::default()),
    ("pdb", || Box::new(plugin::pdb::Pdb)),
    ("cdp", || Box::new(plugin::cdp::Cdp)),
    ("tdm", || Box::<plugin::tdm::Tdm>::default()),
    ("resourcequota", || Box::<plugin::resourcequota::ResourceQuota>::default()),
    ("reservation", || Box::<plugin::reservation::Reservation>::default()),
    ("wfq", || Box::<plugin::wfq::Wfq>::default()),
    ("rescheduling", || Box::<plugin::rescheduling::Rescheduling>::default()),
];

/// Actions of Volcano that later work brings. A configuration may name them; they are skipped with a warning.
pub const LATER_ACTIONS: [&str; 0] = [];

/// Names that `actions` may hold: those of the list, then [`LATER_ACTIONS`].
pub fn action_names() -> &'static [&'static str] {
    const BUILT: usize = ACTIONS.len();
    static NAMES: [&str; BUILT + LATER_ACTIONS.len()] = {
        let mut names = [""; BUILT + LATER_ACTIONS.len()];
        let mut at = 0;
        while at < names.len() {
            names[at] = if at < BUILT { ACTIONS[at].0 } else { LATER_ACTIONS[at - BUILT] };
            at += 1;
        }
        names
    };
    &NAMES
}

/// Names of the plugins, in the order of the list.
pub fn plugin_names() -> &'static [&'static str] {
    static NAMES: [&str; PLUGINS.len()] = {
        let mut names = [""; PLUGINS.len()];
        let mut at = 0;
        while at < PLUGINS.len() {
            names[at] = PLUGINS[at].0;
            at += 1;
        }
        names
    };
    &NAMES
}
