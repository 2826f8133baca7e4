//! Temporary.
#![allow(missing_docs)]
use std::sync::Arc;
use crate::event::{Labels, PodSpec, Taint};
use crate::matching::static_filter::PredicateSwitches;
#[path = "/work/main/scheduler/core/src/stateful/reason.rs"]
pub mod reason;
#[derive(Debug, Default)]
pub struct StatefulState;
#[derive(Debug)]
pub struct PlacedPod { pub namespace: Arc<str>, pub labels: Arc<Labels>, pub spec: Arc<PodSpec>, pub node: u32, pub terminating: bool }
#[derive(Debug)]
pub struct Query<'q> { pub namespace: &'q str, pub labels: &'q Labels, pub spec: &'q PodSpec, pub switches: &'q PredicateSwitches }
#[derive(Debug)]
pub struct Asked;
impl Asked {
    pub fn filter(&mut self, _: u32) -> Result<(), reason::StatefulReason> { Ok(()) }
    pub fn scores(&mut self, _: &[u32], _: i64, _: i64) -> Option<Vec<i64>> { None }
}
impl StatefulState {
    pub fn add_pod(&mut self, _: u32, _: &PlacedPod) {}
    pub fn remove_pod(&mut self, _: u32) {}
    pub fn set_node(&mut self, _: u32, _: &str, _: &Labels, _: &[Taint], _: bool) {}
    pub fn remove_node(&mut self, _: u32) {}
    pub fn set_namespace(&mut self, _: &str, _: &Labels) {}
    pub fn remove_namespace(&mut self, _: &str) {}
    pub fn is_affected(&self, _: &str, _: &Labels, _: &PodSpec) -> bool { false }
    pub fn ask(&mut self, _: &Query<'_>) -> Asked { Asked }
}
