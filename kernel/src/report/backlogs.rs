//! Reports of queues that grow.

use std::time::Duration;

use weald_sync::backlog::LongChannel;

use super::{JobName, LateName, ReportKind, ReportOrigin, make, of_job, of_job_late};

/// An age that is less says nothing.
const LEAST_AGE: Duration = Duration::from_millis(1);

/// The receiver of a job's mailbox found more messages than `mailbox_mark`, for the first time. `waited`: how long
/// the oldest one has waited, at least, if that is known.
pub(crate) fn long_mailbox(
    named: &JobName,
    messages: usize,
    mark: usize,
    waited: Option<Duration>,
) {
    of_job(ReportKind::LongMailbox { messages }, named, || {
        let oldest = oldest(waited);
        format!(
            "{named} found {messages} messages in its mailbox, more than the mark of {mark}{oldest}: its senders are faster. \
             Let them wait for answers or use a bounded channel, or raise Builder::mailbox_mark. It is not reported \
             again."
        )
    });
}

/// For the first time, a sample has estimated that a job has more messages than `mailbox_mark`, and has taken none of
/// them for `waited`.
pub(crate) fn unread_mailbox(named: LateName, messages: usize, mark: usize, waited: Duration) {
    of_job_late(ReportKind::LongMailbox { messages }, named, move |named| {
        format!(
            "{named} has not looked into its mailbox for {waited:.1?}, and got some {messages} messages meanwhile, more \
             than the mark of {mark}. It waits for something else, blocks or never receives: let it receive, drop its \
             mailbox, or raise Builder::mailbox_mark. It is not reported again."
        )
    });
}

/// A channel has more values than `mailbox_mark`, for the first time.
pub(crate) fn long_channel(channel: &LongChannel, mark: usize) {
    let (values, oldest) = (channel.values, oldest(Some(channel.waited)));
    let origin = ReportOrigin::Site(channel.site);
    make(ReportKind::LongChannel { values }, origin, None, || {
        format!(
            "{channel} holds {values} values, more than the mark of {mark}{oldest}: its senders are faster. Give it a \
             bound, or raise Builder::mailbox_mark. It is not reported again."
        )
    });
}

/// The part of a sentence that tells how long the oldest of the messages or values has waited.
fn oldest(waited: Option<Duration>) -> String {
    let waited = waited.filter(|waited| *waited >= LEAST_AGE);
    let oldest = waited.map(|waited| format!(", the oldest for at least {waited:.1?}"));
    oldest.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_that_says_nothing_is_left_out() {
        assert_eq!(oldest(None), "");
        assert_eq!(oldest(Some(Duration::ZERO)), "");
        let waited = oldest(Some(Duration::from_millis(20)));
        assert_eq!(waited, ", the oldest for at least 20.0ms");
    }
}
