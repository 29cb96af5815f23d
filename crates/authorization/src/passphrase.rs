//! The passphrase: its hash by Argon2id, and the check of one that was entered.

use std::collections::HashSet;

use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::{Deserialize, Serialize};
use sidenote_base::error::{Error, Result};
use unicode_normalization::UnicodeNormalization as _;

use crate::token::{is_same, random_bytes};

/// The memory of a hash in KiB, the passes and the lanes: the first choice of OWASP's cheat sheet for passwords.
const MEMORY: u32 = 19 << 10;
const PASSES: u32 = 2;
const LANES: u32 = 1;
/// The bytes of a hash.
const HASH_BYTES: usize = 32;
/// The fewest characters of a passphrase: four words of a list have more.
const SHORTEST: usize = 12;
/// The fewest different characters of a passphrase, so that none is a key that was held down.
const FEWEST_DIFFERENT: usize = 5;
/// The longest passphrase in bytes, so that nobody can have a long text hashed.
pub(crate) const LONGEST: usize = 1024;

/// The hash of the passphrase, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PassphraseHash {
    memory: u32,
    passes: u32,
    lanes: u32,
    salt: String,
    hash: String,
}

impl PassphraseHash {
    /// Hashes a new passphrase.
    ///
    /// # Errors
    /// `Invalid` if it is too short, too long or too uniform.
    pub(crate) fn of(passphrase: &str) -> Result<Self> {
        let passphrase = &normal(passphrase);
        if passphrase.chars().count() < SHORTEST {
            return Err(Error::invalid(format!("the passphrase has less than {SHORTEST} characters"))
                .with_hint("take four or more words that do not belong together"));
        }
        let different: HashSet<char> = passphrase.chars().filter(|c| !c.is_whitespace()).collect();
        if different.len() < FEWEST_DIFFERENT {
            return Err(Error::invalid(format!(
                "the passphrase has less than {FEWEST_DIFFERENT} different characters"
            ))
            .with_hint("take four or more words that do not belong together"));
        }
        if passphrase.len() > LONGEST {
            return Err(Error::invalid(format!("the passphrase has more than {LONGEST} bytes"))
                .with_hint("take a shorter one"));
        }
        let salt: [u8; 16] = random_bytes()?;
        let hash = hash(passphrase, &salt, MEMORY, PASSES, LANES)?;
        let (salt, hash) = (STANDARD_NO_PAD.encode(salt), STANDARD_NO_PAD.encode(hash));
        Ok(Self { memory: MEMORY, passes: PASSES, lanes: LANES, salt, hash })
    }

    /// Returns whether a passphrase is the one of this hash.
    ///
    /// # Errors
    /// `Corrupt` if the stored hash is damaged.
    pub(crate) fn verifies(&self, passphrase: &str) -> Result<bool> {
        let damaged = || Error::corrupt("the stored hash of the passphrase is damaged");
        let salt = STANDARD_NO_PAD.decode(&self.salt).map_err(|_| damaged())?;
        let expected = STANDARD_NO_PAD.decode(&self.hash).map_err(|_| damaged())?;
        if passphrase.len() > LONGEST || self.memory > 4 * MEMORY || self.passes > 4 * PASSES {
            return Ok(false);
        }
        let given = hash(&normal(passphrase), &salt, self.memory, self.passes, self.lanes)?;
        Ok(expected.len() == HASH_BYTES && is_same(&given, &expected))
    }
}

/// Returns a passphrase as all keyboards and editors give it: composed, and without the mark at the beginning of a file.
fn normal(passphrase: &str) -> String {
    passphrase.trim_start_matches('\u{FEFF}').nfc().collect()
}

fn hash(passphrase: &str, salt: &[u8], memory: u32, passes: u32, lanes: u32) -> Result<[u8; HASH_BYTES]> {
    let failed = |error: argon2::Error| Error::internal(format!("the passphrase cannot be hashed: {error}"));
    let params = Params::new(memory, passes, lanes, Some(HASH_BYTES)).map_err(failed)?;
    let mut out = [0; HASH_BYTES];
    let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    argon.hash_password_into(passphrase.as_bytes(), salt, &mut out).map_err(failed)?;
    Ok(out)
}
