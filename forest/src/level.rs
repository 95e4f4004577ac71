//! How far a commit has got: its position in the journal, and the level that this position has reached.

/// The level that a commit must have reached before it is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The journal has taken it.
    Accepted,
    /// It survives the end of the program, even by `kill -9`.
    Buffered,
    /// It survives the loss of power.
    Durable,
}

/// A place in a journal. Positions rise, and are not dense; only the journal knows more about them. The default is
/// before all records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u128);
