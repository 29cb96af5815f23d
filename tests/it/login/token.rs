//! Makes access tokens as identity providers do, with keys that serve these tests and nothing else.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::rsa::{KeyPair as RsaKeyPair, PublicKeyComponents};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
    RSA_PKCS1_SHA384, RSA_PSS_SHA256, RsaEncoding,
};
use serde_json::{Value, json};

const RSA: &[u8] = include_bytes!("test_keys/rsa.pk8");
const OTHER_RSA: &[u8] = include_bytes!("test_keys/other_rsa.pk8");
const P256: &[u8] = include_bytes!("test_keys/p256.pk8");
const ED25519: &[u8] = include_bytes!("test_keys/ed25519.pk8");

/// Encodes as parts of tokens are.
pub(crate) fn encoded(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Gives the seconds since 1970.
pub(crate) fn now() -> i64 {
    sidenote::base::clock::Clock::System.now().millis() / 1000
}

fn rsa(key: &[u8]) -> RsaKeyPair {
    RsaKeyPair::from_pkcs8(key).unwrap()
}

/// Gives the modulus of the public key, which an attacker may take for a shared secret.
pub(crate) fn public_rsa() -> Vec<u8> {
    PublicKeyComponents::<Vec<u8>>::from(rsa(RSA).public()).n
}

fn rsa_jwk(id: &str, key: &[u8]) -> Value {
    let public = PublicKeyComponents::<Vec<u8>>::from(rsa(key).public());
    json!({ "kty": "RSA", "kid": id, "use": "sig", "n": encoded(public.n), "e": encoded(public.e) })
}

fn p256() -> EcdsaKeyPair {
    EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, P256, &SystemRandom::new()).unwrap()
}

fn ed25519() -> Ed25519KeyPair {
    Ed25519KeyPair::from_pkcs8_maybe_unchecked(ED25519).unwrap()
}

/// Gives the public keys of the provider, and some that must not verify anything.
pub(crate) fn key_set() -> Value {
    let (p256, ed25519) = (p256(), ed25519());
    let (x, y) = p256.public_key().as_ref()[1..].split_at(32);
    let mut for_encryption = rsa_jwk("encryption", RSA);
    for_encryption["use"] = "enc".into();
    let mut for_ps256 = rsa_jwk("ps256-only", RSA);
    for_ps256["alg"] = "PS256".into();
    json!({ "keys": [
        rsa_jwk("rsa", RSA),
        for_encryption,
        for_ps256,
        { "kty": "EC", "kid": "p256", "crv": "P-256", "x": encoded(x), "y": encoded(y) },
        { "kty": "OKP", "kid": "ed25519", "crv": "Ed25519", "x": encoded(ed25519.public_key()) },
        { "kty": "oct", "kid": "shared", "k": encoded("a shared secret") },
        { "kty": "unheard-of", "kid": "future", "z": [1] },
        rsa_jwk("", RSA),
    ] })
}

/// The public key of an attacker, as a header could carry it.
pub(crate) fn attackers_jwk() -> Value {
    rsa_jwk("rsa", OTHER_RSA)
}

/// What signs a token.
#[derive(Clone)]
pub(crate) enum Signer {
    Rsa,
    RsaPss,
    Rsa384,
    P256,
    Ed25519,
    /// The key of an attacker.
    Other,
    /// A shared secret.
    Hmac(Vec<u8>),
    /// Nothing: the signature is empty.
    Nobody,
}

impl Signer {
    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let with_rsa = |key: &[u8], padding: &'static dyn RsaEncoding| {
            let key = rsa(key);
            let mut signature = vec![0; key.public().modulus_len()];
            key.sign(padding, &SystemRandom::new(), message, &mut signature).unwrap();
            signature
        };
        match self {
            Self::Rsa => with_rsa(RSA, &RSA_PKCS1_SHA256),
            Self::RsaPss => with_rsa(RSA, &RSA_PSS_SHA256),
            Self::Rsa384 => with_rsa(RSA, &RSA_PKCS1_SHA384),
            Self::Other => with_rsa(OTHER_RSA, &RSA_PKCS1_SHA256),
            Self::P256 => p256().sign(&SystemRandom::new(), message).unwrap().as_ref().to_vec(),
            Self::Ed25519 => ed25519().sign(message).as_ref().to_vec(),
            Self::Hmac(secret) => {
                hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), message).as_ref().to_vec()
            }
            Self::Nobody => Vec::new(),
        }
    }
}

/// A token that is being made.
#[derive(Clone)]
pub(crate) struct Token {
    pub(crate) header: Value,
    pub(crate) claims: Value,
    pub(crate) signer: Signer,
}

impl Token {
    /// Begins a valid token of an issuer for an audience.
    pub(crate) fn new(issuer: &str, audience: &str, subject: &str, scope: &str) -> Self {
        Self {
            header: json!({ "alg": "RS256", "typ": "at+jwt", "kid": "rsa" }),
            claims: json!({
                "iss": issuer, "aud": audience, "sub": subject, "scope": scope, "client_id": "test-client",
                "email": format!("{subject}@example.org"), "iat": now(), "exp": now() + 600,
            }),
            signer: Signer::Rsa,
        }
    }

    /// Sets a claim, or removes it with null.
    pub(crate) fn claim(mut self, name: &str, value: impl Into<Value>) -> Self {
        set(&mut self.claims, name, value.into());
        self
    }

    /// Sets a field of the header, or removes it with null.
    pub(crate) fn header(mut self, name: &str, value: impl Into<Value>) -> Self {
        set(&mut self.header, name, value.into());
        self
    }

    /// Has another key sign.
    pub(crate) fn signed_by(self, algorithm: &str, id: &str, signer: Signer) -> Self {
        Self { signer, ..self.header("alg", algorithm).header("kid", id) }
    }

    /// Signs the token.
    pub(crate) fn sign(&self) -> String {
        let message = format!("{}.{}", encoded(self.header.to_string()), encoded(self.claims.to_string()));
        format!("{message}.{}", encoded(self.signer.sign(message.as_bytes())))
    }
}

fn set(object: &mut Value, name: &str, value: Value) {
    let object = object.as_object_mut().unwrap();
    if value.is_null() {
        object.remove(name);
    } else {
        object.insert(name.to_owned(), value);
    }
}
