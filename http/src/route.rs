//! The kind of work that a request is: requests of one route tend to behave alike.

/// The longest part of a path that is taken for a word and not for a parameter.
const LONGEST_WORD: usize = 24;

/// A number for the route of a request, which is not 0. The server does not know the routes of its service. So parts of
/// the path that contain a digit or are long are taken for parameters.
pub(crate) fn route(method: &str, path: &str) -> u64 {
    // Each request comes by here, so this is one pass over the path.
    let mut hash = mix(FNV_OFFSET, method.as_bytes());
    for part in path.as_bytes().split(|byte| *byte == b'/') {
        let is_parameter = part.len() > LONGEST_WORD || part.iter().any(u8::is_ascii_digit);
        hash = mix(hash, if is_parameter { b"*" } else { part });
    }
    hash.max(1)
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

/// Adds a part to a hash, FNV-1a.
fn mix(hash: u64, part: &[u8]) -> u64 {
    let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    add(part.iter().fold(hash, add), &b'/')
}

#[cfg(test)]
mod tests {
    use super::route;

    #[test]
    fn parameters_do_not_make_another_route_and_words_do() {
        let users = route("GET", "/users/17/orders");
        assert_eq!(users, route("GET", "/users/4711/orders"));
        assert_ne!(users, route("POST", "/users/17/orders"));
        assert_ne!(users, route("GET", "/users/17/carts"));
        assert_ne!(users, route("GET", "/users/17"));
        assert_ne!(route("GET", "/a/b"), route("GET", "/ab"));
    }
}
