//! Why a text is refused.

/// Why a text is not a tree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the JSON text is not a tree: expected {expected} at byte {at}")]
pub struct JsonError {
    /// The byte at which the text stops being a tree.
    pub at: usize,
    /// What was expected at that byte.
    pub expected: &'static str,
}
