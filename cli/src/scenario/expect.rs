//! Judges expectations against a world. [`judge`] walks the keys of an `expect` or `check`; placements and
//! evictions are looked at in [`placement`], objects, texts and the configuration in [`objects`].
//!
//! Binds and evictions count over the whole story so far; everything else is read as it stands now.

use super::schema::Expect;
use super::verdict::Judgement;
use super::world::World;

pub mod objects;
pub mod placement;

#[cfg(test)]
mod tests;

/// How an expectation is read.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'a> {
    /// Recorded files: `bind` is the exact map, `pipelined` is keyed by PodGroup.
    pub recorded: bool,
    /// Hypernodes of a recorded file.
    pub hyper_nodes: Option<&'a super::schema::HyperNodeView>,
}

/// Judges every key of an expectation.
pub fn judge(expect: &Expect, world: &World, reading: Reading<'_>, judgement: &mut Judgement) {
    placement::judge(expect, world, reading, judgement);
    objects::judge(expect, world, judgement);
    if let Some(outcomes) = &expect.any_of {
        any_of(outcomes, world, reading, judgement);
    }
}

fn any_of(outcomes: &[Expect], world: &World, reading: Reading<'_>, judgement: &mut Judgement) {
    let mut misses = Vec::new();
    for (index, outcome) in outcomes.iter().enumerate() {
        let mut own = Judgement::default();
        judge(outcome, world, reading, &mut own);
        if own.mismatches.is_empty() && own.judged > 0 {
            judgement.expect(true, "anyOf", "", "");
            return;
        }
        let first = own.mismatches.first().map(ToString::to_string);
        misses.push(format!("{}: {}", index + 1, first.unwrap_or_else(|| "is empty".to_owned())));
    }
    judgement.expect(false, "anyOf", "one of the outcomes", misses.join(" | "));
}
