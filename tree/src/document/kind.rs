//! The kinds of JSON values, and the attributes of the nodes that stand for them.

use crate::attributes::Attributes;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Object,
    Array,
    String,
    Number,
    Boolean,
    Null,
}

const KINDS: [Kind; 6] = [
    Kind::Object,
    Kind::Array,
    Kind::String,
    Kind::Number,
    Kind::Boolean,
    Kind::Null,
];

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Null => "null",
        }
    }

    pub(super) fn of(name: &[u8]) -> Option<Self> {
        KINDS
            .into_iter()
            .find(|kind| kind.name().as_bytes() == name)
    }

    /// The attributes of a node.
    pub(super) fn attributes(self, key: Option<&[u8]>, value: Option<&[u8]>) -> Attributes {
        let key = key.map(|key| ("key", key));
        let value = value.map(|value| ("value", value));
        let parts = [key, Some(("type", self.name().as_bytes())), value];
        parts.into_iter().flatten().collect()
    }
}
