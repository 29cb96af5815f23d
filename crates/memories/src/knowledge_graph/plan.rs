//! Changes of the graph. Each call is one operation, which is planned on the files as they are under the write lock, so that
//! several processes lose nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_json::Value;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_catalog::CreationSource;
use sidenote_catalog::path_id_at;
use sidenote_change::create::refuse_long_label;
use sidenote_change::free_names::FreeNames;
use sidenote_change::link::{display_text, new_link};
use sidenote_change::move_files::add_edits;
use sidenote_change::naming::file_name;
use sidenote_change::operation::ChangeReply;
use sidenote_change::properties::with_properties;
use sidenote_change::{Changes, Planner};
use sidenote_links::resolve::{FileNames, name_keys};
use sidenote_links::rewrite::markdown_destination;
use sidenote_markdown::edit::{ChangeSet, Content, FileChange, FileLocation, apply};
use sidenote_markdown::list_section::{item_text, sections, unix_lines, with_items, without_items};
use sidenote_markdown::name_rules::NameRules;
use sidenote_markdown::path::{NotePath, key};
use sidenote_markdown::related_section;
use sidenote_markdown::source_edit::source_edits;
use sidenote_open_vault::catalog_overlay::View;
use sidenote_open_vault::redaction::Cleaned;
use sidenote_open_vault::source::Source;

use super::stated::{StatedRelation, relations_of};
use super::{
    BroughtGraph, Changed, Entity, EntityRows, EntityTexts, IncomingGraph, KnowledgeGraph, OBSERVATIONS,
    RELATIONS, Relation, no_entity, observations_of,
};
use crate::MemoryWrites;

/// The name of the file of an entity whose name gives none.
const UNNAMED: &str = "Entity";
/// The milliseconds in which entities that seem to be created later than now are taken for those of calls at the same time.
const SAME_TIME: i64 = 3_600_000;

impl KnowledgeGraph<'_> {
    /// Creates entities, and returns those that are new. One with a known name is skipped.
    ///
    /// # Errors
    /// `Invalid` for an empty name; those of [`Changes::change`].
    #[tracing::instrument(skip_all)]
    pub fn create_entities(&self, mut entities: Vec<Entity>) -> Result<Changed<Entity>> {
        let cleaned = entities.iter_mut().map(|entity| self.clean_entity(entity)).sum();
        let mut new = Vec::new();
        self.apply("new", false, |plan| {
            new = plan.create(&entities)?;
            Ok(())
        })?;
        Ok(changed(new, cleaned))
    }

    /// Creates relations, and returns those that are new. There need be no entity to which one leads.
    ///
    /// # Errors
    /// `NotFound` if there is no entity from which one leads, and nothing is written then; those of [`Changes::change`].
    #[tracing::instrument(skip_all)]
    pub fn create_relations(&self, mut relations: Vec<Relation>) -> Result<Changed<Relation>> {
        let cleaned = relations.iter_mut().map(|relation| self.clean_relation(relation)).sum();
        let mut new = Vec::new();
        self.apply("edit", false, |plan| {
            new = plan.relate(&relations)?;
            Ok(())
        })?;
        Ok(changed(new, cleaned))
    }

    /// Adds observations to entities, and returns those that are new, for each part of the request.
    ///
    /// # Errors
    /// `NotFound` if an entity does not exist, and nothing is written then; those of [`Changes::change`].
    #[tracing::instrument(skip_all)]
    pub fn add_observations(&self, mut added: Vec<EntityTexts>) -> Result<Changed<EntityTexts>> {
        let texts = added.iter_mut().flat_map(|one| &mut one.texts);
        let cleaned = texts.map(|text| self.core.clean(text)).sum();
        let mut new = Vec::new();
        self.apply("edit", false, |plan| {
            new = added.iter().map(|one| plan.observe(one)).collect::<Result<_>>()?;
            Ok(())
        })?;
        Ok(changed(new, cleaned))
    }

    /// Moves the notes of entities to the trash, with the relations to them. Unknown names are no error.
    ///
    /// # Errors
    /// Those of [`Changes::change`].
    #[tracing::instrument(skip_all)]
    pub fn delete_entities(&self, names: &[String]) -> Result<()> {
        self.apply("delete", false, |plan| plan.delete(names)).map(drop)
    }

    /// Removes observations from entities. Unknown names and texts are no error.
    ///
    /// # Errors
    /// Those of [`Changes::change`].
    #[tracing::instrument(skip_all)]
    pub fn delete_observations(&self, removed: &[EntityTexts]) -> Result<()> {
        self.apply("edit", false, |plan| removed.iter().try_for_each(|one| plan.forget(one))).map(drop)
    }

    /// Removes relations. Unknown ones are no error. Returns notices about those that are stated elsewhere than in the list of
    /// relations, and stay.
    ///
    /// # Errors
    /// Those of [`Changes::change`].
    #[tracing::instrument(skip_all)]
    pub fn delete_relations(&self, removed: &[Relation]) -> Result<Vec<String>> {
        let mut notices = Vec::new();
        self.apply("edit", false, |plan| {
            notices = plan.unrelate(removed)?;
            Ok(())
        })?;
        Ok(notices)
    }

    /// Brings a graph into the vault as one operation: new entities, what known ones lack, and new relations. A relation from
    /// an entity that does not exist creates it.
    ///
    /// # Errors
    /// Those of [`Changes::change`].
    #[tracing::instrument(skip_all)]
    pub fn bring(&self, incoming: IncomingGraph, dry_run: bool) -> Result<BroughtGraph> {
        let IncomingGraph { mut entities, mut relations } = incoming;
        let mut brought = BroughtGraph::default();
        for entity in &mut entities {
            brought.cleaned += self.clean_entity(entity);
        }
        for relation in &mut relations {
            brought.cleaned += self.clean_relation(relation);
        }
        let reply = self.apply("import", dry_run, |plan| {
            let known: HashSet<String> = plan.paths.keys().cloned().collect();
            let named: HashSet<&str> = entities.iter().map(|entity| entity.name.trim()).collect();
            let mut implied: Vec<Entity> = Vec::new();
            for from in relations.iter().map(|relation| relation.from.trim()) {
                let is_new = !known.contains(from) && !named.contains(from);
                if is_new && !implied.iter().any(|entity| entity.name == from) {
                    implied.push(Entity { name: from.to_owned(), ..Entity::default() });
                }
            }
            plan.create(&entities)?;
            plan.create(&implied)?;
            for entity in &entities {
                let texts = EntityTexts { name: entity.name.clone(), texts: entity.observations.clone() };
                brought.observations += plan.observe(&texts)?.texts.len();
            }
            brought.relations = plan.relate(&relations)?.len();
            Ok(())
        })?;
        let new = reply.plan.files.iter().filter(|file| file.from.is_none());
        brought.notes =
            new.filter_map(|file| file.to.as_ref()?.in_vault()).map(ToString::to_string).collect();
        brought.notices = brought.cleaned.notices();
        brought.notices.extend(reply.notices);
        Ok(brought)
    }

    fn clean_entity(&self, entity: &mut Entity) -> Cleaned {
        let texts = [&mut entity.name, &mut entity.kind].into_iter().chain(&mut entity.observations);
        texts.map(|text| self.core.clean(text)).sum()
    }

    fn clean_relation(&self, relation: &mut Relation) -> Cleaned {
        let texts = [&mut relation.from, &mut relation.to, &mut relation.kind];
        texts.into_iter().map(|text| self.core.clean(text)).sum()
    }

    /// Makes a plan under the write lock, and applies it.
    fn apply(
        &self,
        operation: &str,
        dry_run: bool,
        make: impl FnOnce(&mut GraphPlan<'_>) -> Result<()>,
    ) -> Result<ChangeReply> {
        let plan = |_: Option<&_>| {
            let view = View::new(self.core)?;
            let mut plan = GraphPlan::new(*self, &view)?;
            make(&mut plan)?;
            plan.finish(operation)
        };
        let reply = Changes::of(self.core).apply_planned(plan, dry_run)?;
        for notice in &reply.notices {
            tracing::info!("{notice}");
        }
        Ok(reply)
    }
}

fn changed<T>(new: Vec<T>, cleaned: Cleaned) -> Changed<T> {
    Changed { new, notices: cleaned.notices() }
}

/// A note of the graph while a plan changes it.
struct Draft {
    /// The note on the disk; `None` for a new one.
    source: Option<Source>,
    /// The text that it gets, with line feeds alone.
    text: String,
}

/// A change of the graph that is being planned.
struct GraphPlan<'a> {
    graph: KnowledgeGraph<'a>,
    view: &'a View<'a>,
    all: EntityRows,
    /// The note of each name. Of several with one name, the oldest.
    paths: HashMap<String, NotePath>,
    drafts: BTreeMap<NotePath, Draft>,
    /// The paths of new notes, in their order.
    new: Vec<NotePath>,
    deleted: Vec<NotePath>,
}

impl<'a> GraphPlan<'a> {
    fn new(graph: KnowledgeGraph<'a>, view: &'a View<'a>) -> Result<Self> {
        let all = graph.rows()?;
        let mut paths = HashMap::new();
        for row in &all.rows {
            paths.entry(row.title.trim().to_owned()).or_insert_with(|| row.path.clone());
        }
        let (drafts, new, deleted) = (BTreeMap::new(), Vec::new(), Vec::new());
        Ok(Self { graph, view, all, paths, drafts, new, deleted })
    }

    fn path_of(&self, name: &str) -> Option<NotePath> {
        self.paths.get(name.trim()).cloned()
    }

    /// Returns the text of a note as it is planned so far.
    fn text_of(&mut self, path: &NotePath) -> Result<&mut String> {
        if !self.drafts.contains_key(path) {
            let source = self.view.source(path)?;
            if let Some(refusal) = source.refusal() {
                return Err(Error::invalid(refusal.to_string()));
            }
            let text = unix_lines(&source.text);
            self.drafts.insert(path.clone(), Draft { source: Some(source), text });
        }
        let draft = self.drafts.get_mut(path).ok_or_else(|| Error::internal("a draft is missing"))?;
        Ok(&mut draft.text)
    }

    /// Replaces the text of a note by one with more items, which must be read as such.
    fn add_items(&mut self, path: &NotePath, heading: &str, before: &str, items: &[String]) -> Result<()> {
        let count =
            |text: &str| sections(text, heading).iter().map(|section| section.items.len()).sum::<usize>();
        let text = self.text_of(path)?;
        let new = with_items(text, heading, before, items);
        if count(&new) != count(text) + items.len() {
            return Err(Error::invalid(format!(
                "a list at the end of {path} would not be one: something before it is not closed"
            ))
            .with_hint("close the code block there first"));
        }
        *text = new;
        Ok(())
    }

    fn create(&mut self, entities: &[Entity]) -> Result<Vec<Entity>> {
        let core = self.graph.core;
        let mut created = Vec::new();
        let mut at = self.next_time();
        let mut names = FreeNames::without_captures(&core.vault, self.view);
        for entity in entities {
            let name = entity.name.trim();
            if name.is_empty() {
                return Err(Error::invalid("the name of an entity is empty")
                    .with_hint("give each entity a name with a letter or digit in it"));
            }
            refuse_long_label("entityType", Some(&entity.kind))?;
            if self.paths.contains_key(name) {
                continue;
            }
            let fits = |stem: &String| NameRules::default().check(&format!("{stem}.md")).is_ok();
            let stem = file_name(name).ok().filter(fits).unwrap_or_else(|| UNNAMED.to_owned());
            let path = names.take(core.config.memory.folder.trim_matches('/'), &stem)?;
            let path = core.vault.canonical_path(&path)?;
            let properties = [
                ("id", path_id_at(&path, at)),
                ("title", name.to_owned()),
                ("type", entity.kind.trim().to_owned()),
                ("created_at", at.exact_rfc3339()),
            ];
            let properties = properties.into_iter().filter(|(_, value)| !value.is_empty());
            let properties = properties.map(|(name, value)| (name.to_owned(), Value::from(value))).collect();
            let text = with_properties(String::new(), &path, properties)?;
            let text = with_items(&text, OBSERVATIONS, RELATIONS, &entity.observations);
            let wanted: Vec<String> = entity.observations.iter().map(|text| item_text(text)).collect();
            if observations_of(&text) != wanted {
                return Err(Error::invalid(format!(
                    "an observation of {name:?} would not be an item of a list in Markdown; nothing was written"
                ))
                .with_hint("write each observation in words"));
            }
            self.drafts.insert(path.clone(), Draft { source: None, text });
            self.all.titles.insert(path.clone(), name.to_owned());
            self.paths.insert(name.to_owned(), path.clone());
            self.new.push(path);
            created.push(entity.clone());
            at = Timestamp::from_millis(at.millis() + 1);
        }
        Ok(created)
    }

    /// Returns a time for the next entity: now, or a moment after the newest one, so that the order of creation is kept.
    fn next_time(&self) -> Timestamp {
        let now = self.graph.core.clock.now().millis();
        let stated = self.all.rows.iter().filter(|row| row.time_sources.created == CreationSource::Property);
        let later = stated.map(|row| row.created.millis()).filter(|at| (now..now + SAME_TIME).contains(at));
        Timestamp::from_millis(later.max().map_or(now, |at| at + 1))
    }

    fn observe(&mut self, added: &EntityTexts) -> Result<EntityTexts> {
        let path = self.path_of(&added.name).ok_or_else(|| no_entity(&added.name))?;
        let mut known: HashSet<String> = observations_of(self.text_of(&path)?).into_iter().collect();
        let texts: Vec<String> =
            added.texts.iter().filter(|text| known.insert(item_text(text))).cloned().collect();
        if !texts.is_empty() {
            self.add_items(&path, OBSERVATIONS, RELATIONS, &texts)?;
        }
        Ok(EntityTexts { name: added.name.clone(), texts })
    }

    fn forget(&mut self, removed: &EntityTexts) -> Result<()> {
        let Some(path) = self.path_of(&removed.name) else { return Ok(()) };
        let gone: HashSet<String> = removed.texts.iter().map(|text| item_text(text)).collect();
        let text = self.text_of(&path)?;
        *text = without_items(text, OBSERVATIONS, |item| gone.contains(&item.text));
        Ok(())
    }

    /// Parses a note as it is planned so far, and lists its relations.
    fn stated(&mut self, path: &NotePath, others: &[NotePath]) -> Result<(FileNames, Vec<StatedRelation>)> {
        let source = Source::unplaced(path.clone(), self.text_of(path)?.as_bytes());
        let keys: BTreeSet<String> = others
            .iter()
            .chain([path])
            .flat_map(|path| name_keys(path.name()).into_iter().chain([key(path.name())]))
            .collect();
        let names = self.view.names(std::slice::from_ref(&source), keys)?;
        let names = names.table_after(&sidenote_links::rewrite::Moves::default(), self.new.iter());
        let rules = &self.graph.core.state.relation_rules;
        let stated = relations_of(&source, &names, rules, |path| self.all.name_of(path));
        Ok((names, stated))
    }

    fn relate(&mut self, relations: &[Relation]) -> Result<Vec<Relation>> {
        let mut from: Vec<(NotePath, Vec<usize>)> = Vec::new();
        let mut places: HashMap<NotePath, usize> = HashMap::new();
        for (at, relation) in relations.iter().enumerate() {
            let path = self.path_of(&relation.from).ok_or_else(|| no_entity(&relation.from))?;
            let place = *places.entry(path.clone()).or_insert_with(|| {
                from.push((path, Vec::new()));
                from.len() - 1
            });
            if let Some((_, inside)) = from.get_mut(place) {
                inside.push(at);
            }
        }
        let mut new: BTreeSet<usize> = BTreeSet::new();
        for (path, inside) in from {
            let asked: Vec<(usize, &Relation)> =
                inside.into_iter().filter_map(|at| Some((at, relations.get(at)?))).collect();
            let targets: Vec<NotePath> =
                asked.iter().filter_map(|(_, relation)| self.path_of(&relation.to)).collect();
            let (names, stated) = self.stated(&path, &targets)?;
            let mut known: HashSet<(String, String)> =
                stated.into_iter().map(|one| (one.kind, one.to)).collect();
            let (mut lines, mut wanted) = (Vec::new(), Vec::new());
            for (at, relation) in asked {
                let (kind, to) = (one_line(&relation.kind), relation.to.trim());
                if known.insert((kind.clone(), to.to_owned())) {
                    let link = self.link(&names, &path, to)?;
                    lines.push(format!("{kind} {link}").trim_start().to_owned());
                    new.insert(at);
                    wanted.push((kind, to.to_owned()));
                }
            }
            if !lines.is_empty() {
                self.add_items(&path, RELATIONS, "", &lines)?;
                let read: HashSet<(String, String)> =
                    self.stated(&path, &targets)?.1.into_iter().map(|one| (one.kind, one.to)).collect();
                if let Some((kind, to)) = wanted.into_iter().find(|one| !read.contains(one)) {
                    return Err(Error::invalid(format!(
                        "the relation {kind:?} to {to:?} would be read as another one in {path}; nothing was written"
                    ))
                    .with_hint("give the type in words, and create the entity that it leads to first"));
                }
            }
        }
        Ok(new.into_iter().filter_map(|at| relations.get(at).cloned()).collect())
    }

    /// Returns a link to an entity, or to the note that it would have.
    fn link(&self, names: &FileNames, source: &NotePath, to: &str) -> Result<String> {
        let settings = self.graph.core.vault.settings();
        let label = display_text(to);
        if let Some(target) = self.path_of(to) {
            let label = label.filter(|label| label != target.stem());
            return new_link(names, &settings, source, &target, label.as_deref());
        }
        let label = label.unwrap_or_else(|| UNNAMED.to_owned());
        let stem = file_name(to).unwrap_or_else(|_| UNNAMED.to_owned());
        let unit = self.view.dialects().unit_of(source);
        let is_path = unit.dialect.follows_paths() && !unit.is_assumed();
        Ok(if settings.use_markdown_links || is_path {
            format!("[{label}](<{}>)", markdown_destination(&format!("{stem}.md"), true))
        } else if label == stem {
            format!("[[{stem}]]")
        } else {
            format!("[[{stem}|{label}]]")
        })
    }

    fn unrelate(&mut self, removed: &[Relation]) -> Result<Vec<String>> {
        let mut notices = Vec::new();
        for relation in removed {
            let Some(path) = self.path_of(&relation.from) else { continue };
            let targets: Vec<NotePath> = self.path_of(&relation.to).into_iter().collect();
            let (_, stated) = self.stated(&path, &targets)?;
            let (kind, to) = (one_line(&relation.kind), relation.to.trim());
            let label = display_text(to).unwrap_or_default();
            let is_meant = |one: &&StatedRelation| {
                one.kind == kind && (one.to == to || one.target.is_none() && one.to == label)
            };
            let meant: Vec<StatedRelation> = stated.iter().filter(is_meant).cloned().collect();
            if meant.iter().any(|one| one.item.is_none()) {
                notices.push(format!(
                    "{path} states {kind} {to} outside of its list of relations, where it stays; change the note itself"
                ));
            }
            let gone: HashSet<_> = meant.iter().filter_map(|one| one.item).collect();
            let text = self.text_of(&path)?;
            *text = without_items(text, RELATIONS, |item| gone.contains(&item.span));
        }
        Ok(notices)
    }

    fn delete(&mut self, names: &[String]) -> Result<()> {
        let named: HashSet<&str> = names.iter().map(|name| name.trim()).collect();
        let rows = self.all.rows.iter().filter(|row| named.contains(row.title.trim()));
        self.deleted = rows.map(|row| row.path.clone()).collect();
        let gone: HashSet<NotePath> = self.deleted.iter().cloned().collect();
        // Links to names without a note are found by the file that the name would have.
        let files = named.iter().filter_map(|name| file_name(name).ok());
        let keys: BTreeSet<String> = files.map(|stem| key(&format!("{stem}.md"))).collect();
        let section = Planner::of(self.graph.core).related_section();
        for path in self.view.concerned(&self.deleted, &keys)? {
            if gone.contains(&path) || !path.is_note() || self.view.source(&path)?.refusal().is_some() {
                continue;
            }
            let (names, stated) = self.stated(&path, &[])?;
            let goes = |one: &&StatedRelation| match &one.target {
                Some(target) => gone.contains(target),
                None => named.contains(one.to.as_str()),
            };
            let items: HashSet<_> = stated.iter().filter(goes).filter_map(|one| one.item).collect();
            let text = self.text_of(&path)?;
            *text = without_items(text, RELATIONS, |item| items.contains(&item.span));
            let source = Source::unplaced(path.clone(), text.as_bytes());
            let leads = |link: &sidenote_markdown::link::Link| {
                names.follow(link, &path).is_some_and(|found| gone.contains(found.path))
            };
            let edits = related_section::remove(&source.text, &source.note, &section, leads);
            *text = String::from_utf8(apply(text.as_bytes(), &edits)?)
                .map_err(|error| Error::internal("an edit produced invalid UTF-8").with_source(error))?;
        }
        Ok(())
    }

    /// Makes the change set.
    fn finish(mut self, operation: &str) -> Result<ChangeSet> {
        let core = self.graph.core;
        let mut made = Vec::new();
        for path in &self.new {
            made.extend(self.drafts.remove(path).map(|draft| (path.clone(), draft.text.into_bytes())));
        }
        let mut plan = match made.is_empty() {
            true => ChangeSet::new(operation),
            false => MemoryWrites { core }.plan_notes(self.view, operation, &made)?,
        };
        for draft in self.drafts.into_values() {
            if let Some(source) = draft.source {
                let edits = source_edits(&source.text, &draft.text);
                add_edits(&mut plan, &source, None, edits, Vec::new());
            }
        }
        let mut taken = BTreeSet::new();
        for path in self.deleted {
            let place = Planner::of(core).free_in_trash(&path, &taken)?;
            taken.insert(place.clone());
            plan.files.push(FileChange {
                from: Some(FileLocation::Vault(path)),
                to: Some(FileLocation::Trash(place)),
                before: None,
                content: Content::Keep,
            });
        }
        Ok(plan)
    }
}

/// Returns the type of a relation as it is written before its link.
fn one_line(kind: &str) -> String {
    display_text(kind).unwrap_or_default()
}
