//! The configurations that have a name: usable wherever a file is (DESIGN.md 5).

use super::{Arguments, Flag, PluginOption, SchedulerConf, Tier};

fn tier(plugins: impl IntoIterator<Item = PluginOption>) -> Tier {
    Tier { plugins: plugins.into_iter().collect() }
}

fn plain(name: &str) -> PluginOption {
    PluginOption::new(name)
}

impl SchedulerConf {
    fn first_come(tiers: Vec<Tier>) -> Self {
        let actions = ["enqueue", "allocate", "backfill"].map(str::to_owned).to_vec();
        Self { actions, tiers, ..Self::default() }
    }

    /// What Volcano uses without a configuration file (1.7).
    pub fn builtin() -> Self {
        Self::first_come(vec![
            tier(["priority", "gang", "conformance"].map(plain)),
            tier(["overcommit", "drf", "predicates", "proportion", "nodeorder"].map(plain)),
        ])
    }

    /// What Volcano's chart ships (1.7).
    pub fn volcano() -> Self {
        Self::first_come(vec![
            tier([
                plain("priority"),
                plain("gang").with(Flag::Preemptable, false),
                plain("conformance"),
            ]),
            tier([
                plain("overcommit"),
                plain("drf").with(Flag::Preemptable, false),
                plain("predicates"),
                plain("proportion"),
                plain("nodeorder"),
                plain("binpack"),
            ]),
        ])
    }

    /// What Tephra ships: [`SchedulerConf::volcano`] with actions preempt and reclaim and plugin wfq, whose order of queues and jobs goes first, and
    /// reservation, which lets a big gang have the turn that it was given.
    /// `capacity`, over the tree of queues, stands in for `proportion`: that one keeps every queue within its share at each moment, so nobody could
    /// make up for a turn that it missed, and no gang above its queue's share could ever start. Gangs make room as a whole, in
    /// both actions, and are suspended for it (`suspend`).
    pub fn tephra() -> Self {
        let mut conf = Self::volcano();
        conf.actions =
            ["enqueue", "allocate", "preempt", "reclaim", "backfill"].map(str::to_owned).to_vec();
        conf.tiers[0].plugins.insert(0, plain("wfq"));
        conf.tiers[0].plugins.extend([plain("reservation"), plain("suspend")]);
        for plugin in conf.tiers.iter_mut().flat_map(|tier| &mut tier.plugins) {
            match plugin.name.as_str() {
                "proportion" => {
                    *plugin = plain("capacity").with(Flag::Hierarchy, true);
                    let by_weight = ("deservedByWeight".to_owned(), true.into());
                    plugin.arguments = Arguments::new([by_weight]);
                }
                "gang" => *plugin = plugin.clone().with(Flag::Reclaimable, false),
                _ => {}
            }
        }
        conf
    }
}
