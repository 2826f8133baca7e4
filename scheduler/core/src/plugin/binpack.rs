//! Plugin `binpack`: fuller nodes are better, so that whole nodes stay free.
//!
//! | argument | default |
//! | --- | --- |
//! | `binpack.weight` | 1; 0 switches the plugin off |
//! | `binpack.cpu`, `binpack.memory` | 1; below 0 becomes 1 |
//! | `binpack.resources` | names, comma separated |
//! | `binpack.resources.<name>` | 1; below 0 becomes 1; only for listed names |

use tephra_api::conf::Arguments;

use super::{Hooks, Plugin, weight};
use crate::index::score::{BinpackConfig, ScoreConfig};

/// The plugin.
#[derive(Debug)]
pub struct Binpack {
    config: BinpackConfig,
}

impl Default for Binpack {
    fn default() -> Self {
        Self { config: BinpackConfig { weight: 1.0, cpu: 1.0, memory: 1.0, resources: Vec::new() } }
    }
}

impl Plugin for Binpack {
    fn hooks(&self) -> Hooks {
        Hooks::NODE_ORDER
    }

    fn configure(&mut self, arguments: &Arguments, warnings: &mut Vec<String>) {
        if let Some(value) = arguments.int("binpack.weight", warnings) {
            self.config.weight = value as f64;
        }
        self.config.cpu = weight(arguments, "binpack.cpu", warnings);
        self.config.memory = weight(arguments, "binpack.memory", warnings);
        let listed = arguments.string("binpack.resources", warnings).unwrap_or_default();
        self.config.resources = listed
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty() && !matches!(*name, "cpu" | "memory"))
            .map(|name| {
                (name.to_owned(), weight(arguments, &format!("binpack.resources.{name}"), warnings))
            })
            .collect();
    }

    fn scores(&self, config: &mut ScoreConfig) {
        if self.config.weight != 0.0 {
            config.binpack = Some(self.config.clone());
        }
    }
}
