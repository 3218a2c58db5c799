//! The [`Ranker`]: documents in, hits out.

use std::sync::Arc;

use super::analyzer::Analyzer;
use super::document::{AnalyzedDocument, Document, Embed, Field, NameTerms};
use super::floor::Evidence;
use super::fuse::{self, Fused};
use super::index::Index;
use super::lexical::{self, Lexical};
use super::options::RankerOptions;
use super::query::{self, QueryVectors, QueryWords};
use super::{analyzer, names, pick, values, vectors};

/// Scored documents beyond those asked for, from which an answer is put together.
const SPARE: usize = 20;

/// A tool that fits, best first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Position in the documents that the index was made from.
    pub index: usize,
    /// Comparable within an answer only.
    pub score: f32,
    /// Of the whole query; `None` without an embedder, or when it knows no token of the query.
    pub cosine: Option<f32>,
}

/// Ranks tools. Cheap to share; holds no documents.
pub struct Ranker {
    pub(super) options: RankerOptions,
    pub(super) analyzer: Analyzer,
    embedder: Option<Arc<dyn Embed>>,
}

/// Everything that a query found, before an answer is made of it.
pub(super) struct Found {
    pub words: QueryWords,
    pub lexical: Lexical,
    pub fused: Fused,
    pub evidence: Evidence,
    pub named: Vec<u32>,
}

impl Ranker {
    pub fn new(options: RankerOptions, embedder: Option<Arc<dyn Embed>>) -> Self {
        Self { options, analyzer: Analyzer::new(), embedder }
    }

    /// What is kept of a document. Depends on the document alone.
    ///
    /// # Cost
    ///
    /// About 10 microseconds for a tool of 60 words that other tools have too.
    pub fn analyze(&self, document: &Document<'_>) -> AnalyzedDocument {
        let (server, bare) = names::split_server(document.name);
        let (lead, body) = split_lead(document.description);
        let (fields, lithuanian, may_advise, ends) = self.analyzer.with_memory(|memory| {
            let mut fields = analyzer::FieldTerms::new(&self.analyzer, memory);
            let server_end = fields.read_name(Field::Server, server.unwrap_or_default());
            let name_end = fields.read_name(Field::Name, bare);
            fields.read(Field::Title, document.title);
            fields.read(Field::Lead, lead);
            fields.read(Field::Body, body);
            for parameter in &document.parameters {
                fields.read_name(Field::ParameterName, parameter.name);
                fields.read(Field::ParameterText, parameter.description);
                for value in &parameter.enum_values {
                    fields.read(Field::EnumValue, value);
                }
            }
            // A first sentence that has not ended may be cut within the word.
            let is_cut = !lead.ends_with(['\n', ' ']) && !body.is_empty();
            let (lithuanian, may_advise) = (fields.lithuanian, fields.may_advise || is_cut);
            (fields.finish(), lithuanian, may_advise, [server_end, name_end])
        });
        let (terms, lengths, spelled) = fields;
        let vector = self.embedder.as_deref().and_then(|embedder| {
            let [server_end, name_end] = ends;
            let parts = vectors::Parts {
                server: &spelled[..server_end],
                name: &spelled[server_end..name_end],
                title: document.title,
                lead,
                body,
                parameters: &spelled[name_end..],
            };
            parts.vector(embedder, &self.options.vector)
        });
        let pointers = if may_advise { names::pointers(document.description) } else { Vec::new() };
        let prefix = if server.is_none() { names::split_prefix(bare) } else { None };
        AnalyzedDocument {
            terms,
            lengths,
            name: NameTerms {
                full: self.analyzer.name(names::without_client(document.name)),
                bare: self.analyzer.name(bare),
                server: server.map(|server| self.analyzer.name(server)),
                prefix: prefix.map(|(prefix, rest)| (self.analyzer.name(prefix), self.analyzer.name(rest))),
            },
            pointers: pointers.iter().map(|name| self.analyzer.name(name)).collect(),
            lithuanian,
            vector: vector.unwrap_or_default(),
        }
    }

    /// A listing, ready to be searched.
    pub fn index(&self, documents: &[Arc<AnalyzedDocument>]) -> Index {
        let dimensions = self.embedder.as_ref().map_or(0, |embedder| embedder.dimensions());
        Index::new(&self.options, documents, dimensions)
    }

    /// The most that [`Self::index`] takes while it works, in bytes, about.
    ///
    /// # Cost
    /// A glance at each term.
    pub fn index_bytes(&self, documents: &[Arc<AnalyzedDocument>]) -> usize {
        let dimensions = self.embedder.as_ref().map_or(0, |embedder| embedder.dimensions());
        Index::bytes_ahead(documents, dimensions)
    }

    /// The best `limit` documents for `query`, best first; empty when nothing fits.
    ///
    /// # Cost
    ///
    /// About 30 microseconds among 1,000 tools, embedding included.
    pub fn rank(&self, query: &str, index: &Index, limit: usize) -> Vec<Hit> {
        let found = self.find(query, index, limit);
        self.answer(&found, index, limit).into_iter().map(|document| hit(&found, document)).collect()
    }

    /// How sure it is that anything fits `query`.
    pub fn evidence(&self, query: &str, index: &Index) -> Evidence {
        self.find(query, index, 1).evidence
    }

    pub(super) fn find(&self, query: &str, index: &Index, limit: usize) -> Found {
        let taken = values::take(query::capped(query));
        let words = query::words(&self.analyzer, &taken, index.has_lithuanian(), &self.options);
        let lexical = lexical::score(index, &words.words, &self.options);
        let vectors = self.query_vectors(&taken.spelled);
        let fused =
            fuse::fuse(&self.options.fusion, index, &lexical, vectors.as_ref(), limit.saturating_add(SPARE));
        let cosine = fused.nearest.or(self.embedder.as_ref().map(|_| 0.0));
        let scattered = vectors.as_ref().map_or(0.0, |vectors| vectors.familiarity.scattered);
        let evidence = Evidence::new(index, &lexical, cosine, scattered, words.english);
        let named = pick::named(&self.analyzer, index, query, |document| fused.scores[document as usize]);
        Found { words, lexical, fused, evidence, named }
    }

    pub(super) fn answer(&self, found: &Found, index: &Index, limit: usize) -> Vec<u32> {
        let order: &[u32] =
            if found.evidence.suffices(&self.options.floor, index.len()) { &found.fused.order } else { &[] };
        pick::pick(index, &found.named, order, limit)
    }

    fn query_vectors(&self, query: &str) -> Option<QueryVectors> {
        query::vectors(self.embedder.as_deref()?, query)
    }
}

pub(super) fn hit(found: &Found, document: u32) -> Hit {
    let place = document as usize;
    Hit { index: place, score: found.fused.scores[place], cosine: found.fused.cosines.get(place).copied() }
}

/// The first sentence of a description, and the rest.
fn split_lead(description: &str) -> (&str, &str) {
    /// A first sentence that has not ended by here is cut.
    const LEAD_BYTES_MAX: usize = 300;
    let description = description.trim_start();
    let head = &description[..description.floor_char_boundary(LEAD_BYTES_MAX)];
    let bytes = head.as_bytes();
    let end = bytes.iter().enumerate().find_map(|(at, byte)| match byte {
        // Most bytes are letters or spaces.
        b'a'..=b'z' | b' ' => None,
        b'\n' => Some(at + 1),
        b'.' | b'!' | b'?' if bytes.get(at + 1) == Some(&b' ') => Some(at + 2),
        // The first byte of "。".
        0xe3 if bytes[at..].starts_with("。".as_bytes()) => Some(at + "。".len()),
        _ => None,
    });
    description.split_at(end.unwrap_or(head.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Parameter;
    use proptest::prelude::*;

    /// Names and descriptions, searched by words alone.
    struct Lab {
        ranker: Ranker,
        documents: Vec<Arc<AnalyzedDocument>>,
        index: Index,
        names: Vec<String>,
    }

    impl Lab {
        fn new(tools: &[(&str, &str)]) -> Self {
            let ranker = Ranker::new(RankerOptions::default(), None);
            let analyze = |&(name, description): &(&str, &str)| {
                let document = Document { name, description, ..Document::default() };
                Arc::new(ranker.analyze(&document))
            };
            let documents: Vec<_> = tools.iter().map(analyze).collect();
            let index = ranker.index(&documents);
            Self { ranker, documents, index, names: tools.iter().map(|tool| tool.0.to_owned()).collect() }
        }

        fn search(&self, query: &str) -> Vec<&str> {
            self.ranker.rank(query, &self.index, 5).iter().map(|hit| self.names[hit.index].as_str()).collect()
        }
    }

    fn trackers() -> Lab {
        Lab::new(&[
            ("github__create_issue", "Open a new issue in a repository."),
            ("github__list_issues", "List the issues of a repository."),
            ("github__get_file_contents", "Read a file of a repository."),
            ("jira__create_issue", "Create an issue in a project."),
            ("jira__delete_issue", "Delete an issue for good."),
            ("mail__send", "Send an email message to a list of people."),
            ("calendar__createEvent", "Put a meeting on the calendar."),
            ("weather__forecast", ""),
            ("žinynas__ieškoti", "Leidžia žiūrėti failų sąrašą ir juos ištrinti."),
        ])
    }

    #[test]
    fn an_exact_name_is_first_in_any_spelling() {
        let lab = trackers();
        for query in [
            "github__list_issues",
            "mcp__github__list_issues",
            "list_issues",
            "listIssues",
            "list-issues",
            "List Issues",
            "please call list_issues now",
            "mcp__gateway__github__list_issues",
        ] {
            assert_eq!(lab.search(query).first(), Some(&"github__list_issues"), "{query}");
        }
    }

    #[test]
    fn every_server_that_shares_a_name_is_found_by_it() {
        let lab = trackers();
        let mut found = lab.search("create_issue")[..2].to_vec();
        found.sort_unstable();
        assert_eq!(found, ["github__create_issue", "jira__create_issue"]);
    }

    #[test]
    fn several_names_come_first_in_their_order() {
        let lab = trackers();
        assert_eq!(lab.search("send, createEvent")[..2], ["mail__send", "calendar__createEvent"]);
        assert_eq!(
            lab.search("use delete_issue then get-file-contents")[..2],
            ["jira__delete_issue", "github__get_file_contents"]
        );
    }

    #[test]
    fn a_tool_without_a_description_is_found_by_its_name() {
        assert_eq!(trackers().search("what is the forecast for tomorrow"), ["weather__forecast"]);
    }

    #[test]
    fn words_match_across_inflection_and_synonyms() {
        let lab = trackers();
        assert_eq!(lab.search("sending emails").first(), Some(&"mail__send"));
        assert_eq!(lab.search("remove an issue").first(), Some(&"jira__delete_issue"));
    }

    #[test]
    fn diacritics_do_not_matter_either_way() {
        let lab = trackers();
        for query in ["žiūrėti failus", "ziureti failus", "failu sarasas", "FAILŲ SĄRAŠAS"] {
            assert_eq!(lab.search(query).first(), Some(&"žinynas__ieškoti"), "{query}");
        }
    }

    #[test]
    fn nonsense_finds_nothing() {
        let lab = trackers();
        for query in
            ["", "   ", "zqxwv kjhgf", "lorem ipsum dolor", "🙂🙂🙂", "how do you fix a leaking sink"]
        {
            assert!(lab.search(query).is_empty(), "{query}");
        }
    }

    #[test]
    fn a_tool_that_advises_another_is_followed_by_it() {
        let lab = Lab::new(&[
            ("docs__search", "Search the pages by title. For full text use search_all instead."),
            ("docs__list", "List pages by title."),
            ("docs__count", "Count pages by title."),
            ("docs__search_all", "Look everywhere."),
            ("other__search_all", "Look elsewhere."),
        ]);
        assert_eq!(lab.search("search the pages by title")[..2], ["docs__search", "docs__search_all"]);
    }

    #[test]
    fn advice_is_found_wherever_the_first_sentence_is_cut() {
        let ranker = Ranker::new(RankerOptions::default(), None);
        for padding in 240..320 {
            for advice in
                ["for all use search_all instead", "ė: instead use search_all", "use search_all [INSTEAD]"]
            {
                let description = format!("{} {advice}.", "x".repeat(padding));
                let document =
                    Document { name: "docs__search", description: &description, ..Document::default() };
                let pointers = ranker.analyze(&document).pointers;
                assert_eq!(pointers.first(), Some(&ranker.analyzer.name("search_all")), "{description}");
            }
        }
    }

    #[test]
    fn one_bare_name_of_many_servers_does_not_fill_the_answer() {
        let copies = ["a", "b", "c", "d", "e", "f"].map(|server| format!("{server}__take_screenshot"));
        let mut tools: Vec<(&str, &str)> =
            copies.iter().map(|name| (name.as_str(), "Take a screenshot of the page.")).collect();
        tools.push(("browser__capture", "Save an image of the page."));
        tools.push(("browser__open", "Open a page."));
        let lab = Lab::new(&tools);
        let found = lab.search("capture an image, a screenshot of the page");
        assert!(found.contains(&"browser__capture"), "{found:?}");
        assert!(lab.search("take_screenshot").iter().all(|name| name.ends_with("take_screenshot")));
    }

    #[test]
    fn t_d3_a_tool_stuffed_with_words_does_not_win() {
        let honest = trackers();
        let all_words = "create issue list issues repository file read delete send email message meeting calendar forecast weather ".repeat(40);
        let mut tools: Vec<(&str, &str)> = vec![("spam__best_tool_ever", all_words.as_str())];
        tools.extend([
            ("github__create_issue", "Open a new issue in a repository."),
            ("github__list_issues", "List the issues of a repository."),
            ("jira__delete_issue", "Delete an issue for good."),
            ("mail__send", "Send an email message to a list of people."),
            ("calendar__createEvent", "Put a meeting on the calendar."),
        ]);
        let lab = Lab::new(&tools);
        for query in [
            "create an issue",
            "list issues of the repository",
            "delete an issue",
            "send an email",
            "put a meeting on the calendar",
        ] {
            assert_ne!(lab.search(query)[0], "spam__best_tool_ever", "{query}");
        }
        assert_eq!(honest.search("send an email")[0], "mail__send");
    }

    #[test]
    fn t_d3_one_stuffed_tool_among_a_thousand_is_first_for_one_query_in_a_hundred_at_most() {
        let verbs = "create list delete update read send search export import archive merge close open move copy rename lock share print sign approve reject assign watch pin";
        let nouns = "issue file mail event user page report invoice order ticket branch commit image video song contact task note payment alert";
        let verbs: Vec<&str> = verbs.split(' ').collect();
        let nouns: Vec<&str> = nouns.split(' ').collect();
        let mut tools: Vec<(String, String)> = Vec::new();
        for server in ["one", "two"] {
            for verb in &verbs {
                for noun in &nouns {
                    let description = format!("Lets you {verb} the {noun} of a project.");
                    tools.push((format!("{server}__{verb}_{noun}"), description));
                }
            }
        }
        assert_eq!(tools.len(), 1_000);
        let words = [verbs.join(" "), nouns.join(" ")].join(" ");
        tools.push(("spam__create_list_delete_issue_file_mail".to_owned(), format!("{words} ").repeat(20)));
        let tools: Vec<(&str, &str)> =
            tools.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let lab = Lab::new(&tools);
        let mut wins = 0;
        for query in 0..1_000 {
            let (verb, noun) = (verbs[query % 25], nouns[query / 25 % 20]);
            let query = if query < 500 {
                format!("{verb} {noun}")
            } else {
                format!("{verb} the {noun} of my project")
            };
            wins += usize::from(lab.search(&query).first().is_some_and(|name| name.starts_with("spam__")));
        }
        assert!(wins <= 10, "{wins} of 1,000");
    }

    #[test]
    fn two_rankers_give_the_same_answers() {
        let (one, other) = (trackers(), trackers());
        for query in ["create an issue", "list files of a repository", "send a meeting", "issue"] {
            assert_eq!(
                one.ranker.rank(query, &one.index, 9),
                other.ranker.rank(query, &other.index, 9),
                "{query}"
            );
        }
    }

    #[test]
    fn an_explanation_adds_up_to_the_lexical_score() {
        let lab = trackers();
        let why = lab.ranker.explain("remove an issue for good", &lab.index, &lab.documents[4], 4);
        let sum: f32 = why.terms.iter().map(|term| term.score).sum();
        assert!((sum - why.lexical).abs() < 1e-4 && why.lexical > 0.0);
        assert!(why.terms.iter().any(|term| term.word == "remove" && term.synonym));
        assert_eq!((why.lexical_rank, why.semantic_rank), (Some(1), None));
    }

    #[test]
    fn parameters_are_searched_too() {
        let ranker = Ranker::new(RankerOptions::default(), None);
        let parameters = vec![Parameter {
            name: "dueDate",
            description: "When the task must be finished.",
            enum_values: vec!["tomorrow"],
        }];
        let documents = [
            Document { name: "a__alpha", description: "Does one thing.", parameters, ..Document::default() },
            Document { name: "b__beta", description: "Does another thing.", ..Document::default() },
        ];
        let analyzed: Vec<_> = documents.iter().map(|document| Arc::new(ranker.analyze(document))).collect();
        let index = ranker.index(&analyzed);
        for query in ["due date", "finished", "tomorrow"] {
            assert_eq!(ranker.rank(query, &index, 5)[0].index, 0, "{query}");
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(name in any::<String>(), description in any::<String>(), query in any::<String>(), limit in 0_usize..9) {
            let ranker = Ranker::new(RankerOptions::default(), None);
            let document = Document { name: &name, description: &description, title: &query, ..Document::default() };
            let analyzed = Arc::new(ranker.analyze(&document));
            let index = ranker.index(&[analyzed.clone(), analyzed]);
            for query in [&query, &name, &description] {
                let hits = ranker.rank(query, &index, limit);
                prop_assert!(hits.len() <= limit.min(2));
                prop_assert!(hits.iter().all(|hit| hit.score.is_finite()));
            }
        }
    }
}
