//! What may come next at each place of a text.

/// What may come next.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Node,
    FirstName,
    Attributes,
    FirstAttribute,
    Attribute,
    Value,
    /// What an object in place of a value has.
    Form,
    Digits,
    /// A time of erasure.
    Time,
    /// The bytes of an erasable value.
    Bytes,
    /// The name in an object in place of the bytes.
    BytesForm,
    FormEnd,
    BytesEnd,
    AfterValue,
    AfterAttributes,
    ChildrenName,
    Children,
    /// A child, or the end of children that have just begun.
    FirstChild,
    AfterChild,
    ChildrenEnd,
    /// The end of a node whose children were said to be none.
    LeafEnd,
    /// A colon, and then this.
    Colon(Behind),
    /// Only space.
    Nothing,
}

/// What comes behind a colon.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Behind {
    Attributes,
    Children,
    Value,
    Digits,
    Time,
    Bytes,
}

impl Next {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Node => "`{` of a node",
            Self::FirstName => "`attributes`, `children` or `}` in a node",
            Self::Attributes => "`{` of the attributes",
            Self::FirstAttribute => "a name in quotes or `}`",
            Self::Attribute => "a name in quotes",
            Self::Value | Self::Digits | Self::Time | Self::Bytes => "a string",
            Self::Form => "`hex`, `erasable`, `erased` or `elsewhere` as the name in a value",
            Self::BytesForm => "`hex` as the name in an erasable value",
            Self::FormEnd => "`}` after the value",
            Self::BytesEnd => "`}` after the bytes",
            Self::AfterValue => "`,` or `}` after an attribute",
            Self::AfterAttributes => "`,` or `}` after the attributes",
            Self::ChildrenName => "`attributes` and then `children` as the names in a node",
            Self::Children => "`[` of the children",
            Self::FirstChild => "`{` of a node or `]`",
            Self::AfterChild => "`,` or `]` after a child",
            Self::ChildrenEnd | Self::LeafEnd => "`}` after the children",
            Self::Colon(_) => "`:`",
            Self::Nothing => "the end",
        }
    }
}

impl Behind {
    pub(super) fn next(self) -> Next {
        match self {
            Self::Attributes => Next::Attributes,
            Self::Children => Next::Children,
            Self::Value => Next::Value,
            Self::Digits => Next::Digits,
            Self::Time => Next::Time,
            Self::Bytes => Next::Bytes,
        }
    }
}
