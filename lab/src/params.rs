//! The parameters of one workload: `key=value` pairs in the order in which they were given.
//!
//! Invariants: a key occurs once; values are kept as text, so they are shown exactly as given.

use std::fmt;

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::error::Error;

/// Ordered `key=value` pairs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params {
    pairs: Vec<(String, String)>,
}

impl Params {
    /// Reads words such as `n=1000`.
    pub fn parse<S: AsRef<str>>(words: &[S]) -> Result<Self, Error> {
        let mut params = Self::default();
        for word in words {
            let word = word.as_ref();
            let Some((key, value)) = word.split_once('=') else {
                return Err(Error::Usage(format!(
                    "'{word}' is not of the form key=value."
                )));
            };
            if key.is_empty() || value.is_empty() {
                return Err(Error::Usage(format!(
                    "'{word}' lacks its key or its value."
                )));
            }
            if params.get(key).is_some() {
                return Err(Error::Usage(format!("The key '{key}' is given twice.")));
            }
            params.pairs.push((key.to_owned(), value.to_owned()));
        }
        Ok(params)
    }

    /// The same parameters and one more. For plans, whose keys are known to be distinct.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl fmt::Display) -> Self {
        assert!(self.get(key).is_none(), "a plan names each key once");
        self.pairs.push((key.to_owned(), value.to_string()));
        self
    }

    /// The value of a key, if it was given.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.pairs
            .iter()
            .find(|(k, _)| k == key)
            .map(|(_, v)| v.as_str())
    }

    /// The value of a required key.
    pub fn text(&self, key: &str) -> Result<&str, Error> {
        self.get(key)
            .ok_or_else(|| Error::Usage(format!("The key '{key}' is missing.")))
    }

    /// The value of a key as a whole number of at least one.
    pub fn count(&self, key: &str) -> Result<usize, Error> {
        let text = self.text(key)?;
        match text.parse::<usize>() {
            Ok(n) if n > 0 => Ok(n),
            _ => Err(Error::Usage(format!(
                "{key}={text} is not a whole number above zero."
            ))),
        }
    }

    /// The value of a key as a whole number, zero allowed.
    pub fn number(&self, key: &str) -> Result<usize, Error> {
        let text = self.text(key)?;
        text.parse()
            .map_err(|_| Error::Usage(format!("{key}={text} is not a whole number.")))
    }

    /// All pairs in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// The words that [`Params::parse`] would read back.
    pub fn words(&self) -> impl Iterator<Item = String> {
        self.iter().map(|(key, value)| format!("{key}={value}"))
    }
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.words().collect();
        f.write_str(&words.join(" "))
    }
}

impl Serialize for Params {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.pairs.len()))?;
        for (key, value) in self.iter() {
            match value.parse::<u64>() {
                Ok(number) => map.serialize_entry(key, &number)?,
                Err(_) => map.serialize_entry(key, value)?,
            }
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_pairs_in_order_and_prints_them_back() {
        let params = Params::parse(&["n=10", "payload=shared"]).unwrap();
        assert_eq!(params.count("n").unwrap(), 10);
        assert_eq!(params.text("payload").unwrap(), "shared");
        assert_eq!(params.to_string(), "n=10 payload=shared");
    }

    #[test]
    fn refuses_what_is_not_a_pair() {
        for wrong in [&["n"][..], &["=3"], &["n="], &["n=1", "n=2"]] {
            assert!(
                matches!(Params::parse(wrong), Err(Error::Usage(_))),
                "{wrong:?}"
            );
        }
    }

    #[test]
    fn refuses_missing_and_senseless_counts() {
        let params = Params::parse(&["n=0", "m=-1", "k=x"]).unwrap();
        for key in ["n", "m", "k", "absent"] {
            assert!(matches!(params.count(key), Err(Error::Usage(_))), "{key}");
        }
        assert_eq!(params.number("n").unwrap(), 0);
    }

    #[test]
    fn serializes_numbers_as_numbers() {
        let params = Params::parse(&["k=100000", "payload=fresh"]).unwrap();
        let json = serde_json::to_string(&params).unwrap();
        assert_eq!(json, r#"{"k":100000,"payload":"fresh"}"#);
    }
}
