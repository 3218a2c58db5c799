//! [`Catalog`]: one listing's tools with their index.

use super::lookalikes::Lookalikes;
use super::tool::IndexedTool;
use crate::budget::{Budget, Weight, on_heap};
use crate::search::Index;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most names that are held as writes for one listing: as many as a large listing has tools.
const HELD_WRITES_MAX: usize = 20_000;

/// What a catalogue takes beside its parts: its entry in the store, the links of that, and what its dozen pieces are rounded
/// up by.
const OVERHEAD: usize = 512;

/// Each catalogue of this process has a number that no other ever had.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

fn next_number() -> u64 {
    NUMBERS.fetch_add(1, Ordering::Relaxed)
}

/// The tools of one listing in the upstream's order. Immutable, shared by all callers with that listing.
pub struct Catalog {
    number: u64,
    listed: Arc<Listed>,
    held_writes: Arc<HeldWrites>,
}

/// Names that a caller knew as writes and that the listing does not mark so: they are listed as reads now, or not at
/// all. They stay writes, since whoever changed the hint may be after the calls that run without a question. Sorted.
#[derive(Default)]
pub(super) struct HeldWrites {
    names: Box<[Box<str>]>,
    _weight: Option<Weight>,
}

/// What differs between a caller's listing and the one before.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// Names that were writes, and that the new listing does not mark so. Sorted.
    pub held_writes: Vec<Box<str>>,
    /// Those of them that are listed as reads and were not held before.
    pub turned_read_only: usize,
    /// Names listed in both with another definition.
    pub redefined: usize,
}

/// What a listing alone decides.
struct Listed {
    tools: Box<[Arc<IndexedTool>]>,
    /// Indexes into `tools`, sorted by name; equal names in the upstream's order.
    by_name: Box<[u32]>,
    index: Index,
    instructions: Option<Box<str>>,
    left_out: usize,
    lookalikes: Lookalikes,
    weight: Weight,
}

/// The definitions that share one name: usually one.
#[derive(Clone, Copy)]
pub struct Named<'a> {
    catalog: &'a Catalog,
    indexes: &'a [u32],
}

impl Catalog {
    pub(super) fn new(
        tools: Vec<Arc<IndexedTool>>,
        index: Index,
        instructions: Option<String>,
        left_out: usize,
        budget: &Arc<Budget>,
    ) -> Self {
        let count = u32::try_from(tools.len()).expect("a listing has fewer tools than 2^32");
        let mut by_name: Vec<u32> = (0..count).collect();
        by_name.sort_by_key(|&index| tools[index as usize].name());
        let lookalikes = Lookalikes::among(tools.iter().map(|tool| tool.name()));
        let bytes = OVERHEAD
            + size_of::<Self>()
            + size_of::<Listed>()
            + tools.len() * (size_of::<Arc<IndexedTool>>() + size_of::<u32>())
            + index.heap_bytes()
            + lookalikes.heap_bytes()
            + instructions.as_ref().map_or(0, String::len);
        let listed = Listed {
            tools: tools.into(),
            by_name: by_name.into(),
            index,
            instructions: instructions.map(String::into_boxed_str),
            left_out,
            lookalikes,
            weight: budget.weigh(bytes),
        };
        Self { number: next_number(), listed: Arc::new(listed), held_writes: Arc::default() }
    }

    /// The same listing, in which some names stay writes.
    pub(super) fn with_held_writes(&self, names: Vec<Box<str>>) -> Self {
        let bytes: usize = names.iter().map(|name| size_of::<Box<str>>() + on_heap(name.len())).sum();
        let weight = self.listed.weight.beside(OVERHEAD + bytes);
        let held_writes = HeldWrites { names: names.into(), _weight: Some(weight) };
        Self { number: next_number(), listed: Arc::clone(&self.listed), held_writes: Arc::new(held_writes) }
    }

    /// What changed since `before`, which holds names as well.
    ///
    /// # Cost
    /// One walk over both lists of names.
    pub(super) fn changes_since(&self, before: &Self) -> Changes {
        let mut changes = Changes::default();
        let mut held: Vec<&str> = Vec::new();
        let mut new = self.groups().peekable();
        for was in before.groups() {
            while new.next_if(|is| is.name() < was.name()).is_some() {}
            let is = new.next_if(|is| is.name() == was.name());
            changes.redefined += usize::from(is.is_some_and(|is| !is.is_same_as(was)));
            if was.is_read_only() || was.is_held_as_write() {
                continue;
            }
            if is.is_none_or(Named::is_read_only) {
                held.push(was.name());
                changes.turned_read_only += usize::from(is.is_some());
            }
        }
        let marked_as_write = |name: &str| self.named(name).is_some_and(|named| !named.is_read_only());
        held.extend(
            before.held_writes.names.iter().map(|name| &**name).filter(|name| !marked_as_write(name)),
        );
        held.sort_unstable();
        held.dedup();
        held.truncate(HELD_WRITES_MAX);
        changes.held_writes = held.into_iter().map(Box::from).collect();
        changes
    }

    /// All names with their definitions, sorted by name.
    fn groups(&self) -> impl Iterator<Item = Named<'_>> {
        let by_name = self.listed.by_name.chunk_by(|&one, &other| {
            self.listed.tools[one as usize].name() == self.listed.tools[other as usize].name()
        });
        by_name.map(|indexes| Named { catalog: self, indexes })
    }

    /// The tools in the upstream's order, as the index counts them.
    pub fn tools(&self) -> &[Arc<IndexedTool>] {
        &self.listed.tools
    }

    /// A number that no other catalogue has, now or later: not one with the same tools of which others are held as writes.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The search index over [`Self::tools`].
    pub fn index(&self) -> &Index {
        &self.listed.index
    }

    /// The upstream's instructions, unchanged.
    pub fn instructions(&self) -> Option<&str> {
        self.listed.instructions.as_deref()
    }

    /// How many listed definitions were left out since no call could name them or the protocol forbids them.
    pub fn left_out(&self) -> usize {
        self.listed.left_out
    }

    /// The tools of exactly that name.
    ///
    /// # Cost
    /// A binary search.
    pub fn named(&self, name: &str) -> Option<Named<'_>> {
        let name_of = |index: &u32| self.listed.tools[*index as usize].name();
        let start = self.listed.by_name.partition_point(|index| name_of(index) < name);
        // Usually one, so that it is counted faster than it is searched for.
        let count = self.listed.by_name[start..].iter().take_while(|index| name_of(index) == name).count();
        let indexes = &self.listed.by_name[start..start + count];
        (!indexes.is_empty()).then_some(Named { catalog: self, indexes })
    }

    /// All names, sorted; a name that is listed twice comes twice.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.listed.by_name.iter().map(|&index| self.listed.tools[index as usize].name())
    }
}

impl<'a> Named<'a> {
    /// The definitions in the upstream's order; never empty.
    pub fn tools(self) -> impl Iterator<Item = &'a Arc<IndexedTool>> {
        self.indexes.iter().map(move |&index| &self.catalog.listed.tools[index as usize])
    }

    /// The first definition.
    pub fn first(self) -> &'a Arc<IndexedTool> {
        &self.catalog.listed.tools[self.indexes[0] as usize]
    }

    /// The name that all of them have.
    pub fn name(self) -> &'a str {
        self.first().name()
    }

    /// Whether every definition of the name is read-only, and nothing speaks against it: a name listed both ways is a
    /// write, and so is one that was a write before or that looks like another.
    pub fn is_read_only(self) -> bool {
        self.tools().all(|tool| tool.is_read_only())
            && !self.is_held_as_write()
            && !self.catalog.listed.lookalikes.contains(self.name())
    }

    /// Whether the name is a write only since this caller knew it as one.
    pub fn is_held_as_write(self) -> bool {
        self.catalog.held_writes.names.binary_search_by(|held| (**held).cmp(self.name())).is_ok()
    }

    fn is_same_as(self, other: Named<'_>) -> bool {
        self.tools().map(|tool| tool.digest()).eq(other.tools().map(|tool| tool.digest()))
    }
}
