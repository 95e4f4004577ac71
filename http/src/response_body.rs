//! The body of a response as hyper gets it: in pieces, of the length that the head tells, and with its request in
//! flight.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Buf;
use http::{HeaderMap, HeaderValue, Response, StatusCode, Version, header};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::{
    in_flight::{Asked, RequestGuard},
    piece::{self, Piece},
};

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Whether the cause of `error` is that the body of the request did not arrive as it should. Hyper's errors have other
/// causes too: a service may be a client of another server.
pub(crate) fn is_clients(error: &BoxError, in_flight: Option<&RequestGuard>) -> bool {
    let reading = in_flight.and_then(RequestGuard::reading);
    if !reading.is_some_and(|reading| reading.has_failed()) {
        return false;
    }
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&**error);
    while let Some(error) = cause {
        if error.is::<hyper::Error>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// What is known of a body before its first frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    /// The length that the head tells, or will once hyper has written it; later how much of it the service has yet to
    /// give.
    told: Option<u64>,
    /// The body's own length.
    exact: Option<u64>,
    is_end: bool,
}

/// Makes the response one that hyper sends as it is. Fails if the head tells another length than the body has: the
/// client would take the start of the next response for the rest of this one, or the rest of this one for the next.
/// Also fails if hyper would send no head at all. Runs user code.
pub(crate) fn prepare<B: Body>(
    response: &mut Response<Option<B>>,
    in_flight: &RequestGuard,
) -> Result<Known, &'static str> {
    let (status, asked) = (response.status(), in_flight.asked());
    if status.is_informational() && status != StatusCode::SWITCHING_PROTOCOLS {
        return Err("the status of its response is one that an answer must follow (1xx)");
    }
    if status == StatusCode::SWITCHING_PROTOCOLS && !in_flight.asks_protocol() {
        return Err(
            "the status of its response is 101, and the request asks for no other protocol",
        );
    }
    // Also if a proxy has copied that of its upstream server. Hyper sets it back for a client of HTTP/1.0.
    *response.version_mut() = Version::HTTP_11;
    // What follows a granted CONNECT is the tunnel (RFC 9110, 9.3.6).
    let is_without = asked == Asked::Tunnel && status.is_success() || has_no_length(status);
    if is_without {
        response.headers_mut().remove(header::CONTENT_LENGTH);
        response.headers_mut().remove(header::TRANSFER_ENCODING);
    }
    let told = told_length(response.headers())?;
    let mut known = known(response.body().as_ref(), told);
    let is_bodiless = is_without || status == StatusCode::NOT_MODIFIED;
    if is_bodiless || asked == Asked::Head {
        if asked != Asked::Head && known.exact != Some(0) {
            report_left_out(in_flight, status);
        }
        leave_body_out(response, known.exact, asked == Asked::Head);
        known = Known::NOTHING;
    } else if let (Some(told), Some(exact)) = (told, known.exact)
        && told != exact
    {
        return Err("the Content-Length of its response is not the length of the body");
    }
    Ok(known)
}

/// Whether no body follows the head of a response of this status, and the service must not tell a length (RFC 9110, 8.6
/// and 15.3.6). Hyper tells a client of a 205 that its length is 0, as it must.
fn has_no_length(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::SWITCHING_PROTOCOLS | StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT
    )
}

impl Known {
    pub(crate) const NOTHING: Known = Known {
        told: None,
        exact: Some(0),
        is_end: true,
    };

    /// Whether the head tells the body's length, or that there is none.
    pub(crate) fn tells_length(&self) -> bool {
        self.told.is_some() || self.is_end
    }
}

fn known<B: Body>(body: Option<&B>, told: Option<u64>) -> Known {
    let Some(body) = body else {
        return Known {
            told,
            ..Known::NOTHING
        };
    };
    let is_end = body.is_end_stream();
    let exact = body.size_hint().exact().or(is_end.then_some(0));
    Known {
        told: told.or(exact),
        exact,
        is_end,
    }
}

/// The client gets the head only. The answer to HEAD tells the length of the answer to GET, if it is known: a service
/// that answers HEAD without a body may have left out a body of any length.
#[cold]
fn leave_body_out<B>(response: &mut Response<Option<B>>, exact: Option<u64>, is_head: bool) {
    *response.body_mut() = None;
    let is_without = has_no_length(response.status());
    let headers = response.headers_mut();
    let told = [header::CONTENT_LENGTH, header::TRANSFER_ENCODING];
    if let Some(length) = exact.filter(|length| *length > 0)
        && is_head
        && !is_without
        && !told.iter().any(|name| headers.contains_key(name))
    {
        headers.insert(header::CONTENT_LENGTH, length.into());
    }
}

/// The service may not know that no client gets this body.
#[cold]
fn report_left_out(in_flight: &RequestGuard, status: StatusCode) {
    weald_kernel::report_failure(|| {
        let request = in_flight.describe();
        format!(
            "the answer to `{request}` has a body, but no client can get one with the status {status}, so it is left \
             out: answer with another status, or without a body"
        )
    });
}

/// What the headers tell.
fn told_length(headers: &HeaderMap) -> Result<Option<u64>, &'static str> {
    // Most responses have few headers, and passing over all of them costs less than looking this one up.
    let mut told = (headers.iter()).filter(|(name, _)| **name == header::CONTENT_LENGTH);
    let Some((_, first)) = told.next() else {
        return Ok(None);
    };
    let is_alone = told.next().is_none() && !headers.contains_key(header::TRANSFER_ENCODING);
    let number = number(first).filter(|_| is_alone);
    let number = number.ok_or("the Content-Length of its response is not one number, or has a Transfer-Encoding beside it")?;
    Ok(Some(number))
}

/// The number that a header consists of.
fn number(value: &HeaderValue) -> Option<u64> {
    let text = value.to_str().ok()?;
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

/// Counts a frame, or the end, of a body that has this much left, if its length is known. Nothing after the full length
/// is looked at, because hyper asks for nothing more.
fn check_length<D: Buf>(frame: Option<&Frame<D>>, known: &mut Known) -> Result<(), &'static str> {
    let Some(left) = &mut known.told else {
        return Ok(());
    };
    let length = frame.and_then(Frame::data_ref).map_or(0, Buf::remaining);
    *left = (left.checked_sub(length as u64)).ok_or("it is longer than its Content-Length")?;
    // Hyper does not ask on after trailers, nor a body that says that this frame was the last.
    let is_over = known.is_end || frame.is_none_or(Frame::is_trailers);
    if is_over && *left > 0 {
        return Err("it is shorter than its Content-Length");
    }
    Ok(())
}

/// Reports why the rest of a body is missing, unless its client is the cause, or a panic, which was reported
/// already.
#[cold]
fn report(error: &BoxError, in_flight: Option<&RequestGuard>) {
    let is_told = is_clients(error, in_flight) || error.is::<Panicked>();
    let Some(in_flight) = in_flight.filter(|_| !is_told) else {
        return;
    };
    // The error's text is user code.
    let _panicked = weald_kernel::catch_panic(|| {
        weald_kernel::report_failure(|| {
            let request = in_flight.describe();
            format!(
                "the body of the answer to `{request}` failed, and its connection ends: {error}"
            )
        });
    });
}

/// The body of a response panicked.
#[derive(Debug)]
struct Panicked;

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the body of the response panicked")
    }
}

impl std::error::Error for Panicked {}

/// The body of a response failed, which was reported. In place of its own error.
#[derive(Debug)]
struct BodyFailed;

impl fmt::Display for BodyFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the body of the response failed")
    }
}

impl std::error::Error for BodyFailed {}

pin_project! {
    /// A response's body. Its request is in flight until hyper drops it.
    pub(crate) struct TrackedBody<B: Body> {
        // None in a response that is not the service's.
        #[pin]
        body: Option<B>,
        // What hyper has yet to get of the last frame.
        rest: Option<B::Data>,
        // What was known of the body; of its length, how much the service has still to give.
        known: Known,
        in_flight: Option<RequestGuard>,
    }

    impl<B: Body> PinnedDrop for TrackedBody<B> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            if this.body.is_some() {
                // While the request is in flight, so that the report of a panic names it.
                let _dropped = weald_kernel::catch_panic(|| {
                    *this.rest = None;
                    this.body.set(None);
                });
            }
        }
    }
}

impl<B: Body> TrackedBody<B> {
    pub(crate) fn new(
        body: Option<B>,
        known: Known,
        in_flight: Option<RequestGuard>,
    ) -> TrackedBody<B> {
        TrackedBody {
            body,
            rest: None,
            known,
            in_flight,
        }
    }
}

impl<B: Body<Error: Into<BoxError>>> TrackedBody<B> {
    /// The next frame of the service. An error ends the connection, so that the client does not take the response for a
    /// whole one.
    fn poll_frame_of_service(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        let frame = ready!(self.as_mut().poll_service(cx)).transpose();
        let this = self.project();
        let checked = frame.and_then(|frame| match check_length(frame.as_ref(), this.known) {
            Ok(()) => Ok(frame),
            Err(error) => Err(error.into()),
        });
        let checked = checked.map_err(|error| {
            report(&error, this.in_flight.as_ref());
            // Hyper would keep it for longer than the request, and its destructor and its text are user code.
            let _dropped = weald_kernel::catch_panic(|| drop(error));
            BoxError::from(BodyFailed)
        });
        Poll::Ready(checked.transpose())
    }

    /// As the service gives it.
    fn poll_service(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        let mut this = self.project();
        let Some(mut body) = this.body.as_mut().as_pin_mut() else {
            return Poll::Ready(None);
        };
        let known = this.known;
        let polled = weald_kernel::catch_panic(|| {
            let frame = body.as_mut().poll_frame(cx);
            if let Poll::Ready(Some(Ok(_))) = frame {
                known.is_end = body.is_end_stream();
            }
            frame
        });
        let Some(frame) = polled else {
            // The rest of the response is missing, so the connection must end.
            let _dropped = weald_kernel::catch_panic(|| this.body.set(None));
            return Poll::Ready(Some(Err(Panicked.into())));
        };
        if let (Poll::Pending, Some(in_flight)) = (&frame, this.in_flight) {
            in_flight.end_poll(cx);
        }
        frame.map_err(Into::into)
    }
}

impl<B: Body<Error: Into<BoxError>>> Body for TrackedBody<B> {
    type Data = Piece<B::Data>;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece<B::Data>>, BoxError>>> {
        let this = self.as_mut().project();
        let in_flight = this.in_flight.as_ref();
        if in_flight.is_some_and(|in_flight| in_flight.pace().must_wait()) {
            // The connection polls again after the write.
            return Poll::Pending;
        }
        let data = match this.rest.take() {
            Some(rest) => rest,
            None => match ready!(self.as_mut().poll_frame_of_service(cx)) {
                None => return Poll::Ready(None),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => data,
                    Err(others) => {
                        let others = others.map_data(Piece::Whole);
                        return Poll::Ready(Some(Ok(others)));
                    }
                },
            },
        };
        let this = self.project();
        let (piece, rest) = piece::split(data);
        *this.rest = rest;
        if let Some(in_flight) = this.in_flight {
            in_flight.pace().give(piece.remaining());
        }
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    /// What the body said. Hyper asks where a panic would end the connection.
    fn is_end_stream(&self) -> bool {
        self.rest.is_none() && self.known.is_end
    }

    /// Hyper asks before the first frame only.
    fn size_hint(&self) -> SizeHint {
        let exact = self.known.exact;
        exact.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
