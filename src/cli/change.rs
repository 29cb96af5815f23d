//! The commands that change notes. Each makes an [`Operation`]; `Store` plans it and carries it out.

use std::ffi::OsString;
use std::io::Read as _;

use clap::{Args, Subcommand, ValueEnum};
use console::style;
use serde::Serialize;
use serde_json::Value;

use super::{Session, output};
use crate::error::{Error, Result};
use crate::store::{
    ChangeReply, DanglingLinks, DeleteRequest, EditRequest, Edited, Event, ExtractRequest, InspectReply,
    MergeRequest, MoveRequest, NewRequest, NoteEdit, Operation, PartKind, PartRequest, RelateRequest,
    RenameRequest, Renamed, UndoRequest,
};
use crate::text::unlinked_reference::UnlinkedReferenceKind;

/// What every command that changes something takes.
#[derive(Debug, Args)]
pub(super) struct Dry {
    /// Change nothing; show what would change: a diff, with --json the plan byte for byte.
    #[arg(long)]
    dry_run: bool,
}

/// `--dry-run` for what is no plan of bytes.
#[derive(Debug, Args)]
pub(super) struct DryPlan {
    /// Change nothing; say what would be done.
    #[arg(long)]
    pub(super) dry_run: bool,
}

impl Dry {
    /// Says whether nothing may change.
    pub(super) fn is_set(&self) -> bool {
        self.dry_run
    }
}

/// What every command that edits one note takes.
#[derive(Debug, Args)]
pub(super) struct OneNote {
    /// Change the note only if its bytes have this hash (`sidenote inspect` shows it).
    #[arg(long, value_name = "HASH")]
    expect_hash: Option<String>,
    #[command(flatten)]
    dry: Dry,
}

/// Make a note. Prints its path.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote new \"Trip to Kyoto\" --folder Travel --tag travel
  git log -1 | sidenote new \"Release notes\" --content -
  sidenote new --daily")]
pub(super) struct NewArgs {
    /// The title; the file is named after it.
    #[arg(required_unless_present = "daily")]
    title: Option<String>,
    /// The text; - reads standard input.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    content: Option<String>,
    /// The folder, from the vault's root.
    #[arg(long)]
    folder: Option<String>,
    /// The category; also the folder, where none is given.
    #[arg(long)]
    category: Option<String>,
    /// A tag; may be repeated.
    #[arg(long = "tag")]
    tags: Vec<String>,
    /// The type.
    #[arg(long = "type", value_name = "TYPE")]
    note_type: Option<String>,
    /// A property; may be repeated. VALUE is read as JSON where it is JSON, else as text.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Start from this note, with {{title}}, {{date}} and {{time}} filled in.
    #[arg(long)]
    template: Option<String>,
    /// Make today's daily note, as Obsidian would; where there is one, add the text to it.
    #[arg(long, conflicts_with = "title")]
    daily: bool,
    #[command(flatten)]
    dry: Dry,
}

/// Add text at the end of a note or section.
#[derive(Debug, Args)]
pub(super) struct AppendArgs {
    /// The note: path, id, title, alias, file name or [[wikilink]].
    note: String,
    /// The text; - reads standard input.
    #[arg(allow_hyphen_values = true)]
    text: String,
    /// Only in the section of this heading.
    #[arg(long, value_name = "HEADING")]
    section: Option<String>,
    #[command(flatten)]
    one: OneNote,
}

/// Replace a text in a note, wherever it stands.
#[derive(Debug, Args)]
pub(super) struct ReplaceArgs {
    /// The note.
    note: String,
    /// The text as it is.
    #[arg(long, allow_hyphen_values = true)]
    old: String,
    /// The text as it shall be.
    #[arg(long, allow_hyphen_values = true)]
    new: String,
    /// Refuse unless the text occurs this many times; 1 where not given.
    #[arg(long, default_value_t = 1, value_name = "N")]
    count: usize,
    #[command(flatten)]
    one: OneNote,
}

/// Set a property of a note; several values make a list.
#[derive(Debug, Args)]
pub(super) struct SetArgs {
    /// The note.
    note: String,
    /// The property.
    key: String,
    /// The value: read as JSON where it is JSON, else as text.
    #[arg(required = true, allow_negative_numbers = true)]
    values: Vec<String>,
    #[command(flatten)]
    one: OneNote,
}

/// Remove a property of a note.
#[derive(Debug, Args)]
pub(super) struct UnsetArgs {
    /// The note.
    note: String,
    /// The property.
    key: String,
    #[command(flatten)]
    one: OneNote,
}

/// Add a value to a list property of a note.
#[derive(Debug, Args)]
pub(super) struct AddArgs {
    /// The note.
    note: String,
    /// The property.
    key: String,
    /// The value.
    #[arg(allow_hyphen_values = true)]
    value: String,
    #[command(flatten)]
    one: OneNote,
}

/// Add tags to a note and remove tags from it: `sidenote tag Plan +urgent -draft`.
#[derive(Debug, Args)]
pub(super) struct TagArgs {
    /// The note.
    note: String,
    /// Tags: +TAG adds one, -TAG removes one.
    #[arg(value_name = "+TAG|-TAG", required_unless_present = "remove")]
    tags: Vec<String>,
    /// Removes a tag: what -TAG stands for; may be repeated.
    #[arg(long, value_name = "TAG")]
    remove: Vec<String>,
    #[command(flatten)]
    one: OneNote,
}

/// Check a task off, or open it again; `sidenote tasks` lists them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote task Plan \"call the harbour\"
  sidenote task Plan 12 --status /
  sidenote task Plan 12 --todo --dry-run")]
pub(super) struct TaskArgs {
    /// The note: path, id, title, alias, file name or [[wikilink]].
    note: String,
    /// The task: its line, or a part of its text that no other task of the note has.
    task: String,
    /// Mark it as done, whatever it was.
    #[arg(long, group = "becomes")]
    done: bool,
    /// Mark it as open, whatever it was.
    #[arg(long, group = "becomes")]
    todo: bool,
    /// Put this character between the brackets.
    #[arg(long, group = "becomes", value_name = "CHARACTER")]
    status: Option<char>,
    #[command(flatten)]
    one: OneNote,
}

/// Move or rename a note, folder or attachment; every link to it follows.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote move Plan Projects/          into a folder, with its name
  sidenote move Plan Archive/Old plan   to another place, with another name
  sidenote move Projects Archive/       a whole folder")]
pub(super) struct MoveArgs {
    /// What moves: a note by any name, or the path of a file or folder.
    from: String,
    /// Where to: a path from the vault's root; a folder keeps the name.
    to: String,
    #[command(flatten)]
    options: MoveOptions,
}

/// Give a note, folder or attachment another name where it is; every link to it follows.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote rename Plan \"Old plan\"
  sidenote rename Projects/Boat.jpg Ship.jpg --dry-run")]
pub(super) struct RenameFileArgs {
    /// What gets the name: a note by any name, or the path of a file or folder.
    note: String,
    /// The new name, in the same folder. One with a slash is a path from the vault's root, as `move` takes it.
    name: String,
    #[command(flatten)]
    options: MoveOptions,
}

/// What moving and renaming take alike.
#[derive(Debug, Args)]
struct MoveOptions {
    /// Allow names that only Windows forbids.
    #[arg(long)]
    relaxed: bool,
    /// Go ahead with a name that links cannot hold.
    #[arg(long)]
    force: bool,
    /// Leave every link as it is.
    #[arg(long)]
    no_update_links: bool,
    /// Leave relative links that Obsidian still finds, though other programs would not.
    #[arg(long)]
    keep_lookup_links: bool,
    /// Lengthen links that could mean several files of equal right.
    #[arg(long)]
    stabilise: bool,
    /// Follow links that stand beside other text in a property, which Obsidian does not.
    #[arg(long)]
    partial_properties: bool,
    /// Add the old name of a note to its aliases.
    #[arg(long)]
    keep_alias: bool,
    #[command(flatten)]
    dry: Dry,
}

/// Give a part of a note another name, with every link to it.
#[derive(Debug, Args)]
pub(super) struct PartArgs {
    /// The note.
    note: String,
    /// Its name now.
    old: String,
    /// Its new name.
    new: String,
    /// Go ahead where another part has that name.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    dry: Dry,
}

/// Give a tag or property another name in every note.
#[derive(Debug, Args)]
pub(super) struct RenameArgs {
    /// Its name now.
    old: String,
    /// Its new name.
    new: String,
    #[command(flatten)]
    dry: Dry,
}

/// Link two notes, or unlink them, both ways, in their related sections.
#[derive(Debug, Args)]
pub(super) struct RelateArgs {
    /// The one note.
    a: String,
    /// The other.
    b: String,
    /// The text shown for the link from the first to the second.
    #[arg(long)]
    text: Option<String>,
    #[command(flatten)]
    dry: Dry,
}

/// Put the text of one note behind that of another; links to the one lead to the other.
#[derive(Debug, Args)]
pub(super) struct MergeArgs {
    /// The note that goes.
    from: String,
    /// The note that takes its text.
    into: String,
    #[command(flatten)]
    dry: Dry,
}

/// Make a section a note of its own, and leave a link in its place.
#[derive(Debug, Args)]
pub(super) struct ExtractArgs {
    /// The note.
    note: String,
    /// The heading of the section.
    #[arg(long, value_name = "HEADING")]
    section: String,
    /// The title of the new note.
    #[arg(long, value_name = "TITLE")]
    to: String,
    #[command(flatten)]
    dry: Dry,
}

/// Open a note in $VISUAL or $EDITOR; then say whether it changed and what is wrong with it.
///
/// The change stands in `history`, and `undo` takes it back.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote edit \"Start here\"
  EDITOR=\"code --wait\" sidenote edit Plan")]
pub(super) struct EditArgs {
    /// The note: path, id, title, alias, file name or [[wikilink]].
    note: String,
    #[command(flatten)]
    dry: DryPlan,
}

/// Move a note or attachment to the vault's bin, .trash/.
#[derive(Debug, Args)]
pub(super) struct DeleteArgs {
    /// The note by any name, or the path of a file.
    note: String,
    /// Remove it for good.
    #[arg(long, requires = "yes")]
    permanent: bool,
    /// Yes, for good.
    #[arg(long)]
    yes: bool,
    /// What becomes of links to it.
    #[arg(long, value_enum, default_value_t = LinkFate::Leave)]
    links: LinkFate,
    #[command(flatten)]
    dry: Dry,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LinkFate {
    /// They stay and lead nowhere.
    Leave,
    /// Their text stays.
    Plain,
}

/// Bring a file back from the vault's bin.
#[derive(Debug, Args)]
pub(super) struct RestoreArgs {
    /// Its path below .trash/.
    note: String,
    #[command(flatten)]
    dry: Dry,
}

/// Take back the last operations, or one by its id.
///
/// What an operation wrote goes, also from a note that was edited elsewhere since. Where that cannot be told apart, nothing
/// is written, and the notes in which it cannot are named.
#[derive(Debug, Args)]
pub(super) struct UndoArgs {
    /// How many of the last operations, or the id of one, as `history` shows it (or its first 8 letters or more).
    #[arg(default_value = "1", value_name = "N|ID")]
    which: String,
    /// Pass over operations that cannot be taken back, and say so.
    #[arg(long)]
    skip: bool,
    /// Leave this file as it is; may be given several times.
    #[arg(long, value_name = "FILE")]
    keep: Vec<String>,
    #[command(flatten)]
    dry: Dry,
}

/// Do again what was undone last.
#[derive(Debug, Args)]
pub(super) struct RedoArgs {
    #[command(flatten)]
    dry: Dry,
}

/// List what sidenote did, newest first: to one note, or to all.
#[derive(Debug, Args)]
pub(super) struct HistoryArgs {
    /// The note.
    note: Option<String>,
    /// At most so many.
    #[arg(short = 'n', long, default_value_t = 20)]
    limit: usize,
}

#[derive(Debug, Subcommand)]
pub(super) enum ChangeCommand {
    New(NewArgs),
    Append(AppendArgs),
    /// Add text at the beginning of a note, behind its frontmatter, or of a section.
    Prepend(AppendArgs),
    Replace(ReplaceArgs),
    Set(SetArgs),
    Unset(UnsetArgs),
    Add(AddArgs),
    Tag(TagArgs),
    Task(TaskArgs),
    #[command(alias = "mv")]
    Move(MoveArgs),
    Rename(RenameFileArgs),
    /// Give a heading another text; every link to it follows.
    RenameHeading(PartArgs),
    /// Give a block id another name; every link to it follows.
    RenameBlock(PartArgs),
    /// Give a tag another name, with the tags below it, in every note.
    RenameTag(RenameArgs),
    /// Give a property another name in every note.
    RenameProperty(RenameArgs),
    /// Link two notes, both ways, in their related sections.
    Link(RelateArgs),
    /// Remove the links that `link` made, both ways.
    Unlink(RelateArgs),
    Merge(MergeArgs),
    Extract(ExtractArgs),
    Edit(EditArgs),
    Delete(DeleteArgs),
    Restore(RestoreArgs),
    Undo(UndoArgs),
    Redo(RedoArgs),
    History(HistoryArgs),
}

pub(super) fn run(session: &Session, command: ChangeCommand) -> Result<()> {
    let (operation, dry) = match command {
        ChangeCommand::New(args) => return new(session, args),
        ChangeCommand::Append(args) => {
            one(args.note, args.one, NoteEdit::Append(text_or_stdin(&args.text)?, args.section))?
        }
        ChangeCommand::Prepend(args) => {
            one(args.note, args.one, NoteEdit::Prepend(text_or_stdin(&args.text)?, args.section))?
        }
        ChangeCommand::Replace(args) => {
            one(args.note, args.one, NoteEdit::Replace { old: args.old, new: args.new, count: args.count })?
        }
        ChangeCommand::Set(args) => {
            one(args.note, args.one, NoteEdit::Set(args.key, value_of(&args.values)))?
        }
        ChangeCommand::Unset(args) => one(args.note, args.one, NoteEdit::Unset(args.key))?,
        ChangeCommand::Add(args) => one(args.note, args.one, NoteEdit::Add(args.key, value(&args.value)))?,
        ChangeCommand::Task(args) => {
            let flags = [(args.done, 'x'), (args.todo, ' ')];
            let set = flags.into_iter().find_map(|(is_set, status)| is_set.then_some(status));
            one(args.note, args.one, NoteEdit::Task { task: args.task, status: args.status.or(set) })?
        }
        ChangeCommand::Tag(args) => one(args.note, args.one, tags(&args.tags, args.remove)?)?,
        ChangeCommand::Move(args) => moving(args.from, args.to, false, &args.options),
        ChangeCommand::Rename(args) => moving(args.note, args.name, true, &args.options),
        ChangeCommand::RenameHeading(args) => part(args, PartKind::Heading),
        ChangeCommand::RenameBlock(args) => part(args, PartKind::Block),
        ChangeCommand::RenameTag(args) => everywhere(args, Renamed::Tag),
        ChangeCommand::RenameProperty(args) => everywhere(args, Renamed::Property),
        ChangeCommand::Link(args) => {
            let dry = args.dry.dry_run;
            (Operation::Link(RelateRequest { a: args.a, b: args.b, text: args.text }), dry)
        }
        ChangeCommand::Unlink(args) => {
            let dry = args.dry.dry_run;
            (Operation::Unlink(RelateRequest { a: args.a, b: args.b, text: args.text }), dry)
        }
        ChangeCommand::Merge(args) => {
            (Operation::Merge(MergeRequest { from: args.from, into: args.into }), args.dry.dry_run)
        }
        ChangeCommand::Extract(args) => {
            let request = ExtractRequest { note: args.note, section: args.section, title: args.to };
            (Operation::Extract(request), args.dry.dry_run)
        }
        ChangeCommand::Edit(args) => return edit(session, &args),
        ChangeCommand::Delete(args) => {
            let links = match args.links {
                LinkFate::Leave => DanglingLinks::Leave,
                LinkFate::Plain => DanglingLinks::Plain,
            };
            let permanent = args.permanent && args.yes;
            (Operation::Delete(DeleteRequest { note: args.note, permanent, links }), args.dry.dry_run)
        }
        ChangeCommand::Restore(args) => (Operation::Restore(args.note), args.dry.dry_run),
        ChangeCommand::Undo(args) => return undo(session, args),
        ChangeCommand::Redo(args) => return redo(session, &args),
        ChangeCommand::History(args) => return history(session, &args),
    };
    let reply = session.store()?.changes().change(&operation, dry)?;
    session.out.reply(&reply, |reply| show(reply, dry))?;
    tell(session, &reply);
    Ok(())
}

/// Makes a note; a daily note that is there already is given, with what comes to it.
fn new(session: &Session, args: NewArgs) -> Result<()> {
    let (dry, daily) = (args.dry.dry_run, args.daily);
    let store = session.store()?;
    let reply = store.changes().change(&Operation::New(new_request(args)?), dry)?;
    let there =
        if daily && !dry && reply.made().is_none() { Some(store.planner().daily_note()?) } else { None };
    session.out.reply(&reply, |reply| match &there {
        Some(path) => format!("{}\n", output::plain(path.as_str())),
        None => show(reply, dry),
    })?;
    tell(session, &reply);
    Ok(())
}

fn new_request(args: NewArgs) -> Result<NewRequest> {
    let property = |text: &String| {
        text.split_once('=').map(|(key, said)| (key.trim().to_owned(), value(said))).ok_or_else(|| {
            Error::invalid(format!("--set {text:?} has no `=`")).with_hint("write --set status=open")
        })
    };
    Ok(NewRequest {
        title: args.title.unwrap_or_default(),
        content: args.content.as_deref().map(text_or_stdin).transpose()?.unwrap_or_default(),
        folder: args.folder,
        category: args.category,
        tags: bare_tags(&args.tags),
        note_type: args.note_type,
        properties: args.set.iter().map(property).collect::<Result<_>>()?,
        template: args.template,
        daily: args.daily,
        ..NewRequest::default()
    })
}

fn one(note: String, args: OneNote, edit: NoteEdit) -> Result<(Operation, bool)> {
    let expect = args.expect_hash.map(|hash| hash.parse()).transpose()?;
    Ok((Operation::Edit(EditRequest { note, edit, expect }), args.dry.dry_run))
}

fn moving(from: String, to: String, in_place: bool, options: &MoveOptions) -> (Operation, bool) {
    let request = MoveRequest {
        from,
        to,
        in_place,
        relaxed: options.relaxed,
        force: options.force,
        no_update_links: options.no_update_links,
        keep_lookup_links: options.keep_lookup_links,
        stabilise: options.stabilise,
        partial_properties: options.partial_properties,
        keep_alias: options.keep_alias,
    };
    (Operation::Move(request), options.dry.dry_run)
}

fn part(args: PartArgs, kind: PartKind) -> (Operation, bool) {
    let PartArgs { note, old, new, force, dry } = args;
    (Operation::RenamePart(PartRequest { note, kind, old, new, force }), dry.dry_run)
}

fn everywhere(args: RenameArgs, kind: Renamed) -> (Operation, bool) {
    (Operation::RenameEverywhere(RenameRequest { kind, old: args.old, new: args.new }), args.dry.dry_run)
}

/// Gives tags without the `#` that may stand before them.
pub(super) fn bare_tags(tags: &[String]) -> Vec<String> {
    tags.iter().map(|tag| tag.trim().trim_start_matches('#').to_owned()).collect()
}

/// Reads a value as JSON where it is a number, a truth value, null or a list, else as text.
fn value(text: &str) -> Value {
    match serde_json::from_str::<Value>(text) {
        // A version or a long number that would be written in another way is text.
        Ok(Value::Number(number)) if number.to_string() != text => Value::from(text),
        Ok(value) if !value.is_object() => value,
        _ => Value::from(text),
    }
}

fn value_of(values: &[String]) -> Value {
    match values {
        [one] => value(one),
        many => Value::from(many.iter().map(|text| value(text)).collect::<Vec<_>>()),
    }
}

fn tags(asked: &[String], remove: Vec<String>) -> Result<NoteEdit> {
    let added = |tag: &String| {
        tag.strip_prefix('+').map(str::to_owned).ok_or_else(|| {
            Error::invalid(format!("{tag:?} says neither to add nor to remove"))
                .with_hint("write +tag or -tag")
        })
    };
    Ok(NoteEdit::Tags { add: asked.iter().map(added).collect::<Result<_>>()?, remove })
}

/// Spells `-TAG` out as `--remove=TAG` behind `tag`, for to a parser of command lines it looks like a flag.
pub(super) fn spell_out(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let (mut is_tag, mut is_value, mut has_command) = (false, false, false);
    let spell = |argument: OsString| {
        let text = argument.to_str().unwrap_or_default().to_owned();
        if std::mem::take(&mut is_value) {
            return argument;
        }
        is_value = matches!(
            text.as_str(),
            "--vault" | "--index" | "--session" | "--color" | "--expect-hash" | "--remove"
        );
        let removed =
            text.strip_prefix('-').filter(|tag| !tag.is_empty() && !tag.starts_with('-') && *tag != "h");
        match removed {
            Some(tag) if is_tag => OsString::from(format!("--remove={tag}")),
            _ => {
                is_tag |= !has_command && text == "tag";
                has_command |= !text.starts_with('-');
                argument
            }
        }
    };
    let mut arguments = arguments;
    let program = arguments.next();
    program.into_iter().chain(arguments.map(spell)).collect()
}

/// Gives a text, or for `-` what comes on standard input.
pub(super) fn text_or_stdin(given: &str) -> Result<String> {
    if given != "-" {
        return Ok(given.to_owned());
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|error| Error::io("read", "standard input", error))?;
    Ok(text)
}

/// Shows what was done, or after a dry run what would be.
pub(super) fn show_change(reply: &ChangeReply) -> String {
    show(reply, reply.diff.is_some())
}

fn show(reply: &ChangeReply, dry: bool) -> String {
    if dry {
        let diff = reply.diff.as_deref().unwrap_or("");
        return if diff.is_empty() { "nothing would change\n".to_owned() } else { coloured(diff) };
    }
    if !reply.applied {
        return "nothing to change\n".to_owned();
    }
    let mut out = String::new();
    for folder in &reply.plan.folders {
        out.push_str(&format!(
            "{} -> {}\n",
            output::plain(folder.from.as_str()),
            output::plain(folder.to.as_str())
        ));
    }
    let place = |place: &crate::text::edit::FileLocation| output::plain(&place.to_string());
    for change in &reply.plan.files {
        out.push_str(&match (&change.from, &change.to) {
            (None, Some(to)) => format!("{}\n", place(to)),
            (Some(from), None) => format!("{} is gone\n", place(from)),
            (Some(from), Some(to)) if from != to => format!("{} -> {}\n", place(from), place(to)),
            (Some(from), _) => format!("{} changed\n", place(from)),
            (None, None) => String::new(),
        });
    }
    out
}

fn coloured(diff: &str) -> String {
    let line = |line: &str| {
        let plain = output::plain(line);
        let shown = match line.as_bytes().first() {
            Some(b'+') => style(plain).green(),
            Some(b'-') => style(plain).red(),
            Some(b'@') => style(plain).cyan(),
            _ => style(plain),
        };
        format!("{shown}\n")
    };
    diff.lines().map(line).collect()
}

/// Tells on standard error what was left alone, and what else somebody should know.
fn tell(session: &Session, reply: &ChangeReply) {
    if session.out.is_json() {
        return;
    }
    for remark in &reply.plan.remarks {
        session.out.say(&output::plain(&remark.to_string()));
    }
    if reply.plan.remarks.iter().any(|remark| remark.message == UnlinkedReferenceKind::PartialProperty.why())
    {
        session.out.say(
            "hint: `sidenote move` follows links beside other text in a property with --partial-properties",
        );
    }
    for notice in &reply.notices {
        session.out.say(&format!("notice: {}", output::plain(notice)));
    }
}

/// What `edit` replies: what the editor did, and everything that is read out of the note now.
#[derive(Debug, Serialize)]
struct EditReply {
    #[serde(flatten)]
    edited: Edited,
    #[serde(flatten)]
    note: InspectReply,
}

/// The editor writes the note itself; nothing of ours stands between it and the file.
fn edit(session: &Session, args: &EditArgs) -> Result<()> {
    let store = session.fresh_store()?;
    let (path, before) = store.changes().before_edit(&args.note)?;
    let set = |name: &str| std::env::var(name).ok().filter(|command| !command.trim().is_empty());
    let editor = set("VISUAL").or_else(|| set("EDITOR")).ok_or_else(|| {
        Error::invalid("neither VISUAL nor EDITOR is set")
            .with_hint("for instance: EDITOR=nano sidenote edit NOTE")
    })?;
    let shown = output::plain(path.as_str());
    if args.dry.dry_run {
        let reply = serde_json::json!({ "path": path, "editor": editor });
        return session.out.reply(&reply, |_| format!("{} would open {shown}\n", output::plain(&editor)));
    }
    super::open::run_with(&editor, &store.root().join(path.as_str()))?;
    let edited = store.changes().edited(&path, &before)?;
    let reply = EditReply { edited, note: store.reads().inspect(path.as_str())? };
    session.out.reply(&reply, |reply| {
        let what = if reply.edited.changed { "changed" } else { "is as it was" };
        let problems = reply.note.problems.iter();
        let problem = |problem: &crate::text::note::ParseProblem| {
            format!("{shown}: {}\n", output::plain(&problem.message))
        };
        format!("{shown} {what}\n") + &problems.map(problem).collect::<String>()
    })
}

fn undo(session: &Session, args: UndoArgs) -> Result<()> {
    /// A number with more digits than this is an id.
    const DIGITS: usize = 5;
    let dry = args.dry.dry_run;
    let count = args.which.parse().ok().filter(|count| *count > 0 && args.which.len() <= DIGITS);
    let id = if count.is_none() { Some(args.which) } else { None };
    let request =
        UndoRequest { id, count: count.unwrap_or(1), skip: args.skip, keep: args.keep, dry_run: dry };
    let replies = session.store()?.changes().undo_by(&request)?;
    session.out.reply(&replies, |replies| replies.iter().map(|reply| show(reply, dry)).collect())?;
    replies.iter().for_each(|reply| tell(session, reply));
    Ok(())
}

fn redo(session: &Session, args: &RedoArgs) -> Result<()> {
    let dry = args.dry.dry_run;
    let reply = session.store()?.changes().redo(dry)?;
    session.out.reply(&reply, |reply| show(reply, dry))?;
    tell(session, &reply);
    Ok(())
}

fn history(session: &Session, args: &HistoryArgs) -> Result<()> {
    let events = session.store()?.changes().history_of(args.note.as_deref(), args.limit)?;
    session.out.reply(&events, |events: &Vec<Event>| {
        let rows = events.iter().map(|event| {
            let others = (event.files.len() + event.folders.len()).saturating_sub(1);
            let more = if others > 0 { format!(" and {others} more") } else { String::new() };
            let what = event.subject().unwrap_or_default() + &more;
            vec![event.at.rfc3339(), event.op.clone(), what, event.id.clone()]
        });
        output::columns(&rows.collect::<Vec<_>>())
    })
}
