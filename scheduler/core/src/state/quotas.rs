//! ResourceQuotas by namespace, as Kubernetes last counted them. Written by events only; plugin `resourcequota` reads.

use rustc_hash::FxHashMap;

use crate::event::{ObjectKey, ResourceQuotaObject};

/// All quotas; those of a namespace in order of their names.
#[derive(Clone, Debug, Default)]
pub struct Quotas(FxHashMap<String, Vec<ResourceQuotaObject>>);

impl Quotas {
    /// Adds or replaces a quota.
    pub fn set(&mut self, quota: ResourceQuotaObject) {
        let list = self.0.entry(quota.key.namespace.clone()).or_default();
        match list.binary_search_by(|known| known.key.name.cmp(&quota.key.name)) {
            Ok(at) => list[at] = quota,
            Err(at) => list.insert(at, quota),
        }
    }

    /// Forgets a quota.
    pub fn remove(&mut self, key: &ObjectKey) {
        if let Some(list) = self.0.get_mut(&key.namespace) {
            list.retain(|quota| quota.key.name != key.name);
            if list.is_empty() {
                self.0.remove(&key.namespace);
            }
        }
    }

    /// Quotas of a namespace.
    pub fn of(&self, namespace: &str) -> &[ResourceQuotaObject] {
        self.0.get(namespace).map_or(&[], Vec::as_slice)
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
