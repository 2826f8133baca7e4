//! What Tephra's programs share for being observed: log set-up and metric families; OTLP traces come with later
//! work. The scheduling core uses none of this.

pub mod logs;
pub mod metric;
