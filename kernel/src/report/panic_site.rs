//! Where a unit panicked: the panic hook knows it, and the code that catches the panic does not.
//!
//! The hook notes the panic's message and source location for its thread. The code that catches the panic takes the
//! note, but only if the message is that of the payload: a panic that was raised again without the hook must not get
//! the location of another one. There is no location if the program has replaced the hook after its first runtime was
//! built.

use std::{cell::RefCell, fmt, panic::PanicHookInfo};

use crate::report::panic_message;

/// The place in the source code of a panic.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PanicSite {
    /// The file, as the compiler was given it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

impl fmt::Display for PanicSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

struct Noted {
    message: String,
    site: PanicSite,
}

thread_local! {
    static LAST: RefCell<Option<Noted>> = const { RefCell::new(None) };
}

/// Notes the panic that the hook was called with, for the calling thread.
pub(crate) fn note(info: &PanicHookInfo<'_>) {
    let noted = info.location().map(|location| Noted {
        message: panic_message(info.payload()),
        site: PanicSite {
            file: location.file().to_owned(),
            line: location.line(),
            column: location.column(),
        },
    });
    // A thread that ends may have no note any longer; the former one is dropped after the borrow.
    let _former = LAST.try_with(|last| last.replace(noted));
}

/// Takes the place of the last panic on the calling thread, if its message was `message`.
pub(crate) fn take(message: &str) -> Option<PanicSite> {
    let noted = LAST.try_with(RefCell::take).ok().flatten()?;
    (noted.message == message).then_some(noted.site)
}
