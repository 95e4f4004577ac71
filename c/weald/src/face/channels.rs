//! Channels of messages, and a choice among them.

#![allow(unsafe_code)]

use std::{ffi::c_void, mem::MaybeUninit};

use weald::sync::{
    Event, after,
    channel::{self, Receiver, Sender},
    choose,
};

use super::processes::positive;
use crate::{
    codes::{Code, Failure, WEALD_ARGUMENT, WEALD_CLOSED, WEALD_NULL, failure},
    guard::{give, guard, needed},
    handles::{self, Object},
    message::{Bytes, Message},
    waits::{duration, timed_out, wait, wait_event_at_most},
};

/// A channel of messages, first in first out. Any number of threads and units may send and receive by one handle.
pub type ChannelHandle = u64;

/// The capacity of a channel whose sends never wait. cbindgen.toml has it for C.
///
/// cbindgen:ignore
pub const WEALD_UNBOUNDED: usize = usize::MAX;

struct ChannelObject {
    sender: Sender<Message>,
    receiver: Receiver<Message>,
}

impl Object for ChannelObject {
    fn name() -> &'static str {
        "channel"
    }

    fn released(&self) {
        self.sender.close();
    }
}

/// Creates a channel that holds up to `capacity` messages which are sent and not yet received: 0 for a rendezvous,
/// where a send waits for its receive; WEALD_UNBOUNDED for one whose sends never wait.
#[unsafe(no_mangle)]
pub extern "C" fn weald_channel_create(
    capacity: usize,
    channel: Option<&mut MaybeUninit<ChannelHandle>>,
) -> Code {
    guard(|| {
        let channel = needed(channel)?;
        let (sender, receiver) = match capacity {
            0 => channel::rendezvous(),
            WEALD_UNBOUNDED => channel::unbounded(),
            // 2^32 - 2 is the largest bound.
            bound if bound < 0xffff_ffff => channel::bounded(bound),
            _ => {
                let sentence = "a bounded channel holds at most 2^32 - 2 messages";
                return Err(failure(WEALD_ARGUMENT, sentence));
            }
        };
        channel.write(handles::add(ChannelObject { sender, receiver })?);
        Ok(())
    })
}

/// Sends a copy of `length` bytes at `data`, once there is room. WEALD_CLOSED if the channel is closed,
/// WEALD_TIMED_OUT if there was no room in time; then nothing was sent.
#[unsafe(no_mangle)]
pub extern "C" fn weald_channel_send(
    channel: ChannelHandle,
    data: *const c_void,
    length: usize,
    limit_ns: i64,
) -> Code {
    guard(|| {
        let channel = handles::get::<ChannelObject>(channel)?;
        let sends = channel.sender.send(Message::of_c(data, length)?);
        let sent = match duration(limit_ns) {
            None => wait(sends),
            Some(limit) => wait(sends.within(limit)).map_err(|_| timed_out())?,
        };
        sent.map_err(|_| closed())
    })
}

/// Receives the oldest message, once there is one. The bytes belong to the caller. WEALD_CLOSED if the channel is
/// closed and empty.
#[unsafe(no_mangle)]
pub extern "C" fn weald_channel_receive(
    channel: ChannelHandle,
    limit_ns: i64,
    message: Option<&mut MaybeUninit<Bytes>>,
) -> Code {
    guard(|| {
        let message = needed(message)?;
        let channel = handles::get::<ChannelObject>(channel)?;
        let received = match duration(limit_ns) {
            None => wait(channel.receiver.receive()),
            Some(limit) => {
                let within = channel.receiver.receive_within(limit);
                wait(within).map_err(|_| timed_out())?
            }
        };
        received.map_err(|_| closed())?.give(message);
        Ok(())
    })
}

/// Closes a channel: sends fail from now on, and receives when no message is left. Its handle is not released.
#[unsafe(no_mangle)]
pub extern "C" fn weald_channel_close(channel: ChannelHandle) -> Code {
    guard(|| {
        handles::get::<ChannelObject>(channel)?.sender.close();
        Ok(())
    })
}

/// How many messages a channel holds, and whether it is closed (1) or not (0). Either address may be null.
#[unsafe(no_mangle)]
pub extern "C" fn weald_channel_state(
    channel: ChannelHandle,
    length: Option<&mut MaybeUninit<usize>>,
    is_closed: Option<&mut MaybeUninit<i32>>,
) -> Code {
    guard(|| {
        let channel = handles::get::<ChannelObject>(channel)?;
        give(length, channel.sender.len());
        give(is_closed, i32::from(channel.sender.is_closed()));
        Ok(())
    })
}

fn closed() -> Failure {
    failure(WEALD_CLOSED, "the channel is closed")
}

/// A case of a choice that is a send: of `length` bytes at `data`, to `channel`.
pub const WEALD_CASE_SEND: i32 = 1;
/// A case that is a receive from `channel`, into `message`.
pub const WEALD_CASE_RECEIVE: i32 = 2;
/// A case that is chosen when `duration_ns` nanoseconds have passed.
pub const WEALD_CASE_AFTER: i32 = 3;
/// A case that is never chosen.
pub const WEALD_CASE_NEVER: i32 = 4;

/// One case of a choice. What its kind does not use is not looked at.
#[repr(C)]
pub struct SelectCase {
    /// One of WEALD_CASE_SEND, WEALD_CASE_RECEIVE, WEALD_CASE_AFTER, WEALD_CASE_NEVER.
    pub kind: i32,
    /// The channel of a send or a receive.
    pub channel: ChannelHandle,
    /// What a send sends: a copy of these bytes.
    pub data: *const c_void,
    /// How many bytes.
    pub length: usize,
    /// How long to wait.
    pub duration_ns: i64,
    /// What a receive that was chosen has received. It belongs to the caller.
    pub message: Bytes,
}

/// What a case that was chosen has done.
type Outcome = Result<Option<Message>, Failure>;

/// Waits until one of `count` cases is possible, and does it; exactly one is chosen, by chance if several are possible.
/// `chosen` gets its position, also if its channel was closed (WEALD_CLOSED). WEALD_TIMED_OUT if none was possible in
/// time; then nothing was sent or received.
#[unsafe(no_mangle)]
pub extern "C" fn weald_select(
    cases: *mut SelectCase,
    count: usize,
    limit_ns: i64,
    chosen: Option<&mut MaybeUninit<usize>>,
) -> Code {
    guard(|| {
        let chosen = needed(chosen)?;
        let cases = cases_of_c(cases, count)?;
        let channels = cases.iter().map(channel_of);
        let channels = channels.collect::<Result<Vec<_>, _>>()?;
        let events = cases.iter().zip(&channels).enumerate();
        let events =
            events.map(|(position, (case, channel))| event(position, case, channel.as_deref()));
        let events = events.collect::<Result<Vec<_>, _>>()?;
        let (position, outcome) = wait_event_at_most(choose(events), limit_ns)?;
        chosen.write(position);
        if let Some(message) = outcome? {
            cases[position].message = message.into_bytes();
        }
        Ok(())
    })
}

fn channel_of(case: &SelectCase) -> Result<Option<std::sync::Arc<ChannelObject>>, Failure> {
    match case.kind {
        WEALD_CASE_SEND | WEALD_CASE_RECEIVE => handles::get(case.channel).map(Some),
        WEALD_CASE_AFTER | WEALD_CASE_NEVER => Ok(None),
        kind => Err(failure(
            WEALD_ARGUMENT,
            format!("there is no case of the kind {kind}"),
        )),
    }
}

fn event<'a>(
    position: usize,
    case: &SelectCase,
    channel: Option<&'a ChannelObject>,
) -> Result<weald::sync::Boxed<'a, (usize, Outcome)>, Failure> {
    let Some(channel) = channel else {
        return match case.kind {
            WEALD_CASE_AFTER => {
                let passes = after(positive(case.duration_ns)?);
                Ok(passes.wrap(move |()| (position, Ok(None))).boxed())
            }
            _ => Ok(weald::sync::never().boxed()),
        };
    };
    if case.kind == WEALD_CASE_RECEIVE {
        let receives = channel.receiver.receive();
        let receives = receives.wrap(move |received| {
            let received = received.map(Some);
            (position, received.map_err(|_| closed()))
        });
        return Ok(receives.boxed());
    }
    let sends = channel.sender.send(Message::of_c(case.data, case.length)?);
    let sends = sends.wrap(move |sent| (position, sent.map(|()| None).map_err(|_| closed())));
    Ok(sends.boxed())
}

/// The cases that C passes.
fn cases_of_c<'a>(cases: *mut SelectCase, count: usize) -> Result<&'a mut [SelectCase], Failure> {
    match (cases.is_null(), count) {
        (_, 0) => Ok(&mut []),
        (true, _) => Err(failure(WEALD_NULL, "the address of the cases is null")),
        (false, _) if count < isize::MAX as usize / size_of::<SelectCase>() => {
            // SAFETY: *valid* (see `face`).
            Ok(unsafe { std::slice::from_raw_parts_mut(cases, count) })
        }
        _ => Err(failure(WEALD_ARGUMENT, "no memory has so many cases")),
    }
}
