//! The style sheet, the script and the icon, which browsers keep: their addresses change with their bytes.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};

use super::answer::fixed;

const STYLE: &str = include_str!("../../assets/style.css");
const SCRIPT: &str = include_str!("../../assets/live.js");
const ICON: &str = include_str!("../../assets/icon.svg");

/// What stands behind the address of the script.
pub(crate) const SCRIPT_TAG: u64 = fingerprint(SCRIPT.as_bytes());
/// What stands behind the address of the style sheet.
pub(crate) const STYLE_TAG: u64 = fingerprint(STYLE.as_bytes());

pub(crate) async fn style() -> Response<Body> {
    kept(fixed(StatusCode::OK, "text/css; charset=utf-8", STYLE))
}

pub(crate) async fn script() -> Response<Body> {
    kept(fixed(
        StatusCode::OK,
        "text/javascript; charset=utf-8",
        SCRIPT,
    ))
}

pub(crate) async fn icon() -> Response<Body> {
    kept(fixed(StatusCode::OK, "image/svg+xml", ICON))
}

fn kept(mut response: Response<Body>) -> Response<Body> {
    let for_a_day = HeaderValue::from_static("public, max-age=86400");
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, for_a_day);
    response
}

/// FNV-1a of 64 bits.
const fn fingerprint(bytes: &[u8]) -> u64 {
    let (mut state, mut at) = (0xcbf2_9ce4_8422_2325, 0);
    while at < bytes.len() {
        state = (state ^ bytes[at] as u64).wrapping_mul(0x100_0000_01b3);
        at += 1;
    }
    state
}
