//! How reports name an operation on a file or a host name, and the reports about those that do not return.
//!
//! The name is made for each operation and read by few, so making it allocates nothing but what the job's name needs.

use std::{fmt, panic::Location, path::Path, sync::Arc, time::Duration};

use crate::report::{
    JobName, LateName, LateNames, ReportKind, ReportOrigin, make, of_program_late,
};

/// A call of the system that may block for ever, as reports name it: what it does, to which file or host name, and for
/// which job.
#[derive(Clone, Debug)]
pub struct OperationName {
    subject: Subject,
    /// The line that asked, for what was asked outside of jobs.
    site: &'static Location<'static>,
    asked_by: Option<JobName>,
}

#[derive(Clone, Debug)]
enum Subject {
    File { act: &'static str, path: Arc<Path> },
    Host(Arc<str>),
}

impl OperationName {
    /// An operation on the file at `path`; `act` is a participle, such as `reading`. Outside of jobs it is named by the
    /// caller's line.
    #[track_caller]
    pub fn file(act: &'static str, path: Arc<Path>) -> OperationName {
        OperationName {
            subject: Subject::File { act, path },
            site: Location::caller(),
            asked_by: None,
        }
    }

    /// A lookup of the addresses of `host`. Outside of jobs it is named by the caller's line.
    #[track_caller]
    pub fn lookup(host: Arc<str>) -> OperationName {
        OperationName {
            subject: Subject::Host(host),
            site: Location::caller(),
            asked_by: None,
        }
    }

    /// Names another line than the caller's, for code that knows which one asked.
    #[must_use]
    pub fn asked_at(mut self, site: &'static Location<'static>) -> OperationName {
        self.site = site;
        self
    }

    pub(crate) fn is_lookup(&self) -> bool {
        matches!(self.subject, Subject::Host(_))
    }

    /// Notes the job that asked.
    pub(crate) fn asked_by(mut self, job: Option<JobName>) -> OperationName {
        self.asked_by = job;
        self
    }

    /// Which thread asked, if no job did.
    fn outside_of_jobs(&self) -> String {
        format!("a thread outside of any job, at {},", self.site)
    }

    /// The operation as the name of a job, for a report about several holders of threads.
    pub(crate) fn as_job(&self) -> LateName {
        let asked_by = self.asked_by.as_ref();
        let name = match asked_by.and_then(|job| job.name.as_ref()) {
            Some(job) => format!("{self} for {job}"),
            None => self.to_string(),
        };
        let named = JobName {
            name: Some(name),
            type_name: asked_by.map_or("", |job| job.type_name),
            site: asked_by.map_or(self.site, |job| job.site),
            waits_for: None,
        };
        LateName::new(named, None)
    }
}

impl fmt::Display for OperationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subject {
            Subject::File { act, path } => write!(f, "{act} {}", path.display()),
            Subject::Host(host) => write!(f, "looking up {host}"),
        }
    }
}

/// An operation that somebody waits for has held its thread for long.
pub(crate) fn held_operation(operation: &OperationName, held: Duration) {
    let remedy = match operation.is_lookup() {
        true => "check the name server, and set a deadline",
        false => {
            "if it is a FIFO, nobody has opened its other end; else check the device or the server"
        }
    };
    lasting_operation(
        operation,
        held,
        format_args!("asked for it. It holds a thread of its own, and others go on: {remedy}."),
    );
}

/// An operation has held its thread for long, and its future was dropped.
pub(crate) fn abandoned_operation(operation: &OperationName, held: Duration) {
    let ending = format_args!(
        "asked for it, and nobody waits for it any longer. It holds a thread of its own until it returns, and others go \
         on."
    );
    lasting_operation(operation, held, ending);
}

/// `ending`: what follows the name of the one that asked.
fn lasting_operation(operation: &OperationName, held: Duration, ending: fmt::Arguments<'_>) {
    let held_ms = u64::try_from(held.as_millis()).unwrap_or(u64::MAX);
    let asked_by = operation.asked_by.as_ref();
    let origin = ReportOrigin::Site(asked_by.map_or(operation.site, |job| job.site));
    make(
        ReportKind::HeldOperation { held_ms },
        origin,
        asked_by,
        || {
            let asked_by = asked_by.map_or_else(|| operation.outside_of_jobs(), JobName::to_string);
            format!("{operation} has not returned for {held:.1?}; {asked_by} {ending}")
        },
    );
}

/// All threads are held by operations that do not return: further ones are errors.
pub(crate) fn operations_hold_threads(bound: usize, queued: usize, running: LateNames) {
    of_program_late(
        ReportKind::OperationsHoldThreads { bound, queued },
        move || {
            format!(
                "{} operations on files or host names hold all threads that they may ({bound}), and none has returned for a \
             second, so further ones are errors ({queued} now); those that hold the threads: {}. Raise Builder::held_operations, or \
             find out what they wait for.",
                running.all(),
                running.now(),
            )
        },
    );
}
