//! The end-to-end suite against a real kube-apiserver: the binaries of this project as separate processes, kwok as
//! the kubelets, and the API server's audit log as the witness. One control plane serves all cases, one at a time;
//! each case has its own namespace, queue, nodes and scheduler name.
//!
//! Without Go and without `KUBEBUILDER_ASSETS` there is no server to test against: every case then says `SKIPPED`.

mod beside;
mod case;
mod crash;
mod evict;
mod fair;
mod fault;
mod foreign;
mod gang;
mod lease;
mod metrics;
mod plain;
mod quota;
mod suspend;
mod workloads;
