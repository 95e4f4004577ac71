//! Why a process ended.

use std::{any::Any, fmt, sync::Arc};

use weald_kernel::{Ending, JobName, JoinError, PanicSite, catch_panic};

use crate::guarded::Guarded;

/// Why a process, or another unit, ended. Joining a process that returned gives its value instead. A clone is cheap.
///
/// Exit reasons travel along [links](crate::link) and in [`Down`](crate::Down) and [`Exit`](crate::Exit).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExitReason {
    /// It returned. A link does not pass this reason on, except to a process that [traps
    /// exits](crate::Inbox::trap_exits).
    Normal,
    /// It was told to end in an orderly way, as supervisors tell their children.
    Shutdown,
    /// It was killed, or its runtime shut down.
    Killed,
    /// There was no such process: it had ended before.
    NoProcess,
    /// It panicked.
    Crash(Crash),
    /// A reason of the program's own; see [`ExitReason::custom`].
    Custom(Custom),
}

/// The panic of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crash(Arc<CrashParts>);

#[derive(Debug, PartialEq, Eq)]
struct CrashParts {
    process: JobName,
    message: String,
    site: Option<PanicSite>,
}

/// A value of the program's own as an exit reason. It compares as that value does. Other units pass the reason on,
/// compare, show and drop it. If the value's own code panics there, that is reported, and harms none of them.
#[derive(Clone)]
pub struct Custom(Arc<dyn CustomReason>);

/// What a custom reason can do, without its type.
trait CustomReason: Any + fmt::Debug + Send + Sync {
    fn equals(&self, other: &dyn Any) -> bool;
    fn as_any(&self) -> &dyn Any;
}

impl<T: Any + fmt::Debug + Eq + Send + Sync> CustomReason for Guarded<T> {
    fn equals(&self, other: &dyn Any) -> bool {
        let other = other.downcast_ref::<T>();
        other.is_some_and(|other| catch_panic(|| self.value() == other).unwrap_or(false))
    }

    fn as_any(&self) -> &dyn Any {
        self.value()
    }
}

impl<T: fmt::Debug> fmt::Debug for Guarded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match catch_panic(|| self.value().fmt(f)) {
            Some(shown) => shown,
            None => f.write_str("a reason whose text panics"),
        }
    }
}

impl Crash {
    pub(crate) fn new(process: JobName, message: String, site: Option<PanicSite>) -> Crash {
        Crash(Arc::new(CrashParts {
            process,
            message,
            site,
        }))
    }

    /// The message of the panic.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Where it panicked. None if the panic was raised without the panic hook, or if the program has replaced the hook
    /// after its first runtime was built.
    pub fn site(&self) -> Option<&PanicSite> {
        self.0.site.as_ref()
    }

    /// The name and the spawn site of the process.
    pub fn process(&self) -> &JobName {
        &self.0.process
    }
}

impl Custom {
    /// The value, if it has the type `T`.
    pub fn downcast_ref<T: Any>(&self) -> Option<&T> {
        (*self.0).as_any().downcast_ref()
    }
}

impl PartialEq for Custom {
    fn eq(&self, other: &Custom) -> bool {
        self.0.equals((*other.0).as_any())
    }
}

impl Eq for Custom {}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl ExitReason {
    /// A reason of the program's own.
    ///
    /// ```
    /// use weald::process::ExitReason;
    ///
    /// #[derive(Debug, PartialEq, Eq)]
    /// struct OutOfPaper { tray: u32 }
    ///
    /// let reason = ExitReason::custom(OutOfPaper { tray: 2 });
    /// let ExitReason::Custom(custom) = &reason else { unreachable!() };
    /// assert_eq!(custom.downcast_ref(), Some(&OutOfPaper { tray: 2 }));
    /// assert_eq!(reason, ExitReason::custom(OutOfPaper { tray: 2 }));
    /// ```
    pub fn custom<T: Any + fmt::Debug + Eq + Send + Sync>(value: T) -> ExitReason {
        ExitReason::Custom(Custom(Arc::new(Guarded::new(value))))
    }

    /// Whether it is an orderly end: [`Normal`](ExitReason::Normal) or [`Shutdown`](ExitReason::Shutdown). A transient
    /// child that ends so is not restarted.
    pub fn is_orderly(&self) -> bool {
        matches!(self, ExitReason::Normal | ExitReason::Shutdown)
    }

    /// The reason in the error of a join; `cancelled` tells why a unit was cancelled.
    pub(crate) fn of(error: JoinError, cancelled: impl FnOnce() -> ExitReason) -> ExitReason {
        match error {
            JoinError::Panicked(panic) => ExitReason::Crash(Crash::new(
                panic.job().clone(),
                panic.message().to_owned(),
                panic.site().cloned(),
            )),
            _ => cancelled(),
        }
    }

    /// The reason of a unit that ended in this way. `asked` is the reason with which it was asked to
    /// end.
    pub(crate) fn of_ending(
        ending: Ending,
        asked: Option<ExitReason>,
        name: impl FnOnce() -> JobName,
    ) -> ExitReason {
        match ending {
            Ending::Returned => ExitReason::Normal,
            Ending::Panicked { message, site } => {
                ExitReason::Crash(Crash::new(name(), message.into(), site))
            }
            Ending::Gone => ExitReason::NoProcess,
            _ => asked.unwrap_or(ExitReason::Killed),
        }
    }
}

impl fmt::Display for ExitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExitReason::Normal => f.write_str("the process returned"),
            ExitReason::Shutdown => f.write_str("the process was told to shut down"),
            ExitReason::Killed => f.write_str("the process was killed"),
            ExitReason::NoProcess => f.write_str("there was no such process"),
            ExitReason::Custom(reason) => write!(f, "the process ended: {reason:?}"),
            ExitReason::Crash(crash) => {
                let (process, message) = (crash.process(), crash.message());
                match crash.site() {
                    Some(site) => write!(
                        f,
                        "the process crashed: {process} panicked at {site}: {message}"
                    ),
                    None => write!(f, "the process crashed: {process} panicked: {message}"),
                }
            }
        }
    }
}

impl std::error::Error for ExitReason {}
