//! Tests of what the decision and its writes do together.
