//! The master key: it seals the keys of blobs in the key file, and lies elsewhere.
//!
//! Somebody with a copy of the directory, but without the master key, cannot read any erasable bytes, whether they were
//! erased or not.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{ChaCha20Poly1305, Key, Nonce};
use weald_forest::journal::BlobId;
use zeroize::Zeroizing;

use crate::blob::BlobKey;

/// The length of a sealed key.
pub(crate) const SEALED: usize = 32 + TAG;

/// The length of the proof of a master key.
pub(crate) const TAG: usize = 16;

/// How many bytes of a file are looked at for a master key.
const LONGEST: usize = 1024;

/// A key of 256 bits, which is overwritten when it is dropped. See
/// [`Settings::master_key`](crate::Settings::master_key).
///
/// ```
/// use weald::block_on;
/// use weald::forest::Forest;
/// use weald::forest::disk::{DiskForest, DiskJournal, Directory, MasterKey, Settings};
///
/// let directory = tempfile::tempdir()?;
/// let elsewhere = tempfile::tempdir()?;
/// let file = elsewhere.path().join("master.key");
/// MasterKey::generate()?.write(&file)?;
///
/// let settings = Settings::new().master_key(MasterKey::read(&file)?);
/// let journal = DiskJournal::open_on(Directory::create(directory.path())?, settings)?;
/// let forest = block_on(DiskForest::recover(Forest::builder(), journal))?;
/// let tree = block_on(forest.create("people"))?;
/// let mut edit = tree.edit();
/// edit.put_erasable(edit.root(), "name", "Ada")?;
/// block_on(edit.commit())?;
/// drop((tree, forest));
///
/// let error = DiskJournal::open(directory.path()).unwrap_err().to_string();
/// assert!(error.contains("master key"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct MasterKey(Zeroizing<[u8; 32]>);

impl MasterKey {
    /// The key with these bytes, which nobody can guess.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// A key of random bytes.
    ///
    /// # Errors
    /// The system has none.
    pub fn generate() -> io::Result<Self> {
        let mut bytes = Zeroizing::new([0; 32]);
        rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty())?;
        Ok(Self(bytes))
    }

    /// Reads a file that has 32 bytes, or 64 hexadecimal digits and perhaps a line end.
    ///
    /// # Errors
    /// It cannot be read, or has something else.
    pub fn read(file: impl AsRef<Path>) -> io::Result<Self> {
        let file = file.as_ref();
        // More than a key has, so that what is longer is noticed, and no more: it may be a device that never ends.
        let mut bytes = Zeroizing::new(Vec::with_capacity(LONGEST));
        let mut opened = fs::File::open(file)?.take(LONGEST as u64);
        opened.read_to_end(&mut bytes)?;
        if let Ok(bytes) = <[u8; 32]>::try_from(&bytes[..]) {
            return Ok(Self::new(bytes));
        }
        let text = str::from_utf8(&bytes).unwrap_or_default().trim_end();
        hexadecimal(text).ok_or_else(|| {
            let text = format!(
                "{} is no file of a master key: it has neither 32 bytes nor 64 hexadecimal digits",
                file.display()
            );
            io::Error::new(io::ErrorKind::InvalidData, text)
        })
    }

    /// Writes the key to a new file as hexadecimal digits, which only its owner may read.
    ///
    /// # Errors
    /// It cannot be written; [`AlreadyExists`](io::ErrorKind::AlreadyExists), if there is a file.
    pub fn write(&self, file: impl AsRef<Path>) -> io::Result<()> {
        use std::fmt::Write as _;
        use std::io::Write as _;
        use std::os::unix::fs::OpenOptionsExt;
        let mut text = Zeroizing::new(String::with_capacity(65));
        for byte in self.0.iter() {
            let _ = write!(text, "{byte:02x}");
        }
        text.push('\n');
        let mut options = fs::OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(file)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    }

    fn cipher(&self) -> ChaCha20Poly1305 {
        ChaCha20Poly1305::new(<&Key>::from(&*self.0))
    }

    /// The proof: what only this key makes of a journal's number. All key files of a journal have the same proof,
    /// because with two texts under one nonce others could make a third.
    pub(crate) fn proof(&self, journal: u128) -> [u8; TAG] {
        self.tag(&nonce(journal), &journal.to_le_bytes())
    }

    /// The proof in format 2, which is of a whole head.
    pub(crate) fn former_proof(&self, head: &[u8]) -> [u8; TAG] {
        self.tag(&Nonce::default(), head)
    }

    fn tag(&self, nonce: &Nonce, aad: &[u8]) -> [u8; TAG] {
        let proof = self.cipher().encrypt(nonce, Payload { msg: &[], aad });
        let proof = proof.expect("nothing is shorter than the cipher allows");
        proof.try_into().expect("it is as long as a tag")
    }

    /// Seals the key of a blob. The id is random, so no two blobs have a nonce in common.
    pub(crate) fn seal(&self, id: BlobId, key: &BlobKey) -> [u8; SEALED] {
        let (nonce, aad) = (nonce(id.0), id.0.to_le_bytes());
        let payload = Payload {
            msg: key.bytes(),
            aad: &aad,
        };
        let sealed = self.cipher().encrypt(&nonce, payload);
        let sealed = sealed.expect("a key is shorter than the cipher allows");
        sealed.try_into().expect("it is as long as a key and a tag")
    }

    pub(crate) fn open(&self, id: BlobId, sealed: &[u8; SEALED]) -> Option<BlobKey> {
        let (nonce, aad) = (nonce(id.0), id.0.to_le_bytes());
        let payload = Payload {
            msg: &sealed[..],
            aad: &aad,
        };
        let key = Zeroizing::new(self.cipher().decrypt(&nonce, payload).ok()?);
        Some(BlobKey::of(key.first_chunk()?))
    }
}

/// Of a blob or of a journal. Their numbers are random, so no two have one in common.
fn nonce(number: u128) -> Nonce {
    let mut nonce = Nonce::default();
    nonce.copy_from_slice(&number.to_le_bytes()[..12]);
    nonce
}

fn hexadecimal(text: &str) -> Option<MasterKey> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != 32 || !rest.is_empty() {
        return None;
    }
    let mut bytes = Zeroizing::new([0; 32]);
    for (byte, pair) in bytes.iter_mut().zip(pairs) {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        *byte = u8::try_from(digit(pair[0])? << 4 | digit(pair[1])?).ok()?;
    }
    Some(MasterKey(bytes))
}

impl std::fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MasterKey(..)")
    }
}

/// The master key of a key file that is written, and those of key files that are read.
#[derive(Clone, Debug, Default)]
pub(crate) struct MasterKeys {
    pub(crate) current: Option<MasterKey>,
    pub(crate) former: Vec<MasterKey>,
}

impl MasterKeys {
    /// The key that has made a proof.
    pub(crate) fn that_made(
        &self,
        proof: &[u8],
        make: impl Fn(&MasterKey) -> [u8; TAG],
    ) -> Option<&MasterKey> {
        let mut all = self.current.iter().chain(&self.former);
        all.find(|key| make(key) == proof)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_key_is_opened_with_its_master_key_and_its_id_only() {
        let [one, other] = [1, 2].map(|byte| MasterKey::new([byte; 32]));
        let key = BlobKey::of(&[7; 32]);
        let mut sealed = one.seal(BlobId(5), &key);
        assert_eq!(one.open(BlobId(5), &sealed), Some(key));
        assert_eq!(one.open(BlobId(6), &sealed), None);
        assert_eq!(other.open(BlobId(5), &sealed), None);
        sealed[40] ^= 1;
        assert_eq!(one.open(BlobId(5), &sealed), None);
    }

    #[test]
    fn a_file_of_a_key_has_digits_or_bytes_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("key");
        let key = MasterKey::generate().unwrap();
        key.write(&file).unwrap();
        assert_eq!(MasterKey::read(&file).unwrap().0, key.0);
        assert!(key.write(&file).is_err(), "a file is never replaced");
        fs::write(&file, &key.0[..]).unwrap();
        assert_eq!(MasterKey::read(&file).unwrap().0, key.0);
        // One that never ends.
        assert!(MasterKey::read("/dev/zero").is_err());
        for wrong in [&b""[..], b"0123", &[b'g'; 64], &[b'0'; 65], &[0xFF; 64]] {
            fs::write(&file, wrong).unwrap();
            let error = MasterKey::read(&file).unwrap_err().to_string();
            assert!(error.contains("64 hexadecimal digits"), "{error}");
        }
    }
}
