//! What Tephra's programs share for being observed: log set-up now; metric families and OTLP traces come with
//! the observability work. The scheduling core uses none of this.

pub mod logs;
