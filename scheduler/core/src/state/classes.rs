//! Classes of tasks. Pods whose scheduling-relevant spec is the same share a class; placement works on
//! (class, count). The static part of a class (what depends on labels, taints and images of a node only) is a
//! *static key*, shared by classes that differ in their requests. Nodes that look the same to every live key
//! share a *signature*; a key is judged once per signature, and its verdicts form a bitmap over the slots.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use tephra_api::keys;

use super::nodes::{LANES, NodeId, Nodes};
use super::resource::{CPU, Dimensions, MEMORY, PODS, REQUEST_LIMIT, Request};
use crate::event::{NodeSelectorTerm, Operator, PodSpec, Taint};
use crate::index::ClassIndex;
use crate::index::capacity::Capacity;
use crate::matching::image::{image_locality, normalized_image_name};
use crate::matching::revocable::Zones;
use crate::matching::static_filter::{NodeSignature, PredicateSwitches, StaticReason, check};
use crate::matching::static_score::{
    normalize_affinity, normalize_taints, prefer_no_schedule_count, preferred_node_affinity,
};

/// Dense number of a class.
pub type ClassId = u32;
/// Dense number of a static key.
pub type KeyId = u32;
/// Key of classes of pods that already had a node when they were first seen.
pub const NO_KEY: KeyId = u32::MAX;

/// What a key makes of a signature (or of a node, when the key names nodes).
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Why no such node is possible.
    pub rejected: Option<StaticReason>,
    /// Sum of the weights of matching preferred terms.
    pub affinity: i64,
    /// `PreferNoSchedule` taints that are not tolerated.
    pub taints: i64,
    /// Score of plugin tdm.
    pub zone: i64,
}

/// Weights of the static scores (plugin nodeorder); 0 switches a score off.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StaticWeights {
    /// `nodeaffinity.weight`.
    pub affinity: i64,
    /// `tainttoleration.weight`.
    pub taints: i64,
    /// `imagelocality.weight`.
    pub images: i64,
}

/// The static part of one or more classes.
#[derive(Debug)]
pub struct StaticKey {
    /// A spec with this static part; only its static fields are read.
    pub spec: Arc<PodSpec>,
    /// Bit per slot: the static filters pass.
    pub mask: Vec<u64>,
    /// Weighted static score by signature, or by slot when the key names nodes.
    pub scores: Vec<f64>,
    /// The score that every possible node has, when they all have the same.
    pub constant: Option<f64>,
    /// The key names nodes, so it is judged per node and not per signature.
    pub by_name: bool,
    /// Moves when a score changed although its node did not.
    pub epoch: u32,
    /// Verdict by signature or slot.
    verdicts: FxHashMap<u32, Verdict>,
    stale: bool,
}

impl StaticKey {
    /// True when the static filters pass on a slot.
    pub fn allows(&self, id: NodeId) -> bool {
        self.mask
            .get(id as usize / LANES)
            .is_some_and(|bits| bits >> (id as usize % LANES) & 1 == 1)
    }

    /// Weighted static score of a slot; `signature` is the slot's.
    pub fn score(&self, id: NodeId, signature: u32) -> f64 {
        let at = if self.by_name { id } else { signature };
        self.scores.get(at as usize).copied().unwrap_or(0.0)
    }
}

/// A class.
#[derive(Debug)]
pub struct Class {
    /// The spec of its first pod.
    pub spec: Arc<PodSpec>,
    /// Request; cpu, memory and pods always present.
    pub request: Request,
    /// Static key.
    pub key: KeyId,
    /// Nothing is asked for but a place (Volcano `IsEmpty`).
    pub best_effort: bool,
    /// Asks for something that no dimension exists for, or for more than any node can have.
    pub impossible: Option<String>,
    /// Depends on pods elsewhere: host ports, pod affinity, spread.
    pub stateful: bool,
    /// Tasks of the class.
    pub tasks: u32,
    /// Block-max index, built on first use.
    pub index: Option<Box<ClassIndex>>,
    /// Copies by hypernode, built when a gang first asks for one.
    pub capacity: Option<Box<Capacity>>,
}

#[derive(PartialEq, Eq, Hash)]
struct ClassIdentity {
    key: KeyId,
    request: Request,
    nonzero: [i64; 2],
    stateful: Option<Arc<PodSpec>>,
    impossible: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct SignatureIdentity {
    labels: Vec<(String, String)>,
    taints: Vec<Taint>,
    unschedulable: bool,
    images: Vec<(String, i64)>,
    known: bool,
}

/// All classes, keys and signatures.
#[derive(Debug, Default)]
pub struct Classes {
    /// Classes by number.
    pub list: Vec<Class>,
    /// Static keys by number.
    pub keys: Vec<StaticKey>,
    by_pointer: FxHashMap<(usize, bool), (ClassId, Arc<PodSpec>)>,
    by_identity: FxHashMap<ClassIdentity, ClassId>,
    key_by_static_part: FxHashMap<PodSpec, KeyId>,
    signatures: Vec<SignatureIdentity>,
    signature_nodes: Vec<u32>,
    signature_by_identity: FxHashMap<SignatureIdentity, u32>,
    label_keys: FxHashSet<String>,
    image_names: FxHashSet<String>,
    image_nodes: FxHashMap<String, i64>,
    /// Weights of the static scores.
    pub weights: StaticWeights,
    /// Some plugin filters nodes; without one every known node is possible.
    pub filtering: bool,
    /// Filters that the configuration switched off.
    pub switches: PredicateSwitches,
    /// Revocable zones as they are now.
    zones: Zones,
}

impl std::fmt::Debug for ClassIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClassIdentity").field("key", &self.key).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for SignatureIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignatureIdentity").field("labels", &self.labels).finish_non_exhaustive()
    }
}

/// Pointers remembered for look-up; beyond this many templates the table starts anew.
const POINTER_LIMIT: usize = 1 << 16;

impl Classes {
    /// Class of a spec. New label keys or images that it mentions re-sign all nodes. A `resident` pod already
    /// has a node: where else it could go does not matter, so it needs no static key.
    pub fn intern(
        &mut self,
        spec: &Arc<PodSpec>,
        resident: bool,
        dims: &mut Dimensions,
        nodes: &mut Nodes,
    ) -> ClassId {
        let pointer = (Arc::as_ptr(spec) as usize, resident);
        if let Some((class, _)) = self.by_pointer.get(&pointer) {
            return *class;
        }
        let (request, impossible) = request_of(spec, dims);
        nodes.ensure_dimensions(dims.len());
        let key = if resident { NO_KEY } else { self.intern_key(spec, nodes) };
        let stateful = is_stateful(spec).then(|| spec.clone());
        let identity = ClassIdentity { key, request, nonzero: spec.nonzero, stateful, impossible };
        let class = if let Some(&class) = self.by_identity.get(&identity) {
            class
        } else {
            let class = self.list.len() as ClassId;
            self.list.push(Class {
                spec: spec.clone(),
                request: identity.request.clone(),
                key,
                best_effort: identity
                    .request
                    .iter()
                    .all(|&(dim, amount)| dim == PODS || amount == 0),
                impossible: identity.impossible.clone(),
                stateful: identity.stateful.is_some(),
                tasks: 0,
                index: None,
                capacity: None,
            });
            self.by_identity.insert(identity, class);
            class
        };
        if self.by_pointer.len() >= POINTER_LIMIT {
            self.by_pointer.clear();
        }
        self.by_pointer.insert(pointer, (class, spec.clone()));
        class
    }

    /// Forgets the index of a class without tasks: it is the only large part of one.
    pub fn leave(&mut self, class: ClassId) {
        let class = &mut self.list[class as usize];
        class.tasks -= 1;
        if class.tasks == 0 {
            class.index = None;
            class.capacity = None;
        }
    }

    fn intern_key(&mut self, spec: &Arc<PodSpec>, nodes: &mut Nodes) -> KeyId {
        let part = static_part(spec);
        if let Some(&key) = self.key_by_static_part.get(&part) {
            return key;
        }
        if self.learn_names(spec) {
            self.sign_all(nodes);
        }
        let by_name = spec
            .required_node_terms
            .iter()
            .chain(spec.preferred_node_terms.iter().map(|(_, term)| term))
            .any(|term| !term.fields.is_empty());
        let mut key = StaticKey {
            spec: Arc::new(part.clone()),
            mask: vec![0; nodes.blocks()],
            scores: Vec::new(),
            constant: None,
            by_name,
            epoch: 0,
            verdicts: FxHashMap::default(),
            stale: true,
        };
        for node in 0..nodes.len() as NodeId {
            self.judge(&mut key, node, nodes);
        }
        let id = self.keys.len() as KeyId;
        self.keys.push(key);
        self.key_by_static_part.insert(part, id);
        id
    }

    /// Notes label keys and images that a spec looks at; true when there are new ones.
    fn learn_names(&mut self, spec: &PodSpec) -> bool {
        let before = self.label_keys.len() + self.image_names.len();
        for (key, _) in &spec.node_selector {
            self.label_keys.insert(key.clone());
        }
        let terms: Vec<&NodeSelectorTerm> = spec
            .required_node_terms
            .iter()
            .chain(spec.preferred_node_terms.iter().map(|(_, term)| term))
            .collect();
        for requirement in terms.iter().flat_map(|term| &term.expressions) {
            if requirement.operator != Operator::Invalid {
                self.label_keys.insert(requirement.key.clone());
            }
        }
        for image in &spec.images {
            self.image_names.insert(normalized_image_name(image));
        }
        before != self.label_keys.len() + self.image_names.len()
    }

    fn sign_all(&mut self, nodes: &mut Nodes) {
        for id in 0..nodes.len() as NodeId {
            let signature = self.signature_of(id, nodes);
            self.move_node(nodes.signature[id as usize], signature);
            nodes.signature[id as usize] = signature;
        }
        self.count_images(nodes);
        let mut keys = std::mem::take(&mut self.keys);
        for key in &mut keys {
            key.stale = true;
            for id in 0..nodes.len() as NodeId {
                self.judge(key, id, nodes);
            }
        }
        self.keys = keys;
    }

    fn count_images(&mut self, nodes: &Nodes) {
        self.image_nodes.clear();
        for id in nodes.known() {
            self.count_node_images(&nodes.identity[id as usize].images, 1);
        }
    }

    fn count_node_images(&mut self, images: &[(String, i64)], sign: i64) {
        for (name, _) in images {
            let name = normalized_image_name(name);
            if self.image_names.contains(&name) {
                *self.image_nodes.entry(name).or_default() += sign;
            }
        }
    }

    fn move_node(&mut self, from: u32, to: u32) {
        // Signature 0 stands for "no node" and is not counted.
        if from != 0 {
            self.signature_nodes[from as usize] -= 1;
        }
        if to != 0 {
            self.signature_nodes[to as usize] += 1;
        }
    }

    fn signature_of(&mut self, id: NodeId, nodes: &Nodes) -> u32 {
        let node = &nodes.identity[id as usize];
        if self.signatures.is_empty() {
            self.signatures.push(SignatureIdentity {
                labels: Vec::new(),
                taints: Vec::new(),
                unschedulable: true,
                images: Vec::new(),
                known: false,
            });
            self.signature_nodes.push(0);
        }
        if !node.known {
            return 0;
        }
        let identity = SignatureIdentity {
            labels: node
                .labels
                .iter()
                .filter(|(key, _)| self.label_keys.contains(key))
                .cloned()
                .collect(),
            taints: node.taints.to_vec(),
            unschedulable: node.unschedulable,
            images: node
                .images
                .iter()
                .filter(|(name, _)| self.image_names.contains(&normalized_image_name(name)))
                .cloned()
                .collect(),
            known: true,
        };
        if let Some(&signature) = self.signature_by_identity.get(&identity) {
            return signature;
        }
        let signature = self.signatures.len() as u32;
        self.signatures.push(identity.clone());
        self.signature_nodes.push(0);
        self.signature_by_identity.insert(identity, signature);
        signature
    }

    /// Judges a node anew for every key, after its identity changed. `images_before` are those it had.
    pub fn node_changed(&mut self, id: NodeId, images_before: &[(String, i64)], nodes: &mut Nodes) {
        let signature = self.signature_of(id, nodes);
        let before = nodes.signature[id as usize];
        self.move_node(before, signature);
        nodes.signature[id as usize] = signature;
        self.count_node_images(images_before, -1);
        self.count_node_images(&nodes.identity[id as usize].images.clone(), 1);
        let mut keys = std::mem::take(&mut self.keys);
        for key in &mut keys {
            if key.by_name {
                key.verdicts.remove(&id);
            }
            self.judge(key, id, nodes);
            // The first or last node of a signature may move what scores are normalised by.
            key.stale |= before != signature || key.by_name;
        }
        self.keys = keys;
    }

    fn judge(&mut self, key: &mut StaticKey, id: NodeId, nodes: &Nodes) {
        let block = id as usize / LANES;
        if key.mask.len() <= block {
            key.mask.resize(block + 1, 0);
        }
        let bit = 1 << (id as usize % LANES);
        let allowed = nodes.signature[id as usize] != 0
            && (!self.filtering || self.verdict_in(key, id, nodes).rejected.is_none());
        if allowed {
            key.mask[block] |= bit;
        } else {
            key.mask[block] &= !bit;
        }
    }

    fn verdict_in<'k>(&self, key: &'k mut StaticKey, id: NodeId, nodes: &Nodes) -> &'k Verdict {
        let at = if key.by_name { id } else { nodes.signature[id as usize] };
        let spec = &key.spec;
        key.verdicts.entry(at).or_insert_with(|| self.evaluate(spec, id, nodes))
    }

    fn evaluate(&self, spec: &PodSpec, id: NodeId, nodes: &Nodes) -> Verdict {
        let node = &nodes.identity[id as usize];
        let signature = NodeSignature {
            labels: &node.labels,
            taints: &node.taints,
            unschedulable: node.unschedulable,
            name: Some(&node.name),
        };
        let revoked = || self.zones.rejection(spec.revocable, &node.labels);
        Verdict {
            rejected: check(spec, &signature, &self.switches)
                .err()
                .or_else(|| revoked().map(StaticReason::RevocableZone)),
            affinity: preferred_node_affinity(spec, &node.name, &node.labels),
            taints: prefer_no_schedule_count(&spec.tolerations, &node.taints),
            zone: self.zones.score(spec.revocable, &node.labels),
        }
    }

    /// Brings the weighted static scores of a key up to date. Raw values are normalised over the possible
    /// nodes of the whole cluster, not over those that happen to have room (core.md 7.3).
    pub fn refresh_scores(&mut self, id: KeyId, nodes: &Nodes) {
        if !std::mem::take(&mut self.keys[id as usize].stale) {
            return;
        }
        let mut keys = std::mem::take(&mut self.keys);
        let key = &mut keys[id as usize];
        let mut possible: Vec<(u32, Verdict, NodeId)> = Vec::new();
        let mut seen = FxHashSet::default();
        for node in 0..nodes.len() as NodeId {
            let at = if key.by_name { node } else { nodes.signature[node as usize] };
            if key.allows(node) && seen.insert(at) {
                possible.push((at, self.verdict_in(key, node, nodes).clone(), node));
            }
        }
        let max_affinity = possible.iter().map(|p| p.1.affinity).max().unwrap_or(0);
        let max_taints = possible.iter().map(|p| p.1.taints).max().unwrap_or(0);
        let known = nodes.known().count() as i64;
        let mut scores =
            vec![0.0; self.signatures.len().max(if key.by_name { nodes.len() } else { 0 })];
        for &(at, ref verdict, node) in &possible {
            let image = if self.weights.images == 0 || key.spec.images.is_empty() {
                0
            } else {
                image_locality(
                    &key.spec.images,
                    &nodes.identity[node as usize].images,
                    |name| self.image_nodes.get(name).copied().unwrap_or(0),
                    known,
                )
            };
            scores[at as usize] = (self.weights.affinity
                * normalize_affinity(verdict.affinity, max_affinity)
                + self.weights.taints * normalize_taints(verdict.taints, max_taints)
                + self.weights.images * image
                + verdict.zone) as f64;
        }
        let first = possible.first().map_or(0.0, |p| scores[p.0 as usize]);
        key.constant = possible.iter().all(|p| scores[p.0 as usize] == first).then_some(first);
        let changed = key.scores.iter().zip(&scores).any(|(old, new)| old != new);
        key.scores = scores;
        if changed {
            key.epoch += 1;
        }
        self.keys = keys;
    }

    /// Judges everything anew: the switches of the filters or the weights of the scores changed.
    pub fn reconfigure(
        &mut self,
        filtering: bool,
        switches: PredicateSwitches,
        weights: StaticWeights,
        nodes: &Nodes,
    ) {
        self.filtering = filtering;
        self.switches = switches;
        self.weights = weights;
        self.judge_all(nodes);
    }

    /// Takes over what the revocable zones are now; true when that changed anything.
    pub fn set_zones(&mut self, zones: Zones, nodes: &mut Nodes) -> bool {
        if self.zones == zones {
            return false;
        }
        let news = zones.matter() && self.label_keys.insert(keys::REVOCABLE_ZONE.to_owned());
        self.zones = zones;
        if news {
            self.sign_all(nodes);
        }
        self.judge_all(nodes);
        true
    }

    fn judge_all(&mut self, nodes: &Nodes) {
        let mut keys = std::mem::take(&mut self.keys);
        for key in &mut keys {
            key.verdicts.clear();
            key.stale = true;
            key.epoch += 1;
            for id in 0..nodes.len() as NodeId {
                self.judge(key, id, nodes);
            }
        }
        self.keys = keys;
        for class in &mut self.list {
            class.index = None;
            class.capacity = None;
        }
    }

    /// Why the static filters reject a node, if they do.
    pub fn rejection(&self, key: KeyId, id: NodeId, nodes: &Nodes) -> Option<StaticReason> {
        let key = &self.keys[key as usize];
        if key.allows(id) {
            return None;
        }
        let at = if key.by_name { id } else { nodes.signature[id as usize] };
        match key.verdicts.get(&at) {
            Some(verdict) => verdict.rejected.clone(),
            None => self.evaluate(&key.spec, id, nodes).rejected,
        }
    }
}

fn is_stateful(spec: &PodSpec) -> bool {
    !(spec.host_ports.is_empty()
        && spec.pod_affinity.is_empty()
        && spec.pod_anti_affinity.is_empty()
        && spec.preferred_pod_affinity.is_empty()
        && spec.spread.is_empty())
}

/// The fields that decide the static filters and scores; everything else is left out.
fn static_part(spec: &PodSpec) -> PodSpec {
    PodSpec {
        node_selector: spec.node_selector.clone(),
        required_node_terms: spec.required_node_terms.clone(),
        preferred_node_terms: spec.preferred_node_terms.clone(),
        tolerations: spec.tolerations.clone(),
        images: spec.images.clone(),
        revocable: spec.revocable,
        ..PodSpec::default()
    }
}

/// Request by dimension, and why nothing can ever offer it.
fn request_of(spec: &PodSpec, dims: &mut Dimensions) -> (Request, Option<String>) {
    let mut request: Request = [(CPU, 0), (MEMORY, 0), (PODS, 1)].into_iter().collect();
    let mut impossible = None;
    for (name, stored) in &spec.requests {
        let Some(dim) = dims.intern(name) else {
            impossible = Some(format!("too many distinct resource names to know {name}"));
            continue;
        };
        let amount = dims.to_core(dim, *stored).clamp(0, REQUEST_LIMIT);
        match request.iter_mut().find(|(known, _)| *known == dim) {
            Some(entry) => entry.1 = amount,
            None if amount > 0 => request.push((dim, amount)),
            None => {}
        }
    }
    request.sort_unstable();
    (request, impossible)
}
