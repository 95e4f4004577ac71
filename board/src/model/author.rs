//! The author of a message: a secret that a browser or a program keeps. The board has only its hash. Also the tokens,
//! by which a form that is sent twice makes one message.

use std::fmt;

use blake2::{Blake2s256, Digest};
use weald::forest::CommitId;

use super::name::BoardName;

/// The hash of an author's secret, which stands beside what the author wrote.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Owner([u8; 16]);

impl Owner {
    /// The owner of a secret.
    pub fn of_secret(secret: &str) -> Self {
        Self(hash("owner", &[secret.as_bytes()]))
    }

    /// The owner of a hash, if the bytes have the length of one.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Owner")
    }
}

/// The person who asks for a change.
#[derive(Clone, Copy, Debug, Default)]
pub struct Requester {
    /// The owner of the secret that came with the request, if one did.
    pub owner: Option<Owner>,
    /// Whether the request came from a moderator, who may change what others wrote.
    pub is_moderator: bool,
    /// Whether the name under which it is written is protected, and the passphrase was right.
    pub is_proven: bool,
}

impl Requester {
    /// Somebody with a secret.
    pub fn of_secret(secret: &str) -> Self {
        Self {
            owner: Some(Owner::of_secret(secret)),
            ..Self::default()
        }
    }

    /// Whether this is the owner, or a moderator.
    pub fn may_change(&self, owner: Option<Owner>) -> bool {
        self.is_moderator || (self.owner.is_some() && self.owner == owner)
    }
}

/// What makes one message of a form that is sent twice: the id of its commit.
///
/// The forest remembers the newest 65,536 of them, even through a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token(CommitId);

impl Token {
    /// The token of a text that the sender chose. The same text of another sender, or for another board, is another
    /// token.
    pub fn new(board: &BoardName, requester: &Requester, text: &str) -> Self {
        let owner = requester.owner.as_ref().map_or(&[][..], Owner::bytes);
        let parts = [board.as_str().as_bytes(), owner, text.as_bytes()];
        Self(CommitId(u128::from_le_bytes(hash("token", &parts))))
    }

    pub(crate) fn id(self) -> CommitId {
        self.0
    }
}

/// Sixteen bytes that tell nothing about the parts, for one purpose.
pub(crate) fn hash(purpose: &str, parts: &[&[u8]]) -> [u8; 16] {
    let mut hasher = Blake2s256::new();
    for part in [purpose.as_bytes()].iter().chain(parts) {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hasher.finalize()[..16]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_changes_what_has_no_owner_except_a_moderator() {
        let (ada, nobody) = (Requester::of_secret("ada"), Requester::default());
        assert!(ada.may_change(ada.owner));
        assert!(!ada.may_change(None));
        assert!(!nobody.may_change(None));
        assert!(!nobody.may_change(ada.owner));
        let moderator = Requester {
            is_moderator: true,
            ..nobody
        };
        assert!(moderator.may_change(None) && moderator.may_change(ada.owner));
    }

    #[test]
    fn a_token_is_one_of_its_board_and_its_sender() {
        let [tea, milk] = ["tea", "milk"].map(|name| name.parse::<BoardName>().unwrap());
        let (ada, alan) = (Requester::of_secret("ada"), Requester::of_secret("alan"));
        let token = Token::new(&tea, &ada, "1");
        assert_eq!(Token::new(&tea, &ada, "1"), token);
        for other in [
            Token::new(&milk, &ada, "1"),
            Token::new(&tea, &alan, "1"),
            Token::new(&tea, &ada, "2"),
        ] {
            assert_ne!(other, token);
        }
    }
}
