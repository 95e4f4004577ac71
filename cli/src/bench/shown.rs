//! What a bench prints while it runs: the machine, the rows in one of three forms, and the end.

use std::time::Duration;

use weald_lab::alternate::{RowResult, TIME_IS_OVER, Turn};
use weald_lab::bench::Listener;
use weald_lab::error::Error;
use weald_lab::processor_time::{self, ProcessorTime};
use weald_lab::{compare, glance, machine, record, table};

use super::page::Page;
use crate::output::{complain, print};
use crate::progress::{Progress, about};

/// The form of the results on stdout.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A line for each of a dozen figures, with a verdict.
    Table,
    /// Each row with the figures of all systems.
    Rows,
    /// A JSON record for each figure, and nothing else: records are for tools.
    Records,
}

/// Prints rows, shows progress and keeps the page up to date while the bench runs.
pub(super) struct Shown<'a> {
    progress: &'a Progress,
    form: Form,
    page: Page<'a>,
    begun: Option<ProcessorTime>,
    /// The workload that was explained last.
    workload: &'static str,
}

/// How long the machine is observed before anything is measured.
const OBSERVED: Duration = Duration::from_millis(200);

impl<'a> Shown<'a> {
    pub(super) fn new(progress: &'a Progress, form: Form, page: Page<'a>) -> Self {
        Self {
            progress,
            form,
            page,
            begun: ProcessorTime::now(),
            workload: "",
        }
    }

    /// Describes the machine and whether it is busy, above its figures.
    pub(super) fn heading(&mut self) -> Result<(), Error> {
        if self.form == Form::Records {
            return Ok(());
        }
        #[allow(
            clippy::disallowed_methods,
            reason = "no worker runs here, and the time is what is observed"
        )]
        std::thread::sleep(OBSERVED);
        let text = format!("{}\n", machine::text());
        let busy = self.busy().map_or_else(String::new, |busy| busy + "\n\n");
        let explained = match self.form {
            Form::Rows => table::explanation(),
            Form::Table | Form::Records => String::new(),
        };
        self.begun = ProcessorTime::now();
        self.progress
            .hide_while(|| print(&format!("{text}{busy}{explained}")))
    }

    /// The sentence for a machine on which much else has run since the bench began.
    fn busy(&self) -> Option<String> {
        processor_time::sentence(ProcessorTime::now()?.others_since(self.begun.as_ref()?))
    }

    /// Prints what the rows add up to, and finishes the page.
    pub(super) fn end(&mut self, results: &[RowResult]) -> Result<(), Error> {
        let busy = self.busy();
        self.page.end(results, busy.as_deref())?;
        match self.form {
            Form::Records => return Ok(()),
            Form::Table => print(&glance::legend())?,
            Form::Rows => print(&table::closing(results))?,
        }
        let cells = results.iter().flat_map(|result| &result.cells);
        let left_out = cells.filter(|cell| cell.trouble.as_deref() == Some(TIME_IS_OVER));
        if left_out.count() > 0 {
            print(
                "The time was over before all rows were measured; `--within 600` gives it ten minutes.\n",
            )?;
        }
        busy.map_or(Ok(()), |busy| print(&format!("{busy}\n")))
    }

    fn table(&mut self, rows: &[RowResult]) -> Result<(), Error> {
        let is_first = self.workload.is_empty();
        if let Some(row) = rows.first().filter(|_| is_first) {
            self.workload = row.row.workload.name;
            print(&glance::heading())?;
        }
        rows.iter().try_for_each(|row| print(&glance::text(row)))
    }

    fn rows(&mut self, rows: &[RowResult]) -> Result<(), Error> {
        for row in rows {
            let workload = row.row.workload;
            if workload.name != self.workload {
                self.workload = workload.name;
                print(&table::legend(workload))?;
            }
            print(&format!("{}\n", table::row(row)))?;
        }
        Ok(())
    }
}

fn records(rows: &[RowResult]) -> Result<(), Error> {
    for row in rows {
        for cell in row.cells.iter().filter(|cell| cell.trouble.is_some()) {
            let trouble = cell.trouble.as_deref().unwrap_or_default();
            let (name, params, lane) =
                (row.row.workload.name, &row.row.params, compare::label(cell));
            complain(&format!("{name} {params}, {lane}: {trouble}"));
        }
        let lines: String = record::records(row)
            .map(|line| line.line() + "\n")
            .collect();
        print(&lines)?;
    }
    Ok(())
}

impl Listener for Shown<'_> {
    fn planned(&mut self, children: usize, estimate: Duration) -> Result<(), Error> {
        self.progress.planned(children);
        if self.form != Form::Rows {
            return Ok(());
        }
        let (progress, about) = (self.progress, about(estimate));
        progress.hide_while(|| {
            print(&format!(
                "It will take {about}, or longer on a slow machine.\n\n"
            ))
        })
    }

    fn turn(&mut self, turn: Turn<'_>) -> Result<(), Error> {
        self.progress.turn(turn);
        Ok(())
    }

    fn finished(&mut self, results: &[RowResult], from: usize) -> Result<(), Error> {
        self.page.write(results, self.busy().as_deref())?;
        let progress = self.progress;
        let rows = &results[from..];
        progress.hide_while(|| match self.form {
            Form::Records => records(rows),
            Form::Table => self.table(rows),
            Form::Rows => self.rows(rows),
        })
    }
}
