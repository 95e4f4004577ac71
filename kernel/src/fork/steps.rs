//! What happens to each item on its way: nothing, `map`, `filter`, `flat_map`, one after the other.
//!
//! The steps of a piece are an iterator of the standard library, and cost what that costs.

/// What turns the items of a piece into others.
pub trait Steps<T>: Sync {
    /// The type of an item after all steps.
    type Out;

    /// Whether one item may become many.
    const MULTIPLY: bool;
    /// Whether each item becomes exactly one.
    const KEEPS_COUNT: bool = false;

    /// The items of a piece, after all steps.
    fn apply(&self, items: impl Iterator<Item = T>) -> impl Iterator<Item = Self::Out>;
}

/// No steps: each item still has its index.
#[derive(Clone, Copy, Debug)]
pub struct AsIs;

/// Steps, then a function of each item. [`Items::map`](crate::fork::Items::map) makes it.
#[derive(Clone, Copy, Debug)]
pub struct Map<S, F> {
    pub(super) before: S,
    pub(super) f: F,
}

/// Steps, then a choice of items. [`Items::filter`](crate::fork::Items::filter) makes it.
#[derive(Clone, Copy, Debug)]
pub struct Filter<S, F> {
    pub(super) before: S,
    pub(super) f: F,
}

/// Steps, then any number of items for each. [`Items::flat_map`](crate::fork::Items::flat_map) makes it.
#[derive(Clone, Copy, Debug)]
pub struct FlatMap<S, F> {
    pub(super) before: S,
    pub(super) f: F,
}

impl<T> Steps<T> for AsIs {
    type Out = T;
    const MULTIPLY: bool = false;
    const KEEPS_COUNT: bool = true;

    fn apply(&self, items: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
        items
    }
}

impl<T, S: Steps<T>, R, F: Fn(S::Out) -> R + Sync> Steps<T> for Map<S, F> {
    type Out = R;
    const MULTIPLY: bool = S::MULTIPLY;
    const KEEPS_COUNT: bool = S::KEEPS_COUNT;

    fn apply(&self, items: impl Iterator<Item = T>) -> impl Iterator<Item = R> {
        self.before.apply(items).map(&self.f)
    }
}

impl<T, S: Steps<T>, F: Fn(&S::Out) -> bool + Sync> Steps<T> for Filter<S, F> {
    type Out = S::Out;
    const MULTIPLY: bool = S::MULTIPLY;
    const KEEPS_COUNT: bool = false;

    fn apply(&self, items: impl Iterator<Item = T>) -> impl Iterator<Item = S::Out> {
        self.before.apply(items).filter(&self.f)
    }
}

impl<T, S: Steps<T>, I: IntoIterator, F: Fn(S::Out) -> I + Sync> Steps<T> for FlatMap<S, F> {
    type Out = I::Item;
    const MULTIPLY: bool = true;
    const KEEPS_COUNT: bool = false;

    fn apply(&self, items: impl Iterator<Item = T>) -> impl Iterator<Item = I::Item> {
        self.before.apply(items).flat_map(&self.f)
    }
}

/// Items that still have the indices of what they come from.
#[diagnostic::on_unimplemented(
    message = "these items have no index any more",
    label = "after `map`, `filter` or `flat_map`",
    note = "call `chunks`, `zip` and `enumerate` first: `fork::items(&x).enumerate().map(|(index, item)| …)`",
    note = "to number what is left after a filter, collect it into a vector, and begin again with that"
)]
pub trait StillIndexed {}

impl StillIndexed for AsIs {}
