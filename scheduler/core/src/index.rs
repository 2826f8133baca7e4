//! The lazy block-max index: per class and block of 64 nodes only the best score, its lane and how many copies
//! fit, revalidated by the kernel when the block's version moved. It answers "which node is best for one more
//! copy" and "how many copies fit in the cluster" exactly, for any score that is a pure function of node
//! columns. Classes that nobody asks about cost nothing when nodes change.

pub mod block_max;
pub mod capacity;
pub mod kernel;
pub mod lack;
pub mod score;

pub use block_max::{ClassIndex, refresh_all};
