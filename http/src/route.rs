//! The kind of work that a request is: requests of one route tend to behave alike.

/// The greatest length at which a part of a path counts as a word, and not as a parameter.
const LONGEST_WORD: usize = 24;

/// Numbers for the route of a request. Neither is 0, and a kind is none of 1 to 3 either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) kind: u64,
    /// Paths that begin alike. Many kinds of one family are likely to be one route, one of whose parameters is a word.
    pub(crate) family: u64,
}

/// The server does not know the routes of its service. So parts of the path that contain a digit or are long are taken
/// for parameters. Others may be: requests are of one family if their methods are the same, and the first parts of
/// their paths; or if their paths have one part only.
pub(crate) fn route(method: &str, path: &str) -> Route {
    // Many requests pass here, so this is one pass over the path.
    let method = mix(FNV_OFFSET, method.as_bytes());
    let (mut kind, mut first, mut count) = (method, method, 0);
    for part in path.as_bytes().split(|byte| *byte == b'/') {
        let is_parameter = part.len() > LONGEST_WORD || part.iter().any(u8::is_ascii_digit);
        kind = mix(kind, if is_parameter { PARAMETER } else { part });
        count += 1;
        if count <= FIRST {
            first = kind;
        }
    }
    let is_single = count == FIRST && path.len() > 1;
    let family = if is_single {
        mix(method, PARAMETER)
    } else {
        first
    };
    Route {
        kind: kind.max(4),
        family: family.max(1),
    }
}

/// As [`route`], for a path whose parts are all words: a service of gRPC and its method, where a digit is a version.
pub(crate) fn route_of_words(method: &str, path: &str) -> Route {
    let method = mix(FNV_OFFSET, method.as_bytes());
    let (service, _method) = path.rsplit_once('/').unwrap_or((path, ""));
    Route {
        kind: mix(method, path.as_bytes()).max(4),
        family: mix(method, service.as_bytes()).max(1),
    }
}

/// In place of a part that is a parameter.
const PARAMETER: &[u8] = b"*";
/// How many parts there are up to the first one of a path. What is before its slash is one too.
const FIRST: usize = 2;
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

/// Adds a part to a hash, FNV-1a.
fn mix(hash: u64, part: &[u8]) -> u64 {
    let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    add(part.iter().fold(hash, add), &b'/')
}

#[cfg(test)]
mod tests {
    use super::{route, route_of_words};

    fn kind(method: &str, path: &str) -> u64 {
        route(method, path).kind
    }

    fn family(method: &str, path: &str) -> u64 {
        route(method, path).family
    }

    #[test]
    fn parameters_do_not_make_another_route_and_words_do() {
        let users = kind("GET", "/users/17/orders");
        assert_eq!(users, kind("GET", "/users/4711/orders"));
        assert_ne!(users, kind("POST", "/users/17/orders"));
        assert_ne!(users, kind("GET", "/users/17/carts"));
        assert_ne!(users, kind("GET", "/users/17"));
        assert_ne!(kind("GET", "/a/b"), kind("GET", "/ab"));
    }

    #[test]
    fn services_with_a_version_in_their_names_are_told_apart() {
        let of = |path| route_of_words("POST", path);
        let list = of("/acme.users.v1.Users/List");
        for other in ["/acme.reports.v1.Reports/List", "/acme.users.v2.Users/List"] {
            assert_ne!(list.kind, of(other).kind, "{other}");
            assert_ne!(list.family, of(other).family, "{other}");
        }
        let get = of("/acme.users.v1.Users/Get");
        assert_ne!(list.kind, get.kind);
        assert_eq!(list.family, get.family);
    }

    #[test]
    fn paths_that_begin_alike_are_of_one_family() {
        let users = family("GET", "/users/alice");
        assert_eq!(users, family("GET", "/users/bob/orders"));
        assert_ne!(users, family("POST", "/users/alice"));
        assert_ne!(users, family("GET", "/orders/alice"));
        let single = family("GET", "/alice");
        assert_eq!(single, family("GET", "/bob"));
        for other in ["/", "/alice/", "/users/alice"] {
            assert_ne!(single, family("GET", other), "{other}");
        }
    }
}
