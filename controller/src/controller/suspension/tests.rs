//! What the decision and its writes do together, in a world of plain objects: whole lives of a gang, the controller killed
//! between any two writes, and everybody else who has a hand in it.

mod lives;
mod world;
