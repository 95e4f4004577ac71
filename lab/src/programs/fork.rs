//! The ways to run the two halves of a program: forked by some system, or called one after the other.
//!
//! A program is a function that is generic over [`Fork`], so its forked and serial forms differ in
//! nothing else.

/// A way to run two halves.
pub trait Fork {
    /// What a half needs in order to fork; nothing for most systems.
    type Scope<'a>;

    /// Runs both halves, in parallel if the system chooses to, and returns when both have ended.
    fn join<A, B, RA, RB>(scope: &mut Self::Scope<'_>, a: A, b: B) -> (RA, RB)
    where
        A: FnOnce(&mut Self::Scope<'_>) -> RA + Send,
        B: FnOnce(&mut Self::Scope<'_>) -> RB + Send,
        RA: Send,
        RB: Send;
}

/// Two plain calls, which the compiler may inline: the serial form in every ratio.
#[derive(Debug)]
pub enum Plain {}

impl Fork for Plain {
    type Scope<'a> = ();

    #[inline]
    fn join<A, B, RA, RB>(scope: &mut (), a: A, b: B) -> (RA, RB)
    where
        A: FnOnce(&mut ()) -> RA + Send,
        B: FnOnce(&mut ()) -> RB + Send,
        RA: Send,
        RB: Send,
    {
        (a(scope), b(scope))
    }
}

/// Two calls, neither of which is inlined.
#[derive(Debug)]
pub enum Outlined {}

impl Fork for Outlined {
    type Scope<'a> = ();

    #[inline]
    fn join<A, B, RA, RB>(_: &mut (), a: A, b: B) -> (RA, RB)
    where
        A: FnOnce(&mut ()) -> RA + Send,
        B: FnOnce(&mut ()) -> RB + Send,
        RA: Send,
        RB: Send,
    {
        (called(a), called(b))
    }
}

#[inline(never)]
fn called<R>(half: impl FnOnce(&mut ()) -> R) -> R {
    half(&mut ())
}

/// Two calls, which are counted, so that a cost per fork can be given.
#[derive(Debug)]
pub enum Counted {}

impl Fork for Counted {
    type Scope<'a> = u64;

    fn join<A, B, RA, RB>(forks: &mut u64, a: A, b: B) -> (RA, RB)
    where
        A: FnOnce(&mut u64) -> RA + Send,
        B: FnOnce(&mut u64) -> RB + Send,
        RA: Send,
        RB: Send,
    {
        *forks += 1;
        (a(forks), b(forks))
    }
}
