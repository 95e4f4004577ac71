//! A node that is written when its offer is left: until then its wait is no more than a pointer to the tool.
//!
//! A choice opens all its events, and if one is ready, nobody looks at the nodes of the others. Called by the waits
//! whose nodes hold nothing before.

#![allow(unsafe_code)]

use std::{marker::PhantomData, mem::MaybeUninit, pin::Pin};

use super::offer::OfferNode;

/// A tool, and the node of a wait for it.
///
/// # Safety
/// - *Marked*: the address of `tool` is odd exactly if the node is written. The address of a tool is even.
/// - *Pinned*: the node is pinned with the whole.
/// - *Borrowed*: without its mark, `tool` is a `&'a C`.
pub(crate) struct LateNode<'a, C, V> {
    tool: *const C,
    node: MaybeUninit<OfferNode<V>>,
    _borrowed: PhantomData<&'a C>,
}

const WRITTEN: usize = 1;

// SAFETY: *borrowed*; the node is sent if it is written.
unsafe impl<C: Sync, V> Send for LateNode<'_, C, V> where OfferNode<V>: Send {}
// SAFETY: *borrowed*; the node is shared if it is written.
unsafe impl<C: Sync, V> Sync for LateNode<'_, C, V> where OfferNode<V>: Sync {}

impl<'a, C, V> LateNode<'a, C, V> {
    #[inline(always)]
    pub(crate) fn new(tool: &'a C) -> LateNode<'a, C, V> {
        const { assert!(align_of::<C>() > WRITTEN, "the address of a tool is even") };
        LateNode {
            tool,
            node: MaybeUninit::uninit(),
            _borrowed: PhantomData,
        }
    }

    #[inline(always)]
    pub(crate) fn tool(&self) -> &'a C {
        let tool = self.tool.map_addr(|address| address & !WRITTEN);
        // SAFETY: *borrowed*.
        unsafe { &*tool }
    }

    #[inline(always)]
    pub(crate) fn is_written(&self) -> bool {
        self.tool.addr() & WRITTEN != 0
    }

    /// The node, if it is written.
    #[inline(always)]
    pub(crate) fn node(self: Pin<&mut Self>) -> Option<Pin<&mut OfferNode<V>>> {
        if !self.is_written() {
            return None;
        }
        // SAFETY: *pinned*: nothing is moved.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: *marked*.
        let node = unsafe { this.node.assume_init_mut() };
        // SAFETY: *pinned*.
        Some(unsafe { Pin::new_unchecked(node) })
    }

    /// Writes the node, with what is in its slot.
    ///
    /// # Panics
    /// If it is written already.
    pub(crate) fn write(self: Pin<&mut Self>, slot: V) -> Pin<&mut OfferNode<V>> {
        assert!(!self.is_written(), "a node is written once");
        // SAFETY: *pinned*: what the node's place holds is not a node yet.
        let this = unsafe { self.get_unchecked_mut() };
        let node = this.node.write(OfferNode::with_slot(slot));
        this.tool = this.tool.map_addr(|address| address | WRITTEN);
        // SAFETY: *pinned*.
        unsafe { Pin::new_unchecked(node) }
    }
}

impl<C, V> Drop for LateNode<'_, C, V> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.is_written() {
            // SAFETY: *marked*; it is used no more.
            unsafe { self.node.assume_init_drop() };
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::{pin::pin, rc::Rc};

    use super::*;

    #[test]
    fn a_node_is_dropped_if_it_was_written() {
        let (tool, value) = (7_u64, Rc::new(()));
        {
            let mut late: Pin<&mut LateNode<'_, u64, Rc<()>>> = pin!(LateNode::new(&tool));
            assert!(!late.is_written() && late.as_mut().node().is_none());
            let node = late.as_mut().write(Rc::clone(&value));
            assert_eq!(Rc::strong_count(&node.own_value().slot), 2);
            assert_eq!((late.is_written(), *late.tool()), (true, 7));
            assert!(late.node().is_some());
        }
        assert_eq!(Rc::strong_count(&value), 1);
        drop(LateNode::<'_, u64, Rc<()>>::new(&tool));
    }

    #[test]
    #[should_panic(expected = "a node is written once")]
    fn a_node_is_written_once() {
        let mut late = pin!(LateNode::new(&0_u64));
        late.as_mut().write(1);
        late.as_mut().write(2);
    }
}
