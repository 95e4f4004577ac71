//! A request that is in flight: from the call of the service until hyper drops the response's body.

use std::{sync::Arc, task::Context};

use http::{Method, Request};

use crate::{activity::Activity, ended::Unfinished, piece::Pace, reading::Reading};

/// A guard: its request is in flight until the guard is dropped.
pub(crate) struct RequestGuard {
    activity: Arc<Activity>,
    /// The reading of the request's body, if it has one.
    reading: Option<Arc<Reading>>,
    /// Whether only the head of the response is sent.
    is_head: bool,
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
            is_head: *request.method() == Method::HEAD,
        }
    }

    /// The reading of the request's body, if it has one.
    pub(crate) fn reading(&self) -> Option<&Arc<Reading>> {
        self.reading.as_ref()
    }

    /// Whether only the head of the response is sent.
    pub(crate) fn is_head(&self) -> bool {
        self.is_head
    }

    /// How far responses are ahead of the writes.
    pub(crate) fn pace(&self) -> &Pace {
        &self.activity.pace
    }

    /// The request, for a report.
    pub(crate) fn describe(&self) -> Unfinished {
        self.activity.describe()
    }

    /// Whether the connection is to close after this request.
    pub(crate) fn is_last(&self) -> bool {
        self.activity.is_draining()
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
