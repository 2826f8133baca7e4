//! Plugin `binpack`: fuller nodes are better, so that whole nodes stay free.
//!
//! | argument | default |
//! | --- | --- |
//! | `binpack.weight` | 1; 0 switches the plugin off |
//! | `binpack.cpu`, `binpack.memory` | 1; below 0 becomes 1 |
//! | `binpack.resources` | names, comma separated |
//! | `binpack.resources.<name>` | 1; below 0 becomes 1; only for listed names |

use tephra_api::conf::Arguments;

use super::{Hooks, Plugin};
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

fn weight(arguments: &Arguments, key: &str, warnings: &mut Vec<String>) -> f64 {
    match arguments.int(key, warnings) {
        Some(value) if value < 0 => {
            warnings.push(format!("argument {key} is negative: 1 is used"));
            1.0
        }
        Some(value) => value as f64,
        None => 1.0,
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
