//! Labels of namespaces, which namespace selectors of pod affinity terms read.

use rustc_hash::FxHashMap;

use crate::event::Labels;

/// Namespaces that the API server told of.
#[derive(Clone, Debug, Default)]
pub struct Namespaces {
    labels: FxHashMap<String, Labels>,
}

impl Namespaces {
    /// Labels of a namespace; `None` when it is not known.
    pub fn labels(&self, name: &str) -> Option<&Labels> {
        self.labels.get(name)
    }

    /// Known namespaces, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Labels)> {
        self.labels.iter().map(|(name, labels)| (name.as_str(), labels))
    }

    /// Sets (`Some`) or forgets (`None`) a namespace.
    pub fn replace(&mut self, name: &str, labels: Option<&Labels>) {
        match labels {
            Some(labels) => self.labels.insert(name.to_owned(), labels.clone()),
            None => self.labels.remove(name),
        };
    }
}
