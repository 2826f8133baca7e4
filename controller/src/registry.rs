//! The list of controllers, and the `--controllers` syntax that picks from it.
//!
//! A new controller is one file in `controller/` and one line in [`CONTROLLERS`]. Names are Volcano's, so that an
//! unmodified `--controllers` flag keeps its meaning (`suspension-controller` is ours); those of Volcano's that do not exist here yet stand in [`LATER`].

use std::str::FromStr;

use futures::future::BoxFuture;
use thiserror::Error;

use crate::{
    context::Context,
    controller::{pod_group, queue, suspension},
};

/// One controller: its name in `--controllers` and how it is run until shutdown.
pub(crate) struct Registration {
    pub(crate) name: &'static str,
    pub(crate) run: fn(Context) -> BoxFuture<'static, ()>,
}

/// All controllers.
pub(crate) static CONTROLLERS: &[Registration] = &[
    Registration { name: pod_group::NAME, run: |context| Box::pin(pod_group::run(context)) },
    Registration { name: queue::NAME, run: |context| Box::pin(queue::run(context)) },
    Registration { name: suspension::NAME, run: |context| Box::pin(suspension::run(context)) },
];

/// Volcano's controllers that Tephra does not have (yet): accepted in the flag, without effect.
static LATER: &[&str] = &[
    "job-controller",
    "cronjob-controller",
    "gc-controller",
    "jobflow-controller",
    "jobtemplate-controller",
    "hyperNode-controller",
    "colocation-config-controller",
    "sharding-controller",
];

/// Names of the controllers that can be selected.
pub fn controller_names() -> Vec<&'static str> {
    CONTROLLERS.iter().map(|controller| controller.name).collect()
}

/// A parsed `--controllers` list: `*` = all, `name` or `+name` = this one, `-name` = not this one.
///
/// The first entry that names a controller decides; one that is not named runs if there is a `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection(Vec<Entry>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    All,
    On(String),
    Off(String),
}

/// Why a `--controllers` list was refused.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum SelectionError {
    /// The same name stands there with both signs (Volcano's words).
    #[error("controllers option {0} cannot have both '-' and '+' prefixes")]
    Contradiction(String),
    /// Neither Tephra nor Volcano has such a controller.
    #[error("unknown controller `{0}` in --controllers, known are: *, {known}", known = known())]
    Unknown(String),
}

fn known() -> String {
    controller_names().into_iter().chain(LATER.iter().copied()).collect::<Vec<_>>().join(", ")
}

impl FromStr for Selection {
    type Err = SelectionError;

    fn from_str(text: &str) -> Result<Self, SelectionError> {
        let mut entries: Vec<Entry> = Vec::new();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            if word == "*" {
                entries.push(Entry::All);
                continue;
            }
            let (entry, opposite): (Entry, Entry) = match word.strip_prefix('-') {
                Some(name) => (Entry::Off(name.into()), Entry::On(name.into())),
                None => {
                    let name = word.strip_prefix('+').unwrap_or(word);
                    (Entry::On(name.into()), Entry::Off(name.into()))
                }
            };
            let (Entry::On(name) | Entry::Off(name)) = &entry else { continue };
            if !controller_names().contains(&name.as_str()) && !LATER.contains(&name.as_str()) {
                return Err(SelectionError::Unknown(name.clone()));
            }
            if entries.contains(&opposite) {
                return Err(SelectionError::Contradiction(name.clone()));
            }
            entries.push(entry);
        }
        Ok(Selection(entries))
    }
}

impl Selection {
    /// Whether the controller of this name runs.
    pub fn includes(&self, name: &str) -> bool {
        let named = self.0.iter().find_map(|entry| match entry {
            Entry::All => None,
            Entry::On(on) => (on == name).then_some(true),
            Entry::Off(off) => (off == name).then_some(false),
        });
        named.unwrap_or_else(|| self.0.contains(&Entry::All))
    }

    /// Controllers that are asked for by name and do not exist here yet.
    pub fn missing(&self) -> Vec<&str> {
        self.0
            .iter()
            .filter_map(|entry| match entry {
                Entry::On(name) if LATER.contains(&name.as_str()) => Some(name.as_str()),
                _ => None,
            })
            .collect()
    }
}

/// Volcano's default: everything but the sharding controller.
impl Default for Selection {
    fn default() -> Self {
        Selection(vec![Entry::All, Entry::Off("sharding-controller".into())])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(text: &str) -> Vec<&'static str> {
        let selection: Selection = text.parse().unwrap();
        controller_names().into_iter().filter(|name| selection.includes(name)).collect()
    }

    #[test]
    fn volcanos_default_runs_every_controller() {
        assert_eq!(Selection::default(), "*,-sharding-controller".parse().unwrap());
        assert_eq!(selected("*,-sharding-controller"), controller_names());
    }

    #[test]
    fn named_controllers_run_and_the_others_do_not() {
        assert_eq!(selected("pg-controller"), ["pg-controller"]);
        assert_eq!(selected("+queue-controller"), ["queue-controller"]);
        assert_eq!(selected(""), [""; 0]);
    }

    #[test]
    fn a_star_stands_for_those_that_are_not_named() {
        let others = ["queue-controller", "suspension-controller"];
        assert_eq!(selected("-pg-controller,*"), others);
        assert_eq!(selected("*,-pg-controller"), others);
        assert_eq!(selected("-pg-controller"), [""; 0]);
    }

    #[test]
    fn a_name_with_both_signs_is_refused_in_volcanos_words() {
        let refused = "+pg-controller,-pg-controller".parse::<Selection>().unwrap_err();
        assert_eq!(
            refused.to_string(),
            "controllers option pg-controller cannot have both '-' and '+' prefixes"
        );
    }

    #[test]
    fn a_misspelt_name_is_refused_and_the_known_ones_are_listed() {
        let refused = "*,-pg-controler".parse::<Selection>().unwrap_err().to_string();
        assert!(refused.contains("`pg-controler`"), "{refused}");
        assert!(
            refused.contains("queue-controller, suspension-controller, job-controller"),
            "{refused}"
        );
    }

    #[test]
    fn volcanos_other_controllers_are_accepted_and_reported_as_missing() {
        let selection: Selection = "*,+job-controller,-gc-controller".parse().unwrap();
        assert_eq!(selection.missing(), ["job-controller"]);
    }
}
