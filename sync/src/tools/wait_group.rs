//! The wait group: a wait ends when all members have ended, however many there are or come later.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use crate::{
    event::{Branch, Enrolled, Waiting, Won},
    queue::{
        list,
        offer::{OfferNode, Offers},
        spin_lock::SpinLock,
        ticket::Ticket,
    },
    runtime::reason::{Kind, Name, Reason},
};

/// A group of members; clones are handles of the same group.
///
/// ```
/// use weald::sync::{Wait, WaitGroup};
///
/// let group = WaitGroup::new();
/// for _ in 0..4 {
///     let member = group.member();
///     std::thread::spawn(move || drop(member));
/// }
/// group.wait().wait();
/// assert_eq!(group.members(), 0);
/// ```
///
/// There is no poisoning: a member that is dropped by a panic has ended.
#[derive(Clone)]
pub struct WaitGroup {
    shared: Arc<Group>,
}

/// A member of the group: waits do not end before it is dropped. A clone is one more member.
pub struct Member {
    shared: Arc<Group>,
}

struct Group {
    state: SpinLock<GroupState>,
}

struct GroupState {
    members: u32,
    name: Name,
    waiters: Offers<()>,
}

impl WaitGroup {
    /// A group without members.
    pub fn new() -> WaitGroup {
        WaitGroup::with_name(Name::NONE)
    }

    /// The same, with a name for reports of what units wait for.
    pub fn named(name: &str) -> WaitGroup {
        WaitGroup::with_name(Name::new(name))
    }

    fn with_name(name: Name) -> WaitGroup {
        let state = SpinLock::new(GroupState {
            members: 0,
            name,
            waiters: Offers::new(),
        });
        WaitGroup {
            shared: Arc::new(Group { state }),
        }
    }

    /// Adds a member.
    pub fn member(&self) -> Member {
        Member::of(&self.shared)
    }

    /// How many members there are.
    pub fn members(&self) -> usize {
        self.shared.state.lock().members as usize
    }

    /// Waits until there is no member: `.wait().await`, or `.wait().wait()` with the stack. The wait ends with the last
    /// member, even if others come right after that. An event. Cancel-safe.
    #[track_caller]
    pub fn wait(&self) -> Waiting<AllEnded<'_>> {
        Waiting::here(AllEnded {
            shared: &self.shared,
            node: OfferNode::with_slot(()),
        })
    }
}

impl Member {
    fn of(shared: &Arc<Group>) -> Member {
        let mut state = shared.state.lock();
        let members = state.members.checked_add(1);
        state.members = members.expect("a wait group has at most 2^32 - 1 members");
        drop(state);
        Member {
            shared: Arc::clone(shared),
        }
    }
}

impl Clone for Member {
    fn clone(&self) -> Member {
        Member::of(&self.shared)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.members -= 1;
        if state.members > 0 {
            return;
        }
        let wakers = state.waiters.accept_all();
        drop(state);
        crate::queue::wake::wake_all(wakers);
    }
}

/// The event of [`WaitGroup::wait`].
pub struct AllEnded<'a> {
    shared: &'a Group,
    node: OfferNode<()>,
}

impl<'a> AllEnded<'a> {
    fn node(self: Pin<&mut Self>) -> (&'a Group, Pin<&mut OfferNode<()>>) {
        list::project(self, |this| (this.shared, &mut this.node))
    }
}

impl Branch for AllEnded<'_> {
    type Output = ();

    fn attempt(self: Pin<&mut Self>, _base: u32, _cx: &mut Context<'_>) -> Poll<()> {
        match self.shared.state.lock().members {
            0 => Poll::Ready(()),
            _ => Poll::Pending,
        }
    }

    fn enrol(
        self: Pin<&mut Self>,
        _base: u32,
        ticket: &Ticket<'_>,
        _cx: &mut Context<'_>,
    ) -> Enrolled<()> {
        let (shared, node) = self.node();
        let mut state = shared.state.lock();
        let Ok(own) = ticket.hold() else {
            return Enrolled::Lost;
        };
        if state.members == 0 {
            ticket.win(own);
            return Enrolled::Ready(());
        }
        state.waiters.leave(node, ticket);
        drop(own);
        Enrolled::Waits
    }

    fn collect(self: Pin<&mut Self>, _won: Won) {}

    fn give_back(self: Pin<&mut Self>, _won: Won) {}

    fn settle(self: Pin<&mut Self>, won: Option<u32>) {
        let (shared, node) = self.node();
        if won.is_none() && node.is_bound() {
            shared.state.lock().waiters.remove(node);
        }
    }

    fn reason(&self) -> Reason {
        let name = self.shared.state.lock().name;
        Reason::new(Kind::WaitGroup, self.shared).named(name)
    }
}

impl Default for WaitGroup {
    fn default() -> WaitGroup {
        WaitGroup::new()
    }
}

impl fmt::Debug for WaitGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitGroup")
            .field("members", &self.members())
            .finish()
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").finish_non_exhaustive()
    }
}
