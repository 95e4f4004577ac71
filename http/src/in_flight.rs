//! A request that is in flight: from the call of the service until hyper drops the response's body.

use std::{sync::Arc, task::Context};

use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Version, header};
use hyper::upgrade::OnUpgrade;

use crate::{
    activity::Activity,
    ended::Unfinished,
    piece::Pace,
    reading::{Dropped, Reading},
};

/// A guard: its request is in flight until the guard is dropped.
pub(crate) struct RequestGuard {
    activity: Arc<Activity>,
    /// The reading of the request's body, if it has one.
    reading: Option<Arc<Reading>>,
    asked: Asked,
    /// Whether the request asks for another protocol, and its client can be told that it is granted.
    asks_protocol: bool,
    /// Whether the client wants the connection to end after the answer.
    closes: bool,
    /// Whether only the end of the connection can tell the client where a body of unknown length ends.
    is_old: bool,
}

/// Whether a request asks for the end of the connection after the answer.
fn closes(headers: &HeaderMap) -> bool {
    let mut all = headers.get_all(header::CONNECTION).iter();
    all.any(says_close)
}

pub(crate) fn says_close(value: &HeaderValue) -> bool {
    let mut options = value.as_bytes().split(|byte| *byte == b',');
    options.any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"))
}

/// What a request asks for, as far as its answer is another one than that to GET.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Only the head of the response is sent.
    Head,
    /// After a response that grants it, the connection is a tunnel.
    Tunnel,
    Other,
}

impl Asked {
    fn by(method: &Method) -> Asked {
        match *method {
            Method::HEAD => Asked::Head,
            Method::CONNECT => Asked::Tunnel,
            _ => Asked::Other,
        }
    }

    /// Whether the connection speaks HTTP no more after an answer of this status.
    pub(crate) fn is_granted_by(self, status: StatusCode) -> bool {
        match self {
            Asked::Tunnel => status.is_success(),
            Asked::Head | Asked::Other => status == StatusCode::SWITCHING_PROTOCOLS,
        }
    }
}

impl RequestGuard {
    /// `request` goes to the service.
    pub(crate) fn new<B: http_body::Body>(
        activity: &Arc<Activity>,
        request: &Request<B>,
    ) -> RequestGuard {
        RequestGuard {
            activity: activity.clone(),
            reading: activity.begin_request(request),
            asked: Asked::by(request.method()),
            // Hyper adds the extension, and few requests have any.
            asks_protocol: request.extensions().get::<OnUpgrade>().is_some(),
            closes: closes(request.headers()),
            is_old: request.version() < Version::HTTP_11,
        }
    }

    pub(crate) fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }

    /// Whether the connection may write the answer itself: it has read the whole request, and its client wants another
    /// answer after this one.
    pub(crate) fn may_stream(&self) -> bool {
        let is_whole = self.reading.is_none() && !self.asks_protocol;
        is_whole && !self.is_old && !self.closes
    }

    /// The reading of the request's body, if it has one.
    pub(crate) fn reading(&self) -> Option<&Arc<Reading>> {
        self.reading.as_ref()
    }

    pub(crate) fn asked(&self) -> Asked {
        self.asked
    }

    pub(crate) fn asks_protocol(&self) -> bool {
        self.asks_protocol
    }

    /// The head of the response tells no length of its body, which is not empty. A client that can tell the body's end
    /// only from that of the connection gets a reset if the body does not come to its end.
    pub(crate) fn has_no_length(&self) {
        if self.is_old {
            self.activity.order_reset();
        }
    }

    /// Whether the request has a body whose end the service has not seen.
    pub(crate) fn awaits_body(&self) -> bool {
        let is_open = |reading: &Arc<Reading>| !reading.has_ended();
        self.reading.as_ref().is_some_and(is_open)
    }

    /// Whether the request has a body that the service has dropped before its end.
    pub(crate) fn has_left_some(&self) -> bool {
        let is_left = |reading: &Arc<Reading>| reading.dropped_early() > Dropped::No;
        self.reading.as_ref().is_some_and(is_left)
    }

    /// How far responses are ahead of the writes.
    pub(crate) fn pace(&self) -> &Pace {
        &self.activity.pace
    }

    /// The request, for a report.
    pub(crate) fn describe(&self) -> Unfinished {
        self.activity.describe()
    }

    /// Whether the connection is to close after this request, or will because its body is malformed.
    pub(crate) fn is_last(&self) -> bool {
        let has_failed = |reading: &Arc<Reading>| reading.has_failed();
        self.activity.is_draining() || self.reading.as_ref().is_some_and(has_failed)
    }

    /// A poll with `cx` of the service's future or of its response's body has returned `Pending`.
    pub(crate) fn end_poll(&self, cx: &Context<'_>) {
        if let Some(reading) = &self.reading {
            reading.end_poll(cx.waker());
        }
    }

    /// The service has returned a response.
    pub(crate) fn answered(&self) {
        self.activity.answered();
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.activity.end_request();
    }
}
