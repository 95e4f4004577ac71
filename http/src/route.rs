//! The kind of work that a request is: requests of one route tend to behave alike.

/// The longest part of a path that is taken for a word and not for a parameter.
const LONGEST_WORD: usize = 24;

/// A number for the route of a request, which is not 0. The server does not know the routes of its service. So parts of
/// the path that contain a digit or are long are taken for parameters.
pub(crate) fn route(method: &str, path: &str) -> u64 {
    let is_parameter =
        |part: &str| part.len() > LONGEST_WORD || part.bytes().any(|byte| byte.is_ascii_digit());
    let parts = path.split('/').map(|part| match is_parameter(part) {
        true => "*",
        false => part,
    });
    // FNV-1a.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in std::iter::once(method)
        .chain(parts)
        .flat_map(|part| part.bytes().chain([b'/']))
    {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
    hash.max(1)
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
