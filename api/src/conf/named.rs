//! The configurations that have a name: usable wherever a file is (DESIGN.md 5).

use super::{Flag, PluginOption, SchedulerConf, Tier};

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

    /// What Tephra ships. Its own plugins and the actions preempt and reclaim come with later work; until then
    /// this is [`SchedulerConf::volcano`].
    pub fn tephra() -> Self {
        Self::volcano()
    }
}
