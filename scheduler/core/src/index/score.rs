//! What the scores of the configured plugins add up to, in the form that the kernel reads: one set of weights
//! for the whole configuration ([`ScoreConfig`]), one prepared record per class ([`ClassHot`]).

use smallvec::SmallVec;

use crate::state::classes::{Class, StaticWeights};
use crate::state::resource::{CPU, Dim, Dimensions, MEMORY};

/// Weights of every node score, as plugins set them when a configuration is loaded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScoreConfig {
    /// `leastrequested.weight` of nodeorder.
    pub least: f64,
    /// `mostrequested.weight`.
    pub most: f64,
    /// `balancedresource.weight`.
    pub balanced: f64,
    /// Static scores of nodeorder.
    pub fixed: StaticWeights,
    /// `podaffinity.weight`.
    pub pod_affinity: f64,
    /// `podtopologyspread.weight`.
    pub spread: f64,
    /// Plugin binpack, when it scores.
    pub binpack: Option<BinpackConfig>,
}

/// Settings of plugin binpack.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BinpackConfig {
    /// `binpack.weight`.
    pub weight: f64,
    /// `binpack.cpu`.
    pub cpu: f64,
    /// `binpack.memory`.
    pub memory: f64,
    /// `binpack.resources.<name>`.
    pub resources: Vec<(String, f64)>,
}

impl BinpackConfig {
    /// Weight of a dimension, `None` when it does not count.
    pub fn weight_of(&self, dims: &Dimensions, dim: Dim) -> Option<f64> {
        match dim {
            CPU => Some(self.cpu),
            MEMORY => Some(self.memory),
            _ => {
                let name = dims.name(dim);
                self.resources.iter().find(|(known, _)| **known == **name).map(|(_, w)| *w)
            }
        }
    }
}

/// One dimension that binpack counts for a class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PackedDim {
    /// Dimension.
    pub dim: Dim,
    /// Request.
    pub request: f64,
    /// Weight.
    pub weight: f64,
}

/// A class, prepared for the kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassHot {
    /// Dimensions to fit with requests; cpu, memory and pods always.
    pub fit: SmallVec<[(Dim, f64); 5]>,
    /// Request with defaults, cpu and memory.
    pub nonzero: [f64; 2],
    /// Plain cpu and memory request.
    pub plain: [f64; 2],
    /// Dimension and request of the one scalar that balanced allocation knows, if the class asks for it.
    pub balanced_scalar: Option<(Dim, f64)>,
    /// Weights of the three resource scores; 0 skips one.
    pub least: f64,
    /// See `least`.
    pub most: f64,
    /// See `least`.
    pub balanced: f64,
    /// Dimensions of binpack, empty when it does not score.
    pub packed: SmallVec<[PackedDim; 4]>,
    /// Sum of the weights in `packed`.
    pub packed_weights: f64,
    /// 100 times the weight of the plugin.
    pub packed_scale: f64,
}

/// Name of the scalar that kube-scheduler's balanced allocation looks at.
const BALANCED_SCALAR: &str = "nvidia.com/gpu";

impl ClassHot {
    /// Prepares a class under a configuration.
    pub fn new(class: &Class, config: &ScoreConfig, dims: &Dimensions) -> Self {
        let of = |wanted: Dim| {
            class.request.iter().find(|(dim, _)| *dim == wanted).map_or(0, |&(_, amount)| amount)
        };
        let scalar = dims.get(BALANCED_SCALAR).map(|dim| (dim, of(dim))).filter(|&(_, n)| n > 0);
        let applies = of(CPU) > 0 || of(MEMORY) > 0 || scalar.is_some();
        let mut packed = SmallVec::new();
        let mut packed_weights = 0.0;
        if let Some(binpack) = &config.binpack {
            for &(dim, amount) in &class.request {
                if let Some(weight) = binpack.weight_of(dims, dim)
                    && amount > 0
                {
                    packed.push(PackedDim { dim, request: amount as f64, weight });
                    packed_weights += weight;
                }
            }
        }
        Self {
            fit: class.request.iter().map(|&(dim, amount)| (dim, amount as f64)).collect(),
            nonzero: class.spec.nonzero.map(|amount| amount as f64),
            plain: [of(CPU) as f64, of(MEMORY) as f64],
            balanced_scalar: scalar.map(|(dim, amount)| (dim, amount as f64)),
            least: config.least,
            most: config.most,
            balanced: if applies { config.balanced } else { 0.0 },
            packed,
            packed_weights,
            packed_scale: config.binpack.as_ref().map_or(0.0, |b| 100.0 * b.weight),
        }
    }
}
