//! Looks for the greatest value in a tree that exists only as the rule by which a node has children.
//!
//! A node is a number. Its value is that number mixed; the tree `Random` is as unbalanced as chance
//! makes it, and in `Left` half of all nodes hang on a long way to the left, the others lie at the
//! right of the root.

use std::ops::Range;

use super::fork::Fork;
use super::measure::Program;

/// The root of the random tree, one of those that have descendants on every level.
const ROOT: u64 = 36;

/// What the tree looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A node above the last level has k children with a chance of 0.2 * 0.8^k: 4 on average.
    Random,
    /// So many forks one inside the other before the first of them is joined.
    Left,
}

/// One tree to search.
#[derive(Clone, Copy, Debug)]
pub struct Tree {
    nodes: u64,
    depth: u64,
    shape: Shape,
    found: Found,
    right: Option<Found>,
}

/// What a search brings home.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Found {
    nodes: u64,
    greatest: u64,
}

impl Found {
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
    /// A tree of so many nodes, which are counted, and levels; none if a tree of that shape cannot
    /// have them.
    #[must_use]
    pub fn of(nodes: usize, depth: usize, shape: Shape) -> Option<Self> {
        let fits = shape == Shape::Random || nodes.is_multiple_of(2 * depth);
        fits.then_some(Self {
            nodes: nodes as u64,
            depth: depth as u64,
            shape,
            found: Found::default(),
            right: None,
        })
    }
}

impl Program for Tree {
    fn reset(&mut self) {
        self.found = Found::default();
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

fn random<F: Fork>(scope: &mut F::Scope<'_>, node: u64, levels: u64) -> Found {
    let one = Found::one(node);
    let children = if levels == 0 { 0 } else { children(node) };
    if children == 0 {
        return one;
    }
    one.and(among::<F>(scope, (node, levels), 0..children))
}

/// The search through some of a node's children.
fn among<F: Fork>(scope: &mut F::Scope<'_>, parent: (u64, u64), children: Range<u64>) -> Found {
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

/// How many children a node has: how often in a row its draw is not the one of five that ends it.
fn children(node: u64) -> u64 {
    let (mut draw, mut count) = (node, 0);
    while !draw.is_multiple_of(5) {
        draw /= 5;
        count += 1;
    }
    count
}

/// At the left of the root the way, at its right as many nodes in balance.
fn left<F: Fork>(scope: &mut F::Scope<'_>, nodes: u64, depth: u64) -> Found {
    let half = nodes / 2;
    let (a, b) = F::join(
        scope,
        |scope| way::<F>(scope, depth, half / depth),
        |scope| balanced::<F>(scope, nodes, half - 1),
    );
    Found::one(nodes).and(a).and(b)
}

/// A way of so many steps, each of which has `each` nodes, itself and those at its right.
fn way<F: Fork>(scope: &mut F::Scope<'_>, steps: u64, each: u64) -> Found {
    let one = Found::one(steps);
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

fn balanced<F: Fork>(scope: &mut F::Scope<'_>, node: u64, nodes: u64) -> Found {
    if nodes == 0 {
        return Found::default();
    }
    let value = mix(node);
    let (one, rest) = (Found::one(value), nodes - 1);
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
