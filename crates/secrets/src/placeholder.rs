//! Values that stand for a secret and are none, such as `<your-token>`.

/// Says whether a value only holds the place of a secret, or names a variable that has it.
pub(crate) fn is_placeholder(value: &str) -> bool {
    const WORDS: &[&str] = &[
        "password",
        "passwd",
        "passphrase",
        "passwort",
        "pass",
        "pwd",
        "secret",
        "token",
        "changeme",
        "change_me",
        "change-me",
        "changeit",
        "example",
        "placeholder",
        "redacted",
        "none",
        "null",
        "true",
        "false",
        "undefined",
        "string",
        "required",
        "optional",
        "test",
        "todo",
        "prompt",
        "input",
        "hidden",
        "masked",
        "mypassword",
        "my-password",
        "my_password",
        "my-secret-pw",
        "your-password",
        "yourpassword",
        "your_password",
        "basic",
        "bearer",
        "oauth",
    ];
    const PARTS: &[&str] = &[
        "xxxx",
        "****",
        "....",
        "\u{2026}",
        "${",
        "{{",
        "}}",
        "$(",
        "%(",
        "->",
        "::",
        "your_",
        "your-",
        "<",
        ">",
        "[redacted]",
        "process.env",
        "os.environ",
        "secrets.",
        "getenv",
        "example",
        "00000000",
        "12345678",
        "abcdefgh",
    ];
    let lower = value.to_ascii_lowercase();
    // Alphabets and counts are what documents show; a longer key may begin with one.
    let is_part =
        |part: &&&str| lower.contains(**part) && (value.len() < 24 || !part.starts_with(['0', '1', 'a']));
    lower.starts_with(['$', '%', '{', '[', '<', '(', '*', '&', '\\', ':'])
        || WORDS.contains(&lower.trim_matches(|c: char| !c.is_alphanumeric()))
        || PARTS.iter().filter(is_part).count() > 0
        || value.chars().collect::<std::collections::HashSet<_>>().len() < 3
}
