//! The relations that the note of an entity states: the items below its heading `Relations`, and its other typed links.

use sidenote_links::resolve::FileNames;
use sidenote_markdown::link::Link;
use sidenote_markdown::list_section::{ListSection, sections};
use sidenote_markdown::path::NotePath;
use sidenote_markdown::relation::{RelationRules, relations};
use sidenote_markdown::span::Span;
use sidenote_open_vault::source::Source;

use super::{OBSERVATIONS, RELATIONS};

/// The type of a relation whose item names none.
const RELATES_TO: &str = "relates_to";

/// A relation that a note states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StatedRelation {
    /// The type.
    pub(super) kind: String,
    /// The name of the entity that it leads to.
    pub(super) to: String,
    /// The file that it leads to; `None` if its link has no target.
    pub(super) target: Option<NotePath>,
    /// The item below the heading `Relations`; `None` for a relation that is stated elsewhere.
    pub(super) item: Option<Span>,
}

/// Lists the relations of a note. `name_of` gives the name of the entity of a file.
pub(super) fn relations_of(
    source: &Source,
    names: &FileNames,
    rules: &RelationRules,
    name_of: impl Fn(&NotePath) -> String,
) -> Vec<StatedRelation> {
    let (text, note) = (source.text.as_str(), &source.note);
    let stated = |link: &Link, kind: &str, item: Option<Span>| {
        let target = names.follow(link, &source.path).map(|found| found.path.clone());
        let to = target.as_ref().map_or_else(|| name_in(link, text), &name_of);
        StatedRelation { kind: kind.to_owned(), to, target, item }
    };
    let own = sections(text, RELATIONS);
    let mut found: Vec<StatedRelation> = own
        .iter()
        .flat_map(|section| &section.items)
        .filter_map(|item| {
            let is_inside = |link: &&Link| {
                link.key.is_none() && !link.embed && item.span.encloses(link.span) && !link.is_external()
            };
            let link = note.links.iter().find(is_inside)?;
            let kind = text.get(item.span.start + 1..link.span.start)?.trim().trim_matches('"');
            Some(stated(link, if kind.is_empty() { RELATES_TO } else { kind }, Some(item.span)))
        })
        .collect();
    let lists: Vec<ListSection> = own.into_iter().chain(sections(text, OBSERVATIONS)).collect();
    let is_listed = |span: Span| lists.iter().any(|section| section.span.encloses(span));
    for relation in relations(text, note, &[], rules) {
        let Some(link) = note.links.get(relation.object) else { continue };
        if relation.is_inferred || relation.subject.is_some() || is_listed(link.span) {
            continue;
        }
        let one = stated(link, &relation.kind, None);
        // A link without a target, such as to a deleted entity, states nothing of an entity here.
        if one.target.is_some() && !found.iter().any(|known| known.kind == one.kind && known.to == one.to) {
            found.push(one);
        }
    }
    found
}

/// Returns the name that a link without a target gives.
fn name_in(link: &Link, text: &str) -> String {
    let alias = link.alias_span.map(|span| span.of(text).trim()).filter(|alias| !alias.is_empty());
    alias.map_or_else(|| link.path.clone(), str::to_owned)
}
