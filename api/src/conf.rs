//! The scheduler configuration (`volcano-scheduler.conf`): actions, tiers of plugins with their switches and
//! arguments, and arguments of actions. Keys and defaults are Volcano's (spec 1.1-1.6), irregular spellings
//! included; unknown keys are ignored as Volcano ignores them. What a name means is not known here: plugins
//! and actions are looked up by the core.

mod arguments;
mod flag;
mod named;

pub use arguments::Arguments;
pub use flag::Flag;

use std::collections::BTreeMap;

use serde_json::Value;

/// Why a configuration was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfError {
    /// The text is no YAML, or a value has the wrong type; the message names line and column.
    #[error("not a scheduler configuration: {0}")]
    Syntax(String),
    /// A part has the wrong type.
    #[error("{path} must be {expected}")]
    Type {
        /// Where.
        path: String,
        /// What belongs there.
        expected: &'static str,
    },
    /// `actions` is missing or empty.
    #[error("failed to find Action: `actions` names none")]
    NoActions,
    /// An action that does not exist.
    #[error("failed to find Action {name}; known are {known}")]
    UnknownAction {
        /// The word.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// Two owners of the order of queues.
    #[error("proportion and drf with hierarchy enabled conflicts")]
    HierarchyConflict,
    /// The same, of our own plugin: it has no older configurations to be lenient with.
    #[error("wfq and drf with hierarchy enabled conflict: each orders the tree of queues")]
    TurnsConflict,
}

/// A scheduler configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SchedulerConf {
    /// Actions in the order in which a session runs them.
    pub actions: Vec<String>,
    /// Tiers of plugins.
    pub tiers: Vec<Tier>,
    /// Arguments of actions.
    pub configurations: Vec<ActionConf>,
    /// Source of node usage figures.
    pub metrics: BTreeMap<String, String>,
}

/// Plugins that are asked together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tier {
    /// Plugins in order.
    pub plugins: Vec<PluginOption>,
}

/// A plugin with its switches and arguments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PluginOption {
    /// Name.
    pub name: String,
    /// Arguments.
    pub arguments: Arguments,
    flags: BTreeMap<Flag, bool>,
    /// Switches that are not written are off (recorded unit tests of Volcano) instead of on.
    unset_is_off: bool,
}

impl PluginOption {
    /// A plugin with all defaults.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// The same with a switch set.
    #[must_use]
    pub fn with(mut self, flag: Flag, on: bool) -> Self {
        self.flags.insert(flag, on);
        self
    }

    /// State of a switch: as written, else its default.
    pub fn enabled(&self, flag: Flag) -> bool {
        self.flags.get(&flag).copied().unwrap_or_else(|| flag.default_on() && !self.unset_is_off)
    }
}

/// Arguments of one action.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActionConf {
    /// Action name.
    pub name: String,
    /// Arguments.
    pub arguments: Arguments,
}

impl SchedulerConf {
    /// Reads the text of a configuration file.
    ///
    /// # Errors
    /// When it is no YAML, a part has the wrong type, an action is unknown or missing, or one tier holds both
    /// plugin proportion and drf with `enableHierarchy`, or any tiers hold wfq and that. Unknown plugins are no error here (1.2).
    pub fn parse(text: &str, known_actions: &[&str]) -> Result<Self, ConfError> {
        let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(text, yaml_as_in_go())
            .map_err(|error| ConfError::Syntax(error.to_string()))?;
        Self::from_value(documents.into_iter().next().unwrap_or_default(), known_actions)
    }

    /// Reads a configuration that is an object already. `unsetFlags: disabled` in it turns off every switch
    /// that is not written.
    ///
    /// # Errors
    /// As [`SchedulerConf::parse`].
    pub fn from_value(value: Value, known_actions: &[&str]) -> Result<Self, ConfError> {
        let map = match value {
            Value::Object(map) => map,
            Value::Null => serde_json::Map::new(),
            _ => return Err(wrong("the configuration", "a mapping")),
        };
        let unset_is_off = map.get("unsetFlags").and_then(Value::as_str) == Some("disabled");
        let conf = Self {
            actions: actions(map.get("actions"), known_actions)?,
            tiers: tiers(map.get("tiers"), unset_is_off)?,
            configurations: configurations(map.get("configurations"))?,
            metrics: metrics(map.get("metrics"))?,
        };
        if conf.tiers.iter().any(Tier::has_hierarchy_conflict) {
            return Err(ConfError::HierarchyConflict);
        }
        let all = conf.all_plugins();
        if all.has_hierarchical_drf() && all.has("wfq") {
            return Err(ConfError::TurnsConflict);
        }
        Ok(conf)
    }

    /// What is odd but legal: the hierarchy conflict spread over tiers (B31).
    pub fn warnings(&self) -> Vec<String> {
        if self.all_plugins().has_hierarchy_conflict() {
            vec![ConfError::HierarchyConflict.to_string()]
        } else {
            Vec::new()
        }
    }

    fn all_plugins(&self) -> Tier {
        Tier { plugins: self.tiers.iter().flat_map(|tier| tier.plugins.clone()).collect() }
    }

    /// Arguments of an action: the first entry of its name.
    pub fn action(&self, name: &str) -> Option<&Arguments> {
        self.configurations.iter().find(|entry| entry.name == name).map(|entry| &entry.arguments)
    }
}

impl Tier {
    fn has(&self, name: &str) -> bool {
        self.plugins.iter().any(|plugin| plugin.name == name)
    }

    fn has_hierarchical_drf(&self) -> bool {
        self.plugins.iter().any(|p| p.name == "drf" && p.enabled(Flag::Hierarchy))
    }

    fn has_hierarchy_conflict(&self) -> bool {
        self.has_hierarchical_drf() && self.has("proportion")
    }
}

/// The YAML that Volcano's library reads: of a repeated key the last entry counts, numbers with a leading 0 are octal, and of
/// several documents the first one is the configuration.
fn yaml_as_in_go() -> serde_saphyr::Options {
    serde_saphyr::options! {
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins,
        legacy_octal_numbers: true,
    }
}

/// A text, or another scalar as it is written.
fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        _ => None,
    }
}

fn wrong(path: impl Into<String>, expected: &'static str) -> ConfError {
    ConfError::Type { path: path.into(), expected }
}

fn actions(value: Option<&Value>, known: &[&str]) -> Result<Vec<String>, ConfError> {
    let text = match value {
        None | Some(Value::Null) => return Err(ConfError::NoActions),
        Some(value) => {
            scalar_text(value).ok_or_else(|| wrong("actions", "a comma-separated text"))?
        }
    };
    if text.trim().is_empty() {
        return Err(ConfError::NoActions);
    }
    text.split(',')
        .map(str::trim)
        .map(|name| {
            if known.contains(&name) {
                Ok(name.to_owned())
            } else {
                Err(ConfError::UnknownAction { name: name.to_owned(), known: known.join(", ") })
            }
        })
        .collect()
}

fn list<'v>(value: Option<&'v Value>, path: &str) -> Result<&'v [Value], ConfError> {
    match value {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(wrong(path, "a list")),
    }
}

fn name(entry: &serde_json::Map<String, Value>, path: &str) -> Result<String, ConfError> {
    match entry.get("name") {
        None | Some(Value::Null) => Ok(String::new()),
        Some(value) => scalar_text(value).ok_or_else(|| wrong(format!("{path}.name"), "a text")),
    }
}

fn arguments(entry: &serde_json::Map<String, Value>, path: &str) -> Result<Arguments, ConfError> {
    match entry.get("arguments") {
        None | Some(Value::Null) => Ok(Arguments::default()),
        Some(Value::Object(map)) => {
            Ok(Arguments::new(map.iter().map(|(key, value)| (key.clone(), value.clone()))))
        }
        Some(_) => Err(wrong(format!("{path}.arguments"), "a mapping")),
    }
}

fn tiers(value: Option<&Value>, unset_is_off: bool) -> Result<Vec<Tier>, ConfError> {
    let mut tiers = Vec::new();
    for (t, tier) in list(value, "tiers")?.iter().enumerate() {
        let path = format!("tiers[{t}]");
        let map = tier.as_object().ok_or_else(|| wrong(path.as_str(), "a mapping"))?;
        let mut plugins = Vec::new();
        for (p, plugin) in list(map.get("plugins"), &format!("{path}.plugins"))?.iter().enumerate()
        {
            let path = format!("{path}.plugins[{p}]");
            let map = plugin.as_object().ok_or_else(|| wrong(path.as_str(), "a mapping"))?;
            let mut flags = BTreeMap::new();
            for (key, value) in map {
                if let Some(flag) = Flag::of_key(key)
                    && !value.is_null()
                {
                    let on = flag::yaml_bool(value)
                        .ok_or_else(|| wrong(format!("{path}.{key}"), "true or false"))?;
                    flags.insert(flag, on);
                }
            }
            plugins.push(PluginOption {
                name: name(map, &path)?,
                arguments: arguments(map, &path)?,
                flags,
                unset_is_off,
            });
        }
        tiers.push(Tier { plugins });
    }
    Ok(tiers)
}

fn configurations(value: Option<&Value>) -> Result<Vec<ActionConf>, ConfError> {
    let mut entries = Vec::new();
    for (at, entry) in list(value, "configurations")?.iter().enumerate() {
        let path = format!("configurations[{at}]");
        let map = entry.as_object().ok_or_else(|| wrong(path.as_str(), "a mapping"))?;
        entries.push(ActionConf { name: name(map, &path)?, arguments: arguments(map, &path)? });
    }
    Ok(entries)
}

fn metrics(value: Option<&Value>) -> Result<BTreeMap<String, String>, ConfError> {
    match value {
        None | Some(Value::Null) => Ok(BTreeMap::new()),
        Some(Value::Object(map)) => Ok(map
            .iter()
            .map(|(key, value)| {
                (key.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned))
            })
            .collect()),
        Some(_) => Err(wrong("metrics", "a mapping")),
    }
}

#[cfg(test)]
mod tests;
