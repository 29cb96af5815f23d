//! Command lines: words quoted for a shell.

/// A shell with which other programs start a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    /// `sh` and its like.
    Posix,
    /// `cmd.exe`.
    Cmd,
    /// PowerShell.
    PowerShell,
}

impl Shell {
    /// The shell with which most programs start a command on this system.
    pub const SYSTEM: Self = if cfg!(windows) { Self::Cmd } else { Self::Posix };

    /// Returns the line that runs a program, which is the first word, with arguments.
    pub fn line(self, words: &[String]) -> String {
        let quoted: Vec<String> = words.iter().map(|word| self.quoted(word)).collect();
        let line = quoted.join(" ");
        // PowerShell takes a line that begins with a quoted word for a text.
        if self == Self::PowerShell && line.starts_with('\'') { format!("& {line}") } else { line }
    }

    /// Returns a word in quotes, if it needs them.
    fn quoted(self, word: &str) -> String {
        // In PowerShell, a comma makes a list, and `@` and `%` have a meaning at the beginning of a word.
        let others = match self {
            Self::Posix => "-_./:@%+=,",
            Self::Cmd => r"-_./:@%+=,\",
            Self::PowerShell => r"-_./:+=\",
        };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || others.contains(c);
        match self {
            _ if !word.is_empty() && word.chars().all(is_plain) => word.to_owned(),
            Self::Posix => format!("'{}'", word.replace('\'', r"'\''")),
            Self::Cmd => format!("\"{word}\""),
            Self::PowerShell => format!("'{}'", word.replace('\'', "''")),
        }
    }
}
