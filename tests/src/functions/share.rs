//! What part of its deserved amounts a queue has (spec 6.1).

use anyhow::Context;
use serde_json::{Value, json};
use tephra_core::plugin::capacity::share;
use tephra_core::state::resource::{CPU, Ledger, MEMORY, Vector};

use super::{Answer, Call, Counterpart};

pub(super) const COUNTERPARTS: &[(&str, Counterpart)] =
    &[("capacity.updateQueueAttrShare", |call| {
        let amounts = |of: &str| -> anyhow::Result<[i64; 2]> {
            let vector = &call.args["attr"][of];
            anyhow::ensure!(vector["ScalarResources"].is_null(), "only cpu and memory are read");
            let amount = |name: &str| vector[name].as_f64().map(|amount| amount as i64);
            Ok([amount("MilliCPU").context("no cpu")?, amount("Memory").context("no memory")?])
        };
        let (mut allocated, mut deserved) = (Ledger::default(), Vector::default());
        for ((dim, has), wants) in
            [CPU, MEMORY].into_iter().zip(amounts("allocated")?).zip(amounts("deserved")?)
        {
            allocated.add(dim, has.into());
            deserved.set(dim, wants as f64);
        }
        Ok(changed(call, share(&allocated, &deserved)))
    })];

fn changed(call: &Call, share: f64) -> Answer {
    let mut arguments: Value = call.args.clone();
    arguments["attr"]["share"] = json!(share);
    Answer { arguments, ..Answer::default() }
}
