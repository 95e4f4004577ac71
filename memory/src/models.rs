//! Models of what several threads do at once, for loom.

mod slot;
