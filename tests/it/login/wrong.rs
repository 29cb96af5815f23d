//! Access tokens that must be refused, each with the reason.

use serde_json::{Value, json};
use sidenote::mcp::login::Refusal;

use super::token::{Signer, Token, attackers_jwk, encoded, key_set, now, public_rsa};

/// A token that is refused.
pub(crate) struct WrongToken {
    pub(crate) what: &'static str,
    pub(crate) token: String,
    pub(crate) refusal: Refusal,
}

/// Makes the wrong tokens for an issuer and an audience.
pub(crate) fn wrong_tokens(issuer: &str, audience: &str) -> Vec<WrongToken> {
    let right = Token::new(issuer, audience, "anna", "notes:read notes:write notes:admin");
    let mut all = wrong_claims(&right, issuer, audience);
    all.extend(wrong_signatures(&right));
    all.extend(wrong_forms(&right));
    all.into_iter().map(|(what, token, refusal)| WrongToken { what, token, refusal }).collect()
}

type Case = (&'static str, String, Refusal);

fn wrong_claims(right: &Token, issuer: &str, audience: &str) -> Vec<Case> {
    let case =
        |what, name: &str, value: Value, refusal| (what, right.clone().claim(name, value).sign(), refusal);
    let host = audience.split("/v/").next().unwrap();
    vec![
        case("the audience is another service", "aud", json!("https://other.example"), Refusal::Audience),
        case("the audience is another vault", "aud", json!(format!("{host}/v/other/mcp")), Refusal::Audience),
        case("the audience is the whole service", "aud", json!(host), Refusal::Audience),
        case("the audience has a slash more", "aud", json!(format!("{audience}/")), Refusal::Audience),
        case("the audiences are others", "aud", json!(["a", "b"]), Refusal::Audience),
        case("the audience is an empty list", "aud", json!([]), Refusal::Audience),
        case("there is no audience", "aud", Value::Null, Refusal::Audience),
        case("the audience is a number", "aud", json!(1), Refusal::Audience),
        case("the issuer is another one", "iss", json!("https://login.example"), Refusal::Issuer),
        case("the issuer has a slash more", "iss", json!(format!("{issuer}/")), Refusal::Issuer),
        case("the issuer is in upper case", "iss", json!(issuer.to_uppercase()), Refusal::Issuer),
        case("there is no issuer", "iss", Value::Null, Refusal::Issuer),
        case("the issuer is a list", "iss", json!([issuer]), Refusal::Issuer),
        case("it has expired", "exp", json!(now() - 90), Refusal::Expired),
        case("it expired in 1970", "exp", json!(0), Refusal::Expired),
        case("it never expires", "exp", Value::Null, Refusal::NoExpiry),
        case("the expiry is a text", "exp", json!("tomorrow"), Refusal::NoExpiry),
        case("it is not valid yet", "nbf", json!(now() + 90), Refusal::Early),
        case("the beginning is a text", "nbf", json!("today"), Refusal::Malformed),
        case("there is no subject", "sub", Value::Null, Refusal::Subject),
        case("the subject is empty", "sub", json!(""), Refusal::Subject),
        case("the subject is a number", "sub", json!(1), Refusal::Subject),
        case("the subject has a line break", "sub", json!("anna\nadmin"), Refusal::Subject),
        case("the subject has a zero byte", "sub", json!("anna\u{0}"), Refusal::Subject),
    ]
}

fn wrong_signatures(right: &Token) -> Vec<Case> {
    let by = |algorithm: &str, id: &str, signer| right.clone().signed_by(algorithm, id, signer);
    let shared = || Signer::Hmac(public_rsa());
    let parts = |token: &str| token.split('.').map(str::to_owned).collect::<Vec<String>>();
    let signed = parts(&right.sign());
    let other_claims = encoded(right.clone().claim("sub", "boss").claims.to_string());
    let other_header = encoded(right.clone().header("x", 1).header.to_string());
    let attacker = by("RS256", "rsa", Signer::Other);
    vec![
        ("the algorithm is none", by("none", "rsa", Signer::Nobody).sign(), Refusal::Algorithm),
        ("the algorithm is None", by("None", "rsa", Signer::Nobody).sign(), Refusal::Algorithm),
        ("there is no algorithm", right.clone().header("alg", Value::Null).sign(), Refusal::Malformed),
        ("the public key is taken for a secret", by("HS256", "rsa", shared()).sign(), Refusal::Algorithm),
        (
            "a shared secret of the keys signs",
            { by("HS256", "shared", Signer::Hmac(b"a shared secret".to_vec())).sign() },
            Refusal::Algorithm,
        ),
        (
            "the key set is taken for a secret",
            { by("HS256", "rsa", Signer::Hmac(key_set().to_string().into_bytes())).sign() },
            Refusal::Algorithm,
        ),
        ("the algorithm is not listed", by("RS384", "rsa", Signer::Rsa384).sign(), Refusal::Algorithm),
        (
            "the algorithm is that of another key",
            by("ES256", "rsa", Signer::P256).sign(),
            Refusal::UnknownKey,
        ),
        ("the key is of another algorithm", by("RS256", "p256", Signer::Rsa).sign(), Refusal::UnknownKey),
        (
            "the key is for another algorithm alone",
            by("RS256", "ps256-only", Signer::Rsa).sign(),
            Refusal::UnknownKey,
        ),
        ("the key is for encryption", by("RS256", "encryption", Signer::Rsa).sign(), Refusal::UnknownKey),
        ("the key is not known", by("RS256", "nobody's", Signer::Rsa).sign(), Refusal::UnknownKey),
        ("the key of the header is another provider's", attacker.sign(), Refusal::Signature),
        (
            "the header names keys of an attacker",
            { attacker.clone().header("jku", "https://attacker.example/keys").sign() },
            Refusal::Signature,
        ),
        (
            "the header names a certificate of an attacker",
            { attacker.clone().header("x5u", "https://attacker.example/certificate").sign() },
            Refusal::Signature,
        ),
        (
            "the header has the key of an attacker",
            { attacker.clone().header("jwk", attackers_jwk()).sign() },
            Refusal::Signature,
        ),
        ("the padding is another one", by("RS256", "rsa", Signer::RsaPss).sign(), Refusal::Signature),
        (
            "the claims were changed",
            format!("{}.{other_claims}.{}", signed[0], signed[2]),
            Refusal::Signature,
        ),
        ("the header was changed", format!("{other_header}.{}.{}", signed[1], signed[2]), Refusal::Signature),
        (
            "the signature is cut",
            { format!("{}.{}.{}", signed[0], signed[1], &signed[2][..200]) },
            Refusal::Signature,
        ),
        ("the signature is missing", format!("{}.{}.", signed[0], signed[1]), Refusal::Signature),
    ]
}

fn wrong_forms(right: &Token) -> Vec<Case> {
    let signed = right.sign();
    let with = |name: &str, value: Value| right.clone().header(name, value).sign();
    let padded = signed.replacen('.', "=.", 1);
    vec![
        ("it is longer than 8 KB", right.clone().claim("x", "y".repeat(7_000)).sign(), Refusal::TooLong),
        ("it has no type", with("typ", Value::Null), Refusal::Type),
        ("it is another kind of token", with("typ", json!("logout+jwt")), Refusal::Type),
        ("it requires an extension", with("crit", json!(["exp"])), Refusal::Critical),
        ("it names no key", with("kid", Value::Null), Refusal::NoKeyId),
        ("the name of the key is empty", with("kid", json!("")), Refusal::NoKeyId),
        ("it is no JWT", "an-opaque-token".to_owned(), Refusal::Malformed),
        ("it has two parts", signed.rsplit_once('.').unwrap().0.to_owned(), Refusal::Malformed),
        ("it has five parts", format!("{signed}.x.y"), Refusal::Malformed),
        ("the parts are padded", padded, Refusal::Malformed),
        (
            "the header is no JSON",
            format!("{}{}", encoded("{"), &signed[signed.find('.').unwrap()..]),
            Refusal::Malformed,
        ),
        (
            "the claims are no JSON",
            {
                let parts: Vec<&str> = signed.split('.').collect();
                format!("{}.{}.{}", parts[0], encoded("[]"), parts[2])
            },
            Refusal::Issuer,
        ),
    ]
}
