//! `json.md`: what each command prints with `--json`, out of the types in the source. Real replies are compared with
//! them, so that the page cannot name a field that is not there, or leave one out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{MADE, check_page, code, commands, prose, sentence};
use crate::git::{git, init};
use crate::support::{TestVault, source_files, stderr, stdout};

/// A command, its reply as a Rust type, calls of it on the example vault, and what else there is to say.
struct Reply(&'static str, &'static str, &'static [&'static [&'static str]], &'static str);

/// The fields that all replies to a change of notes have.
const CHANGE: &str = "ChangeReply";
/// What `edit` says where it changes nothing.
const PLAN: &str = "With `--dry-run` an object with `path` and `editor`.";

/// Every command that prints JSON. Calls run in this order on one vault.
const REPLIES: &[Reply] = &[
    Reply("index", "IndexReply", &[&["index"]], ""),
    Reply(
        "search",
        "SearchReply",
        &[&["search", "gauge"], &["search", "river level", "--explain"], &["search", "tag:#boat"]],
        "",
    ),
    Reply("read", "ReadReply", &[&["read", "Varnish log"]], ""),
    Reply("list", "Vec<NoteItem>", &[&["list"]], ""),
    Reply("tags", "Vec<TagItem>", &[&["tags"]], ""),
    Reply("properties", "Vec<PropertyItem>", &[&["properties"]], ""),
    Reply("recent", "Vec<NoteItem>", &[&["recent"]], ""),
    Reply("random", "Vec<NoteItem>", &[&["random", "--seed", "1"]], ""),
    Reply("outline", "Vec<Heading>", &[&["outline", "Restoring Lerke"]], ""),
    Reply("tasks", "Vec<TaskItem>", &[&["tasks"]], ""),
    Reply("links", "LinksReply", &[&["links", "Varnish log"], &["links", "Every way to link"]], ""),
    Reply("backlinks", "Vec<Backlink>", &[&["backlinks", "Varnish log"]], ""),
    Reply("unresolved", "Vec<UnresolvedItem>", &[&["unresolved"]], ""),
    Reply("orphans", "Vec<NoteItem>", &[&["orphans"]], ""),
    Reply("path", "PathReply", &[&["path", "Sourdough bread", "Rating curves"]], ""),
    Reply("open", "OpenReply", &[&["open", "Varnish log", "--dry-run"]], ""),
    Reply("related", "RelatedReply", &[&["related", "Varnish log"]], ""),
    Reply("mentions", "MentionsReply", &[&["mentions", "Mei-Ling Zhou"]], ""),
    Reply(
        "ask-why",
        "WhyReply",
        &[&["ask-why", "varnish", "Varnish log"], &["ask-why", "tag:#boat", "Rating curves"]],
        "",
    ),
    Reply(
        "inspect",
        "InspectReply",
        &[&["inspect", "Every way to link"], &["inspect", "Varnish log"]],
        "Spans are byte offsets in the file.",
    ),
    Reply("status", "Status", &[&["status"]], ""),
    Reply(
        "check",
        "CheckReply",
        &[&["check"]],
        "With `--write-baseline` an object with `file` and `problems`, the number recorded.",
    ),
    Reply("repair", "RepairReply", &[&["repair"]], ""),
    Reply("conflicts", "ConflictsReply", &[&["conflicts"]], ""),
    Reply("conflicts merge", "MergeCopiesReply", &[], ""),
    Reply("git init", "GitInitReply", &[], ""),
    Reply("merge-driver", "MergeDriverReply", &[], ""),
    Reply("diff", "DiffReply", &[&["diff", "first", "HEAD"], &["diff", "first"]], ""),
    Reply("doctor", "Diagnosis", &[&["doctor"]], ""),
    Reply("self-check", "SelfCheckReply", &[], ""),
    Reply("task", CHANGE, &[&["task", "Projects/Boat/Plan", "New rubbing strake"]], ""),
    Reply(
        "new",
        CHANGE,
        &[&["new", "Winter moorings", "--content", "Ask at the lock."], &["new", "Other", "--dry-run"]],
        "",
    ),
    Reply(
        "append",
        CHANGE,
        &[&["append", "Winter moorings", "More."], &["append", "Winter moorings", "First.", "--start"]],
        "",
    ),
    Reply("replace", CHANGE, &[&["replace", "Winter moorings", "--old", "More.", "--new", "Less."]], ""),
    Reply("edit", "EditReply", &[], PLAN),
    Reply(
        "set",
        CHANGE,
        &[
            &["set", "Winter moorings", "status", "open"],
            &["set", "Winter moorings", "status", "--remove"],
            &["set", "Winter moorings", "aliases", "Berths", "--add"],
        ],
        "",
    ),
    Reply("tag", CHANGE, &[&["tag", "Winter moorings", "+boat"]], ""),
    Reply("link", CHANGE, &[&["link", "Winter moorings", "Varnish log"]], ""),
    Reply("unlink", CHANGE, &[&["unlink", "Winter moorings", "Varnish log"]], ""),
    Reply("move", CHANGE, &[&["move", "Projects/Boat/Varnish log.md", "Reference/Varnish log.md"]], ""),
    Reply(
        "rename",
        CHANGE,
        &[
            &["rename", "Varnish log", "Coats of varnish"],
            &["rename", "--heading", "Rating curves", "The power law", "Power law"],
            &["rename", "--block", "Projects/Boat/Plan", "caulk", "seam"],
            &["rename", "--tag", "boat", "lerke"],
            &["rename", "--property", "aliases", "names", "--dry-run"],
        ],
        "",
    ),
    Reply(
        "extract",
        CHANGE,
        &[&["extract", "Restoring Lerke", "--section", "Rig", "--to", "Rig of Lerke"]],
        "",
    ),
    Reply("merge", CHANGE, &[&["merge", "Rig of Lerke", "Restoring Lerke"]], ""),
    Reply("delete", CHANGE, &[&["delete", "Winter moorings"]], ""),
    Reply("restore", CHANGE, &[&["restore", "Winter moorings"]], ""),
    Reply("undo", "Vec<ChangeReply>", &[&["undo"]], "One for each operation that was taken back."),
    Reply("redo", CHANGE, &[&["redo"]], ""),
    Reply(
        "history",
        "Vec<ActivityEvent>",
        &[&["history"]],
        "The newest first. With the id of an operation an OperationView. With `--git` a NoteHistory. What an agent did has `client`, `tool`, `toolset` and mostly `session`.",
    ),
    Reply(
        "memory save",
        "SaveReply",
        &[&["memory", "save", "We keep gauge 4 on the bridge until spring"]],
        "",
    ),
    Reply("memory search", "Vec<MemoryHit>", &[&["memory", "search", "gauge"]], ""),
    Reply("memory list", "Vec<Memory>", &[&["memory", "list"]], ""),
    Reply("memory stats", "MemoryStats", &[&["memory", "stats"]], ""),
    Reply("memory pin", CHANGE, &[&["memory", "pin", "Prefers metric units"]], ""),
    Reply("memory unpin", CHANGE, &[&["memory", "unpin", "Prefers metric units"]], ""),
    Reply("memory tier", CHANGE, &[&["memory", "tier", "Prefers metric units", "archive"]], ""),
    Reply("memory vote", "Memory", &[&["memory", "vote", "Prefers metric units", "up"]], ""),
    Reply(
        "memory explain",
        "ExplainReply",
        &[&["memory", "explain", "Prefers metric units", "--query", "feet"]],
        "",
    ),
    Reply("memory recall", "CountedRecall", &[&["memory", "recall", "does Hanne want feet or metres?"]], ""),
    Reply("memory set-context", "WorkContext", &[&["memory", "set-context", "The report on gauge 4"]], ""),
    Reply(
        "memory clear-context",
        "Cleared",
        &[&["memory", "clear-context", "--dry-run"], &["memory", "clear-context"]],
        "",
    ),
    Reply("memory timeline", "TimelineReply", &[&["memory", "timeline", "Prefers metric units"]], ""),
    Reply(
        "memory audit",
        "Vec<Event>",
        &[&["memory", "audit"]],
        "The newest first. What an agent did has `client`, `tool`, `toolset` and mostly `session`.",
    ),
    Reply("memory forget", CHANGE, &[&["memory", "forget", "Prefers metric units"]], ""),
    Reply("memory restore", CHANGE, &[&["memory", "restore", "Prefers metric units"]], ""),
    Reply("memory maintain", "MaintainReply", &[&["memory", "maintain", "--force"]], ""),
    Reply("memory cleanup", "CleanupReply", &[&["memory", "cleanup", "--dry-run"]], ""),
    Reply(
        "memory import",
        "ImportReply",
        &[],
        "With the source `server-memory` a [GraphImportReply](#graphimportreply); with `chatgpt`, `claude`, `claude-code` or `mem0` \
         a [NotesImportReply](#notesimportreply).",
    ),
    Reply(
        "handoff store",
        "HandoffReply",
        &[&["handoff", "store", "--project", "gauges", "--summary", "Done"]],
        "",
    ),
    Reply("handoff show", "HandoffText", &[&["handoff", "show"]], ""),
    Reply("backup", "BackupItem", &[&["backup"]], "With `--dry-run` an object with `folder` and `notes`."),
    Reply("backup list", "Vec<BackupItem>", &[&["backup", "list"]], ""),
    Reply(
        "backup restore",
        "RestoreReply",
        &[&["backup", "restore", "memory_backup_20261121_000000", "--dry-run"]],
        "",
    ),
    Reply("eval", "Vec<EvalReply>", &[], ""),
    Reply("model list", "Vec<ModelItem>", &[&["model", "list"]], ""),
    Reply("model show", "ModelsShown", &[&["model", "show"]], ""),
    Reply("model use", "ModelSet", &[&["model", "use", "none", "--dry-run"]], ""),
    Reply("model path", "ModelSet", &[], ""),
    Reply("model install", "Installed", &[], ""),
    Reply("model verify", "Vec<Verified>", &[], ""),
    Reply("team init", "TablesReply", &[], ""),
    Reply("team create", "TransferReply", &[], ""),
    Reply("team export", "TransferReply", &[], ""),
    Reply("team restore", "VaultRestoreReply", &[], ""),
    Reply("team clean", "CleanReply", &[], "Without a name an array of them, one for each vault."),
    Reply("team quota", "QuotaReply", &[], ""),
    Reply("team rename", "RenameReply", &[], ""),
    Reply("team delete", "DeleteReply", &[], "With `--now` a CleanReply."),
    Reply("team undelete", "DeleteReply", &[], ""),
    Reply("team check", "TeamCheck", &[], "Without a name an array of them, one for each vault."),
    Reply("team grant", "RoleReply", &[], ""),
    Reply("team revoke", "RoleReply", &[], ""),
    Reply("team block", "BlockReply", &[], ""),
    Reply("team unblock", "BlockReply", &[], ""),
    Reply("team forget", "ForgetReply", &[], ""),
    Reply("team list", "VaultList", &[], ""),
    Reply(
        "team audit",
        "Vec<Event>",
        &[],
        "The oldest first. What a person did has `caller` (`issuer`, `subject`, `name`, `client_id`) and `tool`; what an \
         operator did has `who`, `operator` and, for roles, `role` and `role_before`.",
    ),
    Reply(
        "sync",
        "SyncReply",
        &[],
        "With `--watch`, one object a line, with `event`: `synchronised` with these fields, `lost` with `error`, or `found`.",
    ),
    Reply(
        "login",
        "LoginReply",
        &[],
        "One object a line, with `event`: `open` with the `address` for the browser, then `logged-in` with these fields. With \
         `--dry-run` a [LoginPlan](#loginplan), with `--list` an array of LoginReply, with `--forget` a \
         [ForgetLoginReply](#forgetloginreply).",
    ),
    Reply("login passphrase", "PassphraseReply", &[], ""),
    Reply("login list", "Vec<GrantInfo>", &[&["login", "list"]], ""),
    Reply("login revoke", "RevokeReply", &[&["login", "revoke", "--all", "--dry-run"]], ""),
    Reply("login log", "Vec<AuditEntry>", &[&["login", "log"]], ""),
    Reply("team sync", "SyncReply", &[], "As `sync`."),
    Reply("team login", "LoginReply", &[], "As `login`."),
    Reply("config show", "Vec<Setting>", &[&["config", "show"]], ""),
    Reply("config set", "ConfigEdit", &[&["config", "set", "search.limit", "20", "--dry-run"]], ""),
    Reply("config unset", "ConfigEdit", &[&["config", "unset", "search.limit", "--dry-run"]], ""),
    Reply("man", "Vec<PathBuf>", &[], "With `--dir`: the files that were written."),
    Reply(
        "watch",
        "Vec<Followed>",
        &[],
        "One object a line, a line a batch. With `--stats` a last object, Staleness.",
    ),
    Reply(
        "hook config",
        "ConfigWritten",
        &[],
        "With `--write`; without it the settings themselves are printed.",
    ),
    Reply(
        "mcp config",
        "ConfigWritten",
        &[],
        "With `--write`; without it the settings themselves are printed, for `chatgpt` and `claude-web` an object with \
         `steps`.",
    ),
    Reply("memory consolidate", "ConsolidateReply", &[&["memory", "consolidate", "--dry-run"]], ""),
    Reply("memory review", "ReviewReply", &[&["memory", "review"]], ""),
    Reply("proposals", "ProposalsReply", &[&["proposals"]], ""),
    Reply("proposals list", "ProposalsReply", &[&["proposals", "list"]], ""),
    Reply("proposals show", "ProposalReply", &[], ""),
    Reply("proposals accept", "AcceptedProposals", &[&["proposals", "accept", "--all", "--dry-run"]], ""),
    Reply("proposals reject", "RejectReply", &[], ""),
    Reply("proposals reopen", "ReopenReply", &[], ""),
    Reply("proposals edit", "ProposalReply", &[], ""),
];

/// Commands that print no JSON of their own, and what they do instead.
const OTHERS: [(&str, &str); 7] = [
    ("completions", "prints a script"),
    ("hook", "answers in the form that the agent's hooks read"),
    ("mcp", "speaks the Model Context Protocol"),
    ("memory-tool", "answers each line of JSON with a line of JSON"),
    ("web", "prints the address of its page"),
    ("memory export", "writes the export in the form that `--format` names"),
    ("team serve", "serves the Model Context Protocol over HTTP"),
];

/// Types that write themselves, with the kind of JSON value that they are and what it says.
const LEAVES: [(&str, &str, &str); 14] = [
    ("Timestamp", "string", "string (RFC 3339)"),
    ("NotePath", "string", "string"),
    ("Uuid", "string", "string (UUID)"),
    ("ContentHash", "string", "string"),
    ("LinkForm", "string", "string"),
    ("SyncProgram", "string", "string"),
    ("Origin", "any", "string or object"),
    ("Span", "any", "span"),
    ("FileLocation", "any", "object with `vault` or `trash`, a path"),
    ("LineRef", "any", "array of a vault path and a line"),
    ("Wording", "string", "string"),
    ("Content", "any", "`keep`, or object with `edits` (array of [Edit](#edit)) or `whole` (string)"),
    ("QuotaSetting", "any", "`default`, `none`, or number"),
    ("Value", "any", "any"),
];

/// One field of a reply, or one value of an enumeration.
#[derive(Debug, Clone)]
struct Field {
    name: String,
    ty: String,
    meaning: String,
    is_optional: bool,
    is_flat: bool,
}

/// A type of the source that can be written as JSON.
#[derive(Debug, Clone)]
struct Type {
    name: String,
    file: PathBuf,
    meaning: String,
    is_enum: bool,
    fields: Vec<Field>,
}

/// Writes a variant's name as serde does.
fn renamed(name: &str, style: Option<&str>) -> String {
    let parted = |sign: char| {
        let mut out = String::new();
        for (at, c) in name.chars().enumerate() {
            if c.is_uppercase() && at > 0 {
                out.push(sign);
            }
            out.extend(c.to_lowercase());
        }
        out
    };
    match style {
        Some("lowercase") => name.to_lowercase(),
        Some("UPPERCASE") => name.to_uppercase(),
        Some("kebab-case") => parted('-'),
        Some("snake_case") => parted('_'),
        Some(other) => panic!("{name} is renamed by {other}"),
        None => name.to_owned(),
    }
}

/// Reads the value that an attribute gives a name: `rename_all = "lowercase"`.
fn given<'a>(attributes: &'a str, name: &str) -> Option<&'a str> {
    attributes.split(&format!("{name} = \"")).nth(1)?.split('"').next()
}

/// Reads the types of one source file that derive `Serialize`.
fn types_of(file: &Path, text: &str) -> Vec<Type> {
    let (mut found, mut docs, mut attributes) = (Vec::new(), String::new(), String::new());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let bare = line
            .trim_start_matches("pub ")
            .trim_start_matches("pub(crate) ")
            .trim_start_matches("pub(super) ");
        if let Some(told) = line.strip_prefix("///") {
            docs.push_str(told);
        } else if line.starts_with("#[") {
            attributes.push_str(line);
        } else if let Some((kind, rest)) =
            bare.split_once(' ').filter(|(kind, _)| matches!(*kind, "struct" | "enum"))
            && let Some(name) = rest.strip_suffix(" {")
            && attributes.split("derive(").nth(1).is_some_and(|derived| derived.contains("Serialize"))
        {
            let is_enum = kind == "enum";
            let fields = fields(&mut lines, is_enum, given(&attributes, "rename_all"));
            let meaning = docs.trim().to_owned();
            found.push(Type { name: name.to_owned(), file: file.to_path_buf(), meaning, is_enum, fields });
            docs.clear();
            attributes.clear();
        } else {
            docs.clear();
            attributes.clear();
        }
    }
    found
}

/// Reads the fields of a type up to its end.
fn fields<'a>(lines: &mut impl Iterator<Item = &'a str>, is_enum: bool, style: Option<&str>) -> Vec<Field> {
    let (mut found, mut docs, mut attributes, mut code) =
        (Vec::new(), String::new(), String::new(), String::new());
    for line in lines {
        let line = match line {
            "}" => break,
            line => line.trim(),
        };
        if let Some(told) = line.strip_prefix("///") {
            docs.push_str(told);
            continue;
        }
        let is_attribute = line.starts_with("#[")
            || (!attributes.is_empty() && !attributes.ends_with(")]") && !attributes.ends_with("t]"));
        if is_attribute && code.is_empty() {
            attributes.push_str(line);
            continue;
        }
        code.push_str(line);
        if !line.ends_with(',') {
            continue;
        }
        let declared = code.trim_end_matches(',').trim_start_matches("pub ");
        let declared = declared
            .split_once(") ")
            .filter(|(seen, _)| seen.starts_with("pub("))
            .map_or(declared, |(_, rest)| rest);
        let (name, ty) = match declared.split_once(": ").filter(|_| !is_enum) {
            Some((name, ty)) => (name.to_owned(), ty.to_owned()),
            None => (renamed(declared, style), String::new()),
        };
        let ty = if attributes.contains("serialize_with") { "String".to_owned() } else { ty };
        if !attributes.contains("serde(skip)") {
            found.push(Field {
                name: given(&attributes, "rename").unwrap_or(&name).to_owned(),
                ty,
                meaning: docs.trim().to_owned(),
                is_optional: attributes.contains("skip_serializing_if"),
                is_flat: attributes.contains("flatten"),
            });
        }
        docs.clear();
        attributes.clear();
        code.clear();
    }
    found
}

/// Gives the text between the angle brackets of `name<…>`.
fn inner<'a>(ty: &'a str, name: &str) -> Option<&'a str> {
    ty.strip_prefix(name)?.strip_prefix('<')?.strip_suffix('>')
}

/// Parts types at their commas, outside of brackets.
fn parted(types: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut from) = (Vec::new(), 0, 0);
    for (at, c) in types.char_indices() {
        match c {
            '<' | '(' | '[' => depth += 1,
            '>' | ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(types[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(types[from..].trim());
    parts
}

/// What a Rust type is in JSON.
enum Shape<'a> {
    String,
    Integer,
    Number,
    Boolean,
    Nullable(&'a str),
    Array(&'a str),
    Tuple(Vec<&'a str>),
    Object(&'a str),
    Leaf(&'static str, &'static str),
    Named(&'a str),
}

fn shape(ty: &str) -> Shape<'_> {
    let ty = ty.trim().trim_start_matches("&'static ");
    let last =
        ty.rsplit("::").next().filter(|_| !ty.contains('<') && !ty.starts_with(['(', '['])).unwrap_or(ty);
    if let Some((_, kind, told)) = LEAVES.iter().find(|(name, ..)| *name == last) {
        return Shape::Leaf(kind, told);
    }
    if let Some(ty) = inner(ty, "Option") {
        return Shape::Nullable(ty);
    }
    if let Some(ty) = ["Vec", "BTreeSet"].iter().find_map(|name| inner(ty, name)) {
        return Shape::Array(ty);
    }
    if let Some(types) = ["BTreeMap", "HashMap", "Map"].iter().find_map(|name| inner(ty, name)) {
        return Shape::Object(parted(types)[1]);
    }
    if let Some(types) = ty.strip_prefix('(').and_then(|ty| ty.strip_suffix(')')) {
        return Shape::Tuple(parted(types));
    }
    if let Some((ty, _)) = ty.strip_prefix('[').and_then(|ty| ty.strip_suffix(']')?.split_once("; ")) {
        return Shape::Array(ty);
    }
    match ty {
        "String" | "str" | "PathBuf" | "char" | "Arc<str>" | "Box<str>" => Shape::String,
        "bool" => Shape::Boolean,
        "f32" | "f64" => Shape::Number,
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" | "i32" | "i64" => Shape::Integer,
        _ => Shape::Named(ty),
    }
}

/// All types of the source, and which of them were named so far.
struct Types {
    all: Vec<Type>,
    named: Vec<usize>,
    /// The text of each file.
    texts: BTreeMap<PathBuf, String>,
}

impl Types {
    fn read() -> Self {
        let files = source_files();
        let mut all: Vec<Type> =
            files.iter().flat_map(|file| types_of(Path::new(&file.path), &file.text)).collect();
        // What `json!` makes of one value.
        all.push(Type {
            name: "Cleared".to_owned(),
            file: PathBuf::from("cli/memory/context.rs"),
            meaning: "What became of the context.".to_owned(),
            is_enum: false,
            fields: vec![
                Field {
                    name: "cleared".to_owned(),
                    ty: "bool".to_owned(),
                    meaning: "Whether there was a context, which is gone.".to_owned(),
                    is_optional: false,
                    is_flat: false,
                },
                Field {
                    name: "would_clear".to_owned(),
                    ty: "bool".to_owned(),
                    meaning: "With `--dry-run`: whether there is one.".to_owned(),
                    is_optional: true,
                    is_flat: false,
                },
            ],
        });
        let texts = files.into_iter().map(|file| (PathBuf::from(file.path), file.text)).collect();
        Self { all, named: Vec::new(), texts }
    }

    /// Finds a type by its name: in the same file, else the only one, else what the file imports.
    fn find(&self, name: &str, file: &Path) -> usize {
        let (above, last) = name.rsplit_once("::").unwrap_or(("", name));
        let found: Vec<usize> = (0..self.all.len()).filter(|at| self.all[*at].name == last).collect();
        let imports = self.texts.get(file).map(String::as_str).unwrap_or_default();
        let is_meant = |at: &&usize| {
            let module = self.all[**at].file.with_extension("").display().to_string().replace('/', "::");
            if !above.is_empty() {
                return module.ends_with(above);
            }
            // A layer's types are imported from their module, or from the layer.
            let layer = format!("crate::{}::", module.split("::").next().unwrap_or_default());
            imports.split("use ").skip(1).any(|import| {
                let import = import.split(';').next().unwrap_or_default();
                let is_named = import.split(|c: char| !c.is_alphanumeric()).any(|word| word == last);
                is_named && (import.contains(&module) || import.starts_with(&layer))
            })
        };
        match found.as_slice() {
            [] => panic!("{name} in {} is not found", file.display()),
            [only] => *only,
            several => {
                let same = several.iter().find(|at| self.all[**at].file == *file && above.is_empty());
                *same.or_else(|| several.iter().find(is_meant)).unwrap_or_else(|| {
                    let files: Vec<_> = several.iter().map(|at| &self.all[*at].file).collect();
                    panic!("{name} in {} may be of {files:?}", file.display())
                })
            }
        }
    }

    /// Gives the title of a type's section.
    fn title(&self, at: usize) -> String {
        let one = &self.all[at];
        let is_first = self.named.iter().find(|other| self.all[**other].name == one.name) == Some(&at);
        match is_first {
            true => one.name.clone(),
            false => format!("{} of {}", one.name, one.file.file_stem().unwrap().display()),
        }
    }

    /// Says what a type is in JSON, and remembers the types that it names.
    fn shown(&mut self, ty: &str, file: &Path) -> String {
        match shape(ty) {
            Shape::String => "string".to_owned(),
            Shape::Integer => "integer".to_owned(),
            Shape::Number => "number".to_owned(),
            Shape::Boolean => "boolean".to_owned(),
            Shape::Nullable(ty) => format!("{} or null", self.shown(ty, file)),
            Shape::Array(ty) => format!("array of {}", self.shown(ty, file)),
            Shape::Object(ty) => format!("object of {}", self.shown(ty, file)),
            Shape::Tuple(types) => {
                let types: Vec<String> = types.iter().map(|ty| self.shown(ty, file)).collect();
                format!("array ({})", types.join(", "))
            }
            Shape::Leaf(_, told) => {
                if told.contains("(#edit)") {
                    self.shown("Edit", file);
                }
                told.to_owned()
            }
            Shape::Named(name) => {
                let at = self.find(name, file);
                if !self.named.contains(&at) {
                    self.named.push(at);
                }
                let title = self.title(at);
                format!("[{title}](#{})", title.to_lowercase().replace(' ', "-"))
            }
        }
    }

    /// Lists the fields of a type as JSON has them, with the file that each stands in; `None` where any key may occur.
    fn flat(&self, at: usize) -> (Vec<(Field, PathBuf)>, bool) {
        let (mut found, mut is_open) = (Vec::new(), false);
        let one = &self.all[at];
        for field in &one.fields {
            if !field.is_flat {
                found.push((field.clone(), one.file.clone()));
                continue;
            }
            match shape(&field.ty) {
                Shape::Object(_) => is_open = true,
                Shape::Named(name) => {
                    let (inner, open) = self.flat(self.find(name, &one.file));
                    found.extend(inner);
                    is_open |= open;
                }
                Shape::Nullable(ty) => {
                    let Shape::Named(name) = shape(ty) else { panic!("{ty} is flattened") };
                    let (inner, open) = self.flat(self.find(name, &one.file));
                    found.extend(
                        inner.into_iter().map(|(field, file)| (Field { is_optional: true, ..field }, file)),
                    );
                    is_open |= open;
                }
                _ => panic!("{} is flattened", field.ty),
            }
        }
        (found, is_open)
    }

    /// Writes the section of a type.
    fn section(&mut self, at: usize) -> String {
        let one = self.all[at].clone();
        let title = self.title(at);
        let mut text = format!("### {title}\n\n{}\n\n", prose(&sentence(&linked(&one.meaning))));
        if one.is_enum {
            text.push_str("| Value | Meaning |\n| --- | --- |\n");
            for field in &one.fields {
                writeln!(text, "| {} | {} |", code(&field.name), prose(&sentence(&linked(&field.meaning))))
                    .unwrap();
            }
            text.push('\n');
            return text;
        }
        text.push_str("| Field | Type | Meaning |\n| --- | --- | --- |\n");
        let (fields, is_open) = self.flat(at);
        for (field, file) in fields {
            let ty = match shape(&field.ty) {
                // What would be null is left out.
                Shape::Nullable(inner) if field.is_optional => self.shown(inner, &file),
                _ => self.shown(&field.ty, &file),
            };
            let mark = if field.is_optional { " (optional)" } else { "" };
            let meaning = prose(&sentence(&linked(&field.meaning)));
            assert!(
                !meaning.is_empty(),
                "nothing is said of {} in {} of {}",
                field.name,
                one.name,
                file.display()
            );
            writeln!(text, "| {}{mark} | {ty} | {meaning} |", code(&field.name)).unwrap();
        }
        text.push('\n');
        if is_open {
            text.push_str("Other fields may follow.\n\n");
        }
        text
    }

    /// Describes how a value differs from its type.
    fn differs(&self, value: &Value, ty: &str, file: &Path, at: &str, told: &mut BTreeSet<String>) {
        let mut is = |fits: bool, what: &str| {
            if !fits {
                told.insert(format!("{at} is {value}, not {what}"));
            }
        };
        match shape(ty) {
            Shape::String => is(value.is_string(), "a string"),
            Shape::Integer => is(value.is_i64() || value.is_u64(), "an integer"),
            Shape::Number => is(value.is_number() || value.is_null(), "a number"),
            Shape::Boolean => is(value.is_boolean(), "a boolean"),
            Shape::Leaf(kind, _) => is(kind == "any" || value.is_string(), kind),
            Shape::Nullable(ty) => {
                if !value.is_null() {
                    self.differs(value, ty, file, at, told);
                }
            }
            Shape::Array(ty) => match value.as_array() {
                Some(items) => {
                    items.iter().for_each(|item| self.differs(item, ty, file, &format!("{at}[]"), told))
                }
                None => is(false, "an array"),
            },
            Shape::Tuple(types) => match value.as_array().filter(|items| items.len() == types.len()) {
                Some(items) => {
                    for (item, ty) in items.iter().zip(types) {
                        self.differs(item, ty, file, &format!("{at}[]"), told);
                    }
                }
                None => is(false, "an array of that length"),
            },
            Shape::Object(ty) => match value.as_object() {
                Some(items) => {
                    items.values().for_each(|item| self.differs(item, ty, file, &format!("{at}{{}}"), told))
                }
                None => is(false, "an object"),
            },
            Shape::Named(name) => {
                let found = self.find(name, file);
                if self.all[found].is_enum {
                    let known = self.all[found].fields.iter().any(|field| *value == field.name);
                    return is(known, name);
                }
                let Some(object) = value.as_object() else { return is(false, "an object") };
                let (fields, is_open) = self.flat(found);
                for (field, file) in &fields {
                    let inner = format!("{at}.{}", field.name);
                    match object.get(&field.name) {
                        Some(value) => self.differs(value, &field.ty, file, &inner, told),
                        None if !field.is_optional => {
                            told.insert(format!("{inner} is missing"));
                        }
                        None => {}
                    }
                }
                let known: BTreeSet<&str> = fields.iter().map(|(field, _)| field.name.as_str()).collect();
                for name in object.keys().filter(|name| !known.contains(name.as_str()) && !is_open) {
                    told.insert(format!("{at}.{name} is not known"));
                }
            }
        }
    }
}

/// Takes the brackets off a reference to code.
fn linked(text: &str) -> String {
    text.replace("[`", "`").replace("`]", "`")
}

/// The page's words on errors.
const ERRORS: &str = "\
## Errors

With `--json` an error is one object on standard error, and standard output is empty:

| Field | Type | Meaning |
| --- | --- | --- |
| `error.kind` | string | `internal`, `invalid`, `not-found`, `exists`, `conflict`, `quota`, `io` or `corrupt` |
| `error.message` | string | what is wrong |
| `error.hint` | string or null | what to do |

[Exit codes](exit-codes.md) go with these kinds.
";

#[test]
fn json_replies_of_the_reference_are_those_of_the_program() {
    let root = commands::tree();
    let runnable: Vec<String> = commands::commands(&root)
        .into_iter()
        .filter(|(_, command)| !command.is_subcommand_required_set())
        .map(|(words, _)| words)
        .collect();
    let told: BTreeMap<&str, &Reply> = REPLIES.iter().map(|reply| (reply.0, reply)).collect();
    for words in &runnable {
        let is_other = OTHERS.iter().any(|(other, _)| other == words);
        assert!(told.contains_key(words.as_str()) || is_other, "nothing is said of the reply of {words}");
    }
    for reply in REPLIES {
        assert!(runnable.iter().any(|words| words == reply.0), "{} is no command", reply.0);
    }
    let (mut types, home) = (Types::read(), PathBuf::from("cli/mod.rs"));
    let mut page = format!(
        "# JSON replies\n\n{MADE}\n\nWith `--json` a command prints one JSON value on standard output; `watch` prints \
         one on each line. Fields marked *optional* are left out where they say nothing. Fields may be added; a field \
         that is here keeps its name and type.\n\n## Commands\n\n| Command | Reply |\n| --- | --- |\n"
    );
    for words in &runnable {
        let (ty, more) = match told.get(words.as_str()) {
            Some(reply) => (types.shown(reply.1, &home), reply.3),
            None => {
                let (_, what) = OTHERS.iter().find(|(other, _)| other == words).unwrap();
                (format!("none: it {what}"), "")
            }
        };
        let more = if more.is_empty() { String::new() } else { format!(". {more}") };
        writeln!(page, "| `{words}` | {ty}{more} |").unwrap();
    }
    // What only notes about commands name.
    for name in
        ["Staleness", "NoteHistory", "LoginPlan", "ForgetLoginReply", "GraphImportReply", "NotesImportReply"]
    {
        types.shown(name, &home);
    }
    page.push_str("\n## Types\n\nA *span* is an array of two integers: the first byte of a part of the file, and the first behind it.\n\n");
    let mut done = 0;
    while let Some(at) = types.named.get(done).copied() {
        page.push_str(&types.section(at));
        done += 1;
    }
    assert!(done >= 60, "only {done} types were found");
    page.push_str(ERRORS);
    check_page("json.md", &page);
}

#[test]
fn replies_are_what_the_reference_says() {
    let (types, vault) = (Types::read(), TestVault::example());
    vault.write(".gitignore", ".home/\n.sidenote/\n");
    init(&vault);
    git(vault.root(), &["tag", "first"]);
    vault.write("Loose ends.md", "See [[Varnish log]] and [[nowhere]].\n");
    git(vault.root(), &["add", "--all"]);
    git(vault.root(), &["commit", "-qm", "second"]);
    vault.remove("Loose ends.md");
    let (mut told, mut calls) = (BTreeSet::new(), 0);
    for Reply(words, ty, runs, _) in REPLIES {
        for args in *runs {
            calls += 1;
            let done = vault.run(&[args, &["--json"][..]].concat());
            if !done.status.success() {
                told.insert(format!("{words}: {args:?} fails: {}", stderr(&done)));
                continue;
            }
            let value: Value = serde_json::from_str(&stdout(&done)).unwrap();
            types.differs(&value, ty, &PathBuf::from("cli/mod.rs"), words, &mut told);
        }
    }
    assert!(told.is_empty(), "{told:#?}");
    assert!(calls >= 75, "only {calls} calls were made");
    let wrong = vault.run(&["read", "nowhere at all", "--json"]);
    let error: Value = serde_json::from_str(&stderr(&wrong)).unwrap();
    let fields: Vec<&str> = error["error"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        (fields.as_slice(), &error["error"]["kind"]),
        (["kind", "message", "hint"].as_slice(), &"not-found".into())
    );
}
