//! Searches for the greatest value in a tree that exists only as the rule by which a node has children.
//!
//! A node is a number; its value is that number mixed. The tree `Random` is as unbalanced as chance
//! makes it. In `Left` half of all nodes hang on a long path to the left, the others are on the right of
//! the root.

use std::ops::Range;

use super::fork::Fork;
use super::measure::Program;

/// The root of the random tree: a node that has descendants on every level.
const ROOT: u64 = 36;

/// The shape of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A node above the last level has k children with probability 0.2 * 0.8^k: 4 on average.
    Random,
    /// As many nested forks as the tree is deep, before the first of them is joined.
    Left,
}

/// One tree to search.
#[derive(Clone, Copy, Debug)]
pub struct Tree {
    nodes: u64,
    depth: u64,
    shape: Shape,
    found: SearchResult,
    right: Option<SearchResult>,
}

/// The result of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SearchResult {
    nodes: u64,
    greatest: u64,
}

impl SearchResult {
    fn one(node: u64) -> Self {
        Self {
            nodes: 1,
            greatest: mix(node),
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            nodes: self.nodes + other.nodes,
            greatest: self.greatest.max(other.greatest),
        }
    }
}

impl Tree {
    /// A tree with this many nodes, which every run counts, and levels; `None` if a tree of that shape
    /// cannot have them.
    #[must_use]
    pub fn of(nodes: usize, depth: usize, shape: Shape) -> Option<Self> {
        let fits = shape == Shape::Random || nodes.is_multiple_of(2 * depth);
        fits.then_some(Self {
            nodes: nodes as u64,
            depth: depth as u64,
            shape,
            found: SearchResult::default(),
            right: None,
        })
    }
}

impl Program for Tree {
    fn reset(&mut self) {
        self.found = SearchResult::default();
    }

    fn run<F: Fork>(&mut self, scope: &mut F::Scope<'_>) {
        self.found = match self.shape {
            Shape::Random => random::<F>(scope, mix(ROOT), self.depth),
            Shape::Left => left::<F>(scope, self.nodes, self.depth),
        };
    }

    fn check(&self) -> Result<(), String> {
        let (wanted, found) = (self.nodes, self.found.nodes);
        if found != wanted {
            return Err(format!(
                "The tree has {found} nodes and should have {wanted}."
            ));
        }
        match self.right {
            Some(right) if right != self.found => {
                Err("The greatest value is not the one that was found first.".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn keep_answer(&mut self) {
        self.right = Some(self.found);
    }
}

fn random<F: Fork>(scope: &mut F::Scope<'_>, node: u64, levels: u64) -> SearchResult {
    let one = SearchResult::one(node);
    let children = if levels == 0 { 0 } else { children(node) };
    if children == 0 {
        return one;
    }
    one.and(among::<F>(scope, (node, levels), 0..children))
}

/// Searches some of a node's children.
fn among<F: Fork>(
    scope: &mut F::Scope<'_>,
    parent: (u64, u64),
    children: Range<u64>,
) -> SearchResult {
    let (node, levels) = parent;
    let Range { start, end } = children;
    if end - start == 1 {
        return random::<F>(scope, mix(node ^ (start + 1)), levels - 1);
    }
    let middle = u64::midpoint(start, end);
    let (a, b) = F::join(
        scope,
        |scope| among::<F>(scope, parent, start..middle),
        |scope| among::<F>(scope, parent, middle..end),
    );
    a.and(b)
}

/// The number of a node's children: how many draws in a row miss the one in five that ends them.
fn children(node: u64) -> u64 {
    let (mut draw, mut count) = (node, 0);
    while !draw.is_multiple_of(5) {
        draw /= 5;
        count += 1;
    }
    count
}

/// The path at the left of the root; as many nodes, balanced, at its right.
fn left<F: Fork>(scope: &mut F::Scope<'_>, nodes: u64, depth: u64) -> SearchResult {
    let half = nodes / 2;
    let (a, b) = F::join(
        scope,
        |scope| way::<F>(scope, depth, half / depth),
        |scope| balanced::<F>(scope, nodes, half - 1),
    );
    SearchResult::one(nodes).and(a).and(b)
}

/// A path of this many steps. Each has `each` nodes: itself and those at its right.
fn way<F: Fork>(scope: &mut F::Scope<'_>, steps: u64, each: u64) -> SearchResult {
    let one = SearchResult::one(steps);
    if steps == 1 {
        return one.and(balanced::<F>(scope, steps, each - 1));
    }
    let (a, b) = F::join(
        scope,
        |scope| way::<F>(scope, steps - 1, each),
        |scope| balanced::<F>(scope, steps, each - 1),
    );
    one.and(a).and(b)
}

fn balanced<F: Fork>(scope: &mut F::Scope<'_>, node: u64, nodes: u64) -> SearchResult {
    if nodes == 0 {
        return SearchResult::default();
    }
    let value = mix(node);
    let (one, rest) = (SearchResult::one(value), nodes - 1);
    let (a, b) = F::join(
        scope,
        |scope| balanced::<F>(scope, value ^ 1, rest / 2),
        |scope| balanced::<F>(scope, value ^ 2, rest - rest / 2),
    );
    one.and(a).and(b)
}

/// Mixes the bits of a number, so that neighbours have nothing in common: the step of `SplitMix64`
/// (Steele, Lea and Flood, 2014).
#[must_use]
pub fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
