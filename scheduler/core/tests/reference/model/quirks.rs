//! Temporary: what the core does otherwise than this model, to search on behind it.
/// Claims of gangs whose queue does not exist hold back others (overcommit).
pub const CLAIMS_WITHOUT_QUEUE: bool = true;
/// What runs on cordoned nodes and on nodes that are gone counts as used (overcommit).
pub const USED_EVERYWHERE: bool = true;
