//! Texts that many rows share are stored once.

use std::sync::Arc;

use crate::event::Labels;
use crate::state::State;

impl State {
    pub(super) fn intern_role(&mut self, name: &str) -> u32 {
        if name.is_empty() {
            return 0;
        }
        if let Some(&role) = self.roles.get(name) {
            return role;
        }
        let name: Arc<str> = name.into();
        self.role_names.push(name.clone());
        let role = self.role_names.len() as u32;
        self.roles.insert(name, role);
        role
    }

    pub(super) fn intern_text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        let text: Arc<str> = text.into();
        self.texts.insert(text.clone());
        text
    }

    pub(super) fn intern_labels(&mut self, labels: Labels) -> Arc<Labels> {
        if let Some((known, ())) = self.label_sets.get_key_value(&labels) {
            return known.clone();
        }
        if self.label_sets.len() > 2 * self.tasks.len() + 1024 {
            self.label_sets.retain(|labels, ()| Arc::strong_count(labels) > 1);
        }
        let labels = Arc::new(labels);
        self.label_sets.insert(labels.clone(), ());
        labels
    }
}
