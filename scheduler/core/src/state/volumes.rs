//! PersistentVolumes and claims, as far as a pod must not be bound blindly: a pod whose claim is missing,
//! unbound or being deleted is held; a bound volume's node affinity limits where the pod may go.

use rustc_hash::FxHashMap;

use crate::event::{NodeSelectorTerm, ObjectKey, VolumeClaimObject, VolumeObject};

/// All volumes and claims.
#[derive(Debug, Default)]
pub struct Volumes {
    claims: FxHashMap<ObjectKey, VolumeClaimObject>,
    volumes: FxHashMap<String, Vec<NodeSelectorTerm>>,
}

impl Volumes {
    /// Adds or replaces a claim.
    pub fn set_claim(&mut self, claim: VolumeClaimObject) {
        self.claims.insert(claim.key.clone(), claim);
    }

    /// Forgets a claim.
    pub fn remove_claim(&mut self, key: &ObjectKey) {
        self.claims.remove(key);
    }

    /// Adds or replaces a volume.
    pub fn set_volume(&mut self, volume: VolumeObject) {
        self.volumes.insert(volume.name, volume.node_terms);
    }

    /// Forgets a volume.
    pub fn remove_volume(&mut self, name: &str) {
        self.volumes.remove(name);
    }

    /// Node terms that a pod's claims demand, each list a set of alternatives; or why the pod must wait.
    pub fn demands(
        &self,
        namespace: &str,
        claims: &[String],
    ) -> Result<Vec<&[NodeSelectorTerm]>, String> {
        let mut demands = Vec::new();
        for name in claims {
            let claim = self
                .claims
                .get(&ObjectKey::new(namespace, name.as_str()))
                .ok_or_else(|| format!("persistentvolumeclaim \"{name}\" not found"))?;
            if claim.deleting {
                return Err(format!("persistentvolumeclaim \"{name}\" is being deleted"));
            }
            let volume = claim.volume.as_ref().ok_or_else(|| {
                format!("persistentvolumeclaim \"{name}\" is not bound yet; binding volumes is not supported yet")
            })?;
            let terms = self.volumes.get(volume).ok_or_else(|| {
                format!("persistentvolumeclaim \"{name}\" bound to non-existent persistentvolume \"{volume}\"")
            })?;
            if !terms.is_empty() {
                demands.push(terms.as_slice());
            }
        }
        Ok(demands)
    }
}
