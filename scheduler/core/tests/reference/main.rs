//! The core against a scheduler that is easy to believe: random stories ([`story`]) are played to both in lockstep
//! ([`lockstep`]) and every session must end in the same decisions. Further properties of the core alone: ledgers
//! survive any events, equal events give equal decisions, every instruction set gives equal bits.

#![allow(unreachable_pub, dead_code, reason = "the reference is written like a library")]

mod bench_hash;
mod equality;
mod evictions;
mod history;
mod kernel;
mod lockstep;
mod model;
mod objects;
mod sanity;
mod story;
