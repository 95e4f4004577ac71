//! In which form the text of a tree is.

/// The text of a tree.
#[derive(Clone, Copy)]
pub(crate) enum TreeForm {
    /// As `export` prints every tree.
    Exact,
    Json,
    Xml,
}

impl TreeForm {
    pub(super) fn of(is_json: bool, is_xml: bool) -> Self {
        match (is_json, is_xml) {
            (true, _) => Self::Json,
            (false, true) => Self::Xml,
            (false, false) => Self::Exact,
        }
    }
}
