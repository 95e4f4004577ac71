//! The queue of reports: bounded, and limited in rate for each kind, origin and audience.
//!
//! Invariants:
//! - In one second at most [`MOST_A_SECOND`] reports of one kind from one origin for one audience enter the queue, and
//!   at most [`CAPACITY`] reports are in it.
//! - Every report either enters the queue or is counted. Every count enters the queue too, at the latest a second after
//!   its first report, if [`ReportQueue::pop`] is called then ([`ReportQueue::next_count`] returns when).
//! - No subscriber is dropped in here: each leaves with an entry.

use std::{
    collections::{HashMap, VecDeque},
    mem::{self, Discriminant},
    time::{Duration, Instant},
};

use crate::report::{
    data::{LeftOut, Report, ReportKind, ReportOrigin},
    subscriber::{Audience, AudienceId},
};

/// How many reports of one kind from one origin for one audience are made in [`WINDOW`].
const MOST_A_SECOND: u32 = 10;
/// The time to which the limit applies.
const WINDOW: Duration = Duration::from_secs(1);
/// How many reports may be in the queue: those of a hundred origins, while a subscriber blocks.
const CAPACITY: usize = 1024;

/// What the reporting thread takes from the queue.
pub(super) enum QueueEntry {
    Report(Report),
    LeftOut(LeftOut),
    /// Everything that was queued before the flush of this number was made has been handled.
    Flush(u64),
}

/// The reports that have a limit together: those of one kind from one origin for one audience.
pub(super) type ReportClass<'a> = (&'a ReportKind, &'a ReportOrigin, AudienceId);

type Key = (Discriminant<ReportKind>, ReportOrigin, AudienceId);

/// The reports of one kind from one origin for one audience in the current second.
struct Window {
    begun: Instant,
    passed: u32,
    left_out: LeftOut,
    /// When the count of the reports left out must enter the queue; none if none was left out.
    count_at: Option<Instant>,
}

impl Window {
    fn leave_out(&mut self) {
        self.left_out.count += 1;
        self.count_at.get_or_insert(self.begun + WINDOW);
    }

    /// When the window is due: its count must enter the queue, or it ends.
    fn due_at(&self) -> Instant {
        self.count_at.unwrap_or(self.begun + WINDOW)
    }

    /// The count as an entry, if it is not zero; it begins anew.
    fn take_count(&mut self) -> Option<QueueEntry> {
        self.count_at.take()?;
        let left_out = &mut self.left_out;
        Some(QueueEntry::LeftOut(LeftOut {
            kind: left_out.kind.clone(),
            origin: left_out.origin.clone(),
            audience: left_out.audience.clone(),
            count: mem::take(&mut left_out.count),
        }))
    }
}

/// See the head of the file.
#[derive(Default)]
pub(super) struct ReportQueue {
    entries: VecDeque<QueueEntry>,
    /// How many of the entries are reports.
    reports: usize,
    windows: HashMap<Key, Window>,
    /// Before this time no window is due.
    next_due: Option<Instant>,
}

impl ReportQueue {
    /// Whether a report of the calling thread is within the limit of its class. If not, it is counted.
    pub(super) fn admit(&mut self, class: ReportClass<'_>, now: Instant) -> bool {
        let window = self.window(class, now);
        if now.saturating_duration_since(window.begun) >= WINDOW {
            window.begun = now;
            window.passed = 0;
        }
        let is_within = window.passed < MOST_A_SECOND;
        match is_within {
            true => window.passed += 1,
            false => window.leave_out(),
        }
        is_within
    }

    /// Queues a report of the calling thread that was admitted; returns it if the queue is full. It is counted then.
    pub(super) fn push_report(&mut self, report: Report, now: Instant) -> Option<Report> {
        if self.reports < CAPACITY {
            self.reports += 1;
            self.entries.push_back(QueueEntry::Report(report));
            return None;
        }
        let key = (&report.kind, &report.origin, AudienceId::here());
        self.window(key, now).leave_out();
        Some(report)
    }

    /// Queues an entry that is not a report.
    pub(super) fn push(&mut self, entry: QueueEntry) {
        self.entries.push_back(entry);
    }

    /// Queues all counts, even those whose second is not over.
    pub(super) fn push_counts(&mut self) {
        let counts = self.windows.values_mut().filter_map(Window::take_count);
        self.entries.extend(counts);
    }

    /// The next entry.
    pub(super) fn pop(&mut self, now: Instant) -> Option<QueueEntry> {
        if self.next_due.is_some_and(|due_at| due_at <= now) {
            self.end_windows(now);
        }
        let entry = self.entries.pop_front();
        if let Some(QueueEntry::Report(_)) = entry {
            self.reports -= 1;
        }
        entry
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// When the next count may enter the queue.
    pub(super) fn next_count(&self) -> Option<Instant> {
        self.next_due
    }

    fn window(&mut self, (kind, origin, audience): ReportClass<'_>, now: Instant) -> &mut Window {
        let due_at = now + WINDOW;
        let next_due = &mut self.next_due;
        let key = (mem::discriminant(kind), origin.clone(), audience);
        self.windows.entry(key).or_insert_with(|| {
            *next_due = Some(next_due.map_or(due_at, |earlier| earlier.min(due_at)));
            Window {
                begun: now,
                passed: 0,
                left_out: LeftOut {
                    kind: kind.clone(),
                    origin: origin.clone(),
                    audience: Audience::here(),
                    count: 0,
                },
                count_at: None,
            }
        })
    }

    /// Queues the counts that are due, and ends the windows that are over.
    fn end_windows(&mut self, now: Instant) {
        for window in self.windows.values_mut() {
            if window.due_at() <= now {
                self.entries.extend(window.take_count());
            }
        }
        let is_over = |window: &Window| window.count_at.is_none() && window.due_at() <= now;
        let over = self.windows.extract_if(|_, window| is_over(window));
        // A count of zero is not reported; it becomes an entry only so that its subscriber is dropped elsewhere.
        self.entries
            .extend(over.map(|(_, window)| QueueEntry::LeftOut(window.left_out)));
        self.next_due = self.windows.values().map(Window::due_at).min();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::data::Details;

    fn report(origin: &ReportOrigin) -> Report {
        Report {
            kind: ReportKind::NoThread,
            origin: origin.clone(),
            audience: Audience::here(),
            details: Box::new(|| Details::new(None, String::new())),
        }
    }

    fn callback(number: usize) -> ReportOrigin {
        ReportOrigin::Callback(number.to_string(), std::panic::Location::caller())
    }

    /// Makes a report; whether it is within the limit.
    fn make(queue: &mut ReportQueue, origin: &ReportOrigin, now: Instant) -> bool {
        let admitted = queue.admit((&ReportKind::NoThread, origin, AudienceId::PROGRAM), now);
        if admitted {
            queue.push_report(report(origin), now);
        }
        admitted
    }

    /// Takes all entries; how many reports there were, and the counts that are not zero.
    fn take(queue: &mut ReportQueue, now: Instant) -> (usize, Vec<u64>) {
        let (mut reports, mut counts) = (0, Vec::new());
        while let Some(entry) = queue.pop(now) {
            match entry {
                QueueEntry::Report(_) => reports += 1,
                QueueEntry::LeftOut(left_out) => counts.push(left_out.count),
                QueueEntry::Flush(_) => {}
            }
        }
        counts.retain(|count| *count > 0);
        (reports, counts)
    }

    #[test]
    fn in_each_second_ten_pass_and_the_others_are_counted_when_it_is_over() {
        let (mut queue, begin) = (ReportQueue::default(), Instant::now());
        for round in 0..3 {
            let now = begin + round * WINDOW;
            let passed = (0..1000).filter(|_| make(&mut queue, &callback(1), now));
            assert_eq!(passed.count(), 10);
            assert_eq!(queue.next_count(), Some(now + WINDOW));
            assert_eq!(take(&mut queue, now), (10, vec![]));
            let over = queue.next_count().unwrap();
            assert_eq!(take(&mut queue, over), (0, vec![990]));
        }
        assert_eq!((queue.next_count(), queue.windows.len()), (None, 0));
    }

    #[test]
    fn each_kind_and_each_origin_has_a_limit_of_its_own() {
        let (mut queue, now) = (ReportQueue::default(), Instant::now());
        while make(&mut queue, &callback(1), now) {}
        assert!(make(&mut queue, &callback(2), now));
        let mut admit = |kind| queue.admit((&kind, &callback(1), AudienceId::PROGRAM), now);
        assert!(admit(ReportKind::NoStack));
        // The numbers of a report do not make it one of another kind.
        let stuck = |stuck_ms| ReportKind::Stuck { stuck_ms };
        let passed = (0..20).filter(|n| admit(stuck(*n)));
        assert_eq!(passed.count(), 10);
    }

    #[test]
    fn a_flood_that_nobody_takes_is_counted_once() {
        let (mut queue, begin) = (ReportQueue::default(), Instant::now());
        let mut passed = 0;
        for tenth in 0..50 {
            let now = begin + tenth * WINDOW / 10;
            passed += (0..100)
                .filter(|_| make(&mut queue, &callback(1), now))
                .count();
        }
        assert_eq!(passed, 50);
        assert_eq!(take(&mut queue, begin + 5 * WINDOW), (50, vec![4950]));
    }

    #[test]
    fn a_flood_does_not_delay_its_count() {
        let (mut queue, begin) = (ReportQueue::default(), Instant::now());
        let mut counts = Vec::new();
        for tenth in 0..=30 {
            let now = begin + tenth * WINDOW / 10;
            // The report comes before the window is due, and begins a new second.
            (0..20).for_each(|_| _ = make(&mut queue, &callback(1), now));
            counts.extend(take(&mut queue, now).1);
        }
        assert_eq!(counts.len(), 3, "{counts:?}");
    }

    #[test]
    fn a_full_queue_counts_what_it_refuses() {
        let (mut queue, now) = (ReportQueue::default(), Instant::now());
        let made = 2 * CAPACITY;
        (0..made).for_each(|n| assert!(make(&mut queue, &callback(n), now)));
        assert_eq!(take(&mut queue, now), (CAPACITY, vec![]));
        let (reports, counts) = take(&mut queue, now + WINDOW);
        assert_eq!((reports, counts), (0, vec![1; made - CAPACITY]));
        assert!(make(&mut queue, &callback(0), now + WINDOW));
    }

    #[test]
    fn a_flush_counts_at_once_and_does_not_lift_the_limit() {
        let (mut queue, now) = (ReportQueue::default(), Instant::now());
        (0..15).for_each(|_| _ = make(&mut queue, &callback(1), now));
        queue.push_counts();
        assert_eq!(take(&mut queue, now), (10, vec![5]));
        assert!(!make(&mut queue, &callback(1), now));
        assert_eq!(take(&mut queue, now + WINDOW), (0, vec![1]));
        queue.push_counts();
        assert!(queue.is_empty());
    }
}
