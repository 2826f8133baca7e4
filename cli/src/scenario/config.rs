//! Which scheduler configuration a scenario runs with, decided as the real scheduler decides it: a
//! configuration that is refused is reported and the built-in one is used instead.

use serde_json::Value;
use tephra_api::conf::SchedulerConf;
use tephra_core::registry;

/// Plugins of Volcano that a configuration may name although this build does not have them all yet: the
/// scheduler warns about those and goes on. Any other unknown name is a slip.
const VOLCANO_PLUGINS: &[&str] = &[
    "binpack",
    "capacity",
    "conformance",
    "deviceshare",
    "drf",
    "extender",
    "gang",
    "nodegroup",
    "nodeorder",
    "numa-aware",
    "overcommit",
    "predicates",
    "priority",
    "proportion",
    "resource-strategy-fit",
    "sla",
    "task-topology",
    "usage",
];

/// A configuration and how it came about.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// What the scheduler runs with.
    pub conf: SchedulerConf,
    /// Why the scenario's own configuration was refused; `conf` is the built-in one then.
    pub error: Option<String>,
}

impl Chosen {
    /// A configuration that was given and is valid.
    pub fn valid(conf: SchedulerConf) -> Self {
        Self { conf, error: None }
    }

    /// The configuration of a scenario: text, object, or the one that Volcano ships.
    pub fn of_scenario(conf: Option<&Value>) -> Self {
        let read = match conf {
            None => return Self::valid(SchedulerConf::volcano()),
            Some(Value::String(text)) => SchedulerConf::parse(text, registry::action_names()),
            Some(object) => {
                SchedulerConf::from_value(with_actions(object), registry::action_names())
            }
        };
        match read {
            Ok(conf) => Self::valid(conf),
            Err(error) => Self { conf: SchedulerConf::builtin(), error: Some(error.to_string()) },
        }
    }

    /// Reads `--conf`: a name of a built-in configuration, or a file.
    pub fn of_flag(text: &str) -> anyhow::Result<Self> {
        use anyhow::Context as _;
        let conf = match text {
            "builtin" => SchedulerConf::builtin(),
            "volcano" => SchedulerConf::volcano(),
            "tephra" => SchedulerConf::tephra(),
            path => {
                let text = std::fs::read_to_string(path)
                    .with_context(|| format!("cannot read the configuration {path}"))?;
                SchedulerConf::parse(&text, registry::action_names())
                    .with_context(|| format!("the configuration {path} is refused"))?
            }
        };
        Ok(Self::valid(conf))
    }

    /// Plugins that the configuration names and this build does not have.
    pub fn missing_plugins(&self) -> Vec<&str> {
        let names = self.conf.tiers.iter().flat_map(|tier| &tier.plugins);
        names
            .map(|plugin| plugin.name.as_str())
            .filter(|name| !registry::plugin_names().contains(name))
            .collect()
    }

    /// Plugins that nobody knows: neither this build nor Volcano.
    pub fn unknown_plugins(&self) -> Vec<&str> {
        let mut missing = self.missing_plugins();
        missing.retain(|name| !VOLCANO_PLUGINS.contains(name));
        missing
    }
}

/// Recorded scenarios that only call session functions name no action; the parser wants one, and none is run.
fn with_actions(object: &Value) -> Value {
    let mut object = object.clone();
    if object.get("actions").is_none() && object.is_object() {
        object["actions"] = Value::String("allocate".to_owned());
    }
    object
}
