//! The measured systems: Weald, the limit programs and the rivals, and how their measured programs are called for a
//! row.

use std::path::Path;
use std::time::Duration;

use crate::build_info::version;
use crate::child::{Failure, Invocation, first_line};
use crate::error::Error;
use crate::limit;
use crate::params::Params;
use crate::plan::Row;

/// The name of the system that the others are compared with.
pub const WEALD: &str = "weald";
/// Weald through its interface for C, which is measured as rivals are.
pub const WEALD_C: &str = "weald-c";
/// Weald as its users build it, by cargo's own release profile; measured as rivals are.
pub const WEALD_DEFAULT: &str = "weald-default";
/// Weald in other forms: shown beside it, and never the best rival.
pub(crate) const FORMS: [&str; 2] = [WEALD_C, WEALD_DEFAULT];

/// How long a program may take to print its version.
const VERSION_LIMIT: Duration = Duration::from_secs(30);

/// One measured system.
#[derive(Clone, Debug)]
pub struct System {
    /// The name in every record: `weald`, `limit`, or the rival's.
    pub name: String,
    /// What the program prints for `--version`.
    pub version: String,
    /// The program with the arguments that precede the workload; may hold `{workers}`.
    pub program: Invocation,
    /// The workloads that it can run; `None` means all.
    pub workloads: Option<Vec<String>>,
    /// The largest size at which it can run a workload.
    pub max_n: Vec<(String, u64)>,
    /// What a reader should know about it.
    pub note: String,
}

/// Whether a system takes part in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// It runs.
    Runs,
    /// It has no program for this workload; nothing is reported.
    Absent,
    /// It could run, but not at this size, as the sentence says.
    TooLarge(String),
}

impl System {
    /// Weald itself: this very program, called with `bench-one`.
    #[must_use]
    pub fn weald(program: &Path) -> Self {
        let argv = vec![
            program.to_string_lossy().into_owned(),
            "bench-one".to_owned(),
        ];
        Self {
            name: WEALD.to_owned(),
            version: version(),
            program: Invocation {
                argv,
                ..Invocation::default()
            },
            workloads: None,
            max_n: Vec::new(),
            note: String::new(),
        }
    }

    /// The limit programs: this very program, called with `bench-one limit`.
    #[must_use]
    pub fn limit(program: &Path) -> Self {
        let mut system = Self::weald(program);
        limit::NAME.clone_into(&mut system.name);
        system.program.argv.push(limit::NAME.to_owned());
        let workloads = limit::ALL.iter().map(|limit| limit.workload.to_owned());
        system.workloads = Some(workloads.collect());
        system.note = "The least code that does a row's work and promises nothing.".to_owned();
        system
    }

    /// Asks a rival's program for its version.
    pub fn ask_version(&mut self) -> Result<(), Failure> {
        let mut call = self.call(1);
        call.argv.push("--version".to_owned());
        self.version = first_line(&call, VERSION_LIMIT)?;
        Ok(())
    }

    /// Whether this is Weald.
    #[must_use]
    pub fn is_weald(&self) -> bool {
        self.name == WEALD
    }

    /// The limit program that this system is for a row; the outer `None` says that it is no limit program.
    fn limit_of(&self, row: &Row) -> Option<Option<&'static limit::Limit>> {
        (self.name == limit::NAME).then(|| limit::find(row.workload.name))
    }

    /// Of these numbers of workers, those that this system runs a row with: a limit program that uses one thread
    /// anyway runs once.
    #[must_use]
    pub fn lanes<'a>(&self, row: &Row, workers: &'a [usize]) -> &'a [usize] {
        match self.limit_of(row) {
            Some(Some(limit)) if !limit.is_parallel => &workers[..workers.len().min(1)],
            _ => workers,
        }
    }

    /// Whether this system takes part in a row, and if not, why.
    #[must_use]
    pub fn part(&self, row: &Row) -> Part {
        let name = row.workload.name;
        let able = self
            .workloads
            .as_ref()
            .is_none_or(|known| known.iter().any(|k| k == name));
        let is_taken = self
            .limit_of(row)
            .is_none_or(|limit| limit.is_some_and(|limit| limit.takes(&row.params)));
        if !able || !is_taken || (row.only_weald && !self.is_weald()) {
            return Part::Absent;
        }
        let limit = self
            .max_n
            .iter()
            .find(|(workload, _)| workload == name)
            .map(|(_, n)| *n);
        match (limit, row.workload.size(&row.params)) {
            (Some(limit), Some(size)) if size > limit => {
                Part::TooLarge(format!("Not run: its limit for {name} is {limit}."))
            }
            _ => Part::Runs,
        }
    }

    /// The call that measures one row with this many workers.
    #[must_use]
    pub fn invocation(&self, row: &Row, workers: usize) -> Invocation {
        let mut call = self.call(workers);
        call.argv.push(row.workload.name.to_owned());
        call.argv.extend(row.params.words());
        call.argv.push(format!("workers={workers}"));
        call.environment.extend(environment(&row.params));
        call
    }

    fn call(&self, workers: usize) -> Invocation {
        let mut call = self.program.clone();
        for word in &mut call.argv {
            *word = word.replace("{workers}", &workers.to_string());
        }
        call
    }
}

/// Huge pages are switched before a program starts, so the row's key becomes a variable.
fn environment(params: &Params) -> Option<(String, String)> {
    let switched = params.get("huge").filter(|value| *value == "off")?;
    Some(("WEALD_HUGE_PAGES".to_owned(), switched.to_owned()))
}

/// The running program, which is also Weald's measured program.
pub fn this_program() -> Result<std::path::PathBuf, Error> {
    std::env::current_exe().map_err(Error::file("find", "/proc/self/exe"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Row;

    fn rival() -> System {
        let argv = ["tool", "+S", "{workers}"].map(str::to_owned).to_vec();
        System {
            name: "tool".to_owned(),
            program: Invocation {
                argv,
                ..Invocation::default()
            },
            workloads: Some(vec!["spawn".to_owned()]),
            max_n: vec![("spawn".to_owned(), 1000)],
            ..System::weald(Path::new("x"))
        }
    }

    fn spawn_row(n: usize) -> Row {
        Row::new("spawn", Params::default().with("n", n))
    }

    #[test]
    fn workers_are_filled_in_and_keys_follow() {
        let call = rival().invocation(&spawn_row(10), 2);
        assert_eq!(call.argv, ["tool", "+S", "2", "spawn", "n=10", "workers=2"]);
        assert!(call.environment.is_empty());
    }

    #[test]
    fn huge_pages_are_a_variable_too() {
        let row = Row::new("spawn", Params::default().with("n", 1).with("huge", "off"));
        let call = System::weald(Path::new("w")).invocation(&row, 1);
        assert_eq!(
            call.environment,
            [("WEALD_HUGE_PAGES".to_owned(), "off".to_owned())]
        );
    }

    #[test]
    fn a_limit_program_runs_its_rows_once_unless_it_is_parallel() {
        let limit = System::limit(Path::new("w"));
        assert_eq!(limit.program.argv, ["w", "bench-one", "limit"]);
        let thread =
            |what: &str| Row::new("thread", Params::default().with("n", 1).with("what", what));
        assert_eq!(limit.part(&thread("yield")), Part::Runs);
        assert_eq!(limit.part(&thread("parked")), Part::Absent);
        let trim = Row::new("trim", Params::default().with("n", 1));
        assert_eq!(limit.part(&trim), Part::Absent);
        assert_eq!(limit.lanes(&spawn_row(1), &[1, 2]), [1]);
        let fib = Row::new("fib", Params::default().with("n", 1).with("forking", "yes"));
        assert_eq!(limit.lanes(&fib, &[1, 2]), [1, 2]);
        let weald = System::weald(Path::new("w"));
        assert_eq!(weald.lanes(&spawn_row(1), &[1, 2]), [1, 2]);
    }

    #[test]
    fn parts_follow_ability_and_size() {
        let rival = rival();
        assert_eq!(rival.part(&spawn_row(1000)), Part::Runs);
        assert!(matches!(rival.part(&spawn_row(1001)), Part::TooLarge(_)));
        let trim = Row::new("trim", Params::default().with("n", 1));
        assert_eq!(rival.part(&trim), Part::Absent);
        assert_eq!(System::weald(Path::new("w")).part(&trim), Part::Runs);
    }
}
