//! Why each tool stands where it does, for one question.

use std::io::{self, Write};

use super::catalogue::Catalogue;
use super::questions::Question;
use crate::search::{Explanation, Index, Ranker, TermShare};

/// Writes the answer to `question` and, below it, the relevant tools that are missing from it.
pub(super) fn write(
    ranker: &Ranker,
    index: &Index,
    catalogue: &Catalogue,
    question: &Question,
    limit: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "{} ({}): {}", question.id, question.lang, question.query)?;
    let explain =
        |position: usize| ranker.explain(&question.query, index, &catalogue.documents()[position], position);
    let hits = ranker.rank(&question.query, index, limit);
    let evidence = ranker.evidence(&question.query, index);
    writeln!(
        out,
        "evidence: best cosine {}, known words {:.2}, answered {:.2}, scattered {:.2}, {}; {}",
        number(evidence.cosine),
        evidence.known,
        evidence.answered,
        evidence.scattered,
        match (evidence.english, evidence.may_be_english()) {
            (true, _) => "English",
            (false, true) => "perhaps English",
            (false, false) => "not English",
        },
        if hits.is_empty() { "nothing fits" } else { "an answer" },
    )?;
    for (hit, place) in hits.iter().zip(1..) {
        write_tool(out, &format!("{place}."), catalogue.name(hit.index), question, &explain(hit.index))?;
    }
    let answered = |position: usize| hits.iter().any(|hit| hit.index == position);
    let missing = question
        .relevant
        .iter()
        .filter_map(|name| catalogue.position(name))
        .filter(|&position| !answered(position));
    for position in missing {
        write_tool(out, "missing:", catalogue.name(position), question, &explain(position))?;
    }
    Ok(())
}

fn write_tool(
    out: &mut dyn Write,
    place: &str,
    name: &str,
    question: &Question,
    why: &Explanation,
) -> io::Result<()> {
    let mark = if question.gain(name) > 0.0 { " (relevant)" } else { "" };
    writeln!(out, "\n{place} {name}{mark}{}", if why.named { " (named in the question)" } else { "" })?;
    writeln!(
        out,
        "   score {:.3}: words {:.2} of {:.2}, rank {}; cosine {}, rank {}",
        why.hit.score,
        why.lexical,
        why.bound,
        place_of(why.lexical_rank),
        number(why.hit.cosine),
        place_of(why.semantic_rank),
    )?;
    for term in &why.terms {
        writeln!(
            out,
            "   {:+.2} {}{}: {}",
            term.score,
            term.word,
            if term.synonym { " (by another word)" } else { "" },
            places(term)
        )?;
    }
    Ok(())
}

fn places(term: &TermShare) -> String {
    let places: Vec<String> =
        term.fields.iter().map(|share| format!("{} {}x", share.field, share.tf)).collect();
    places.join(", ")
}

fn number(value: Option<f32>) -> String {
    value.map_or("none".to_owned(), |value| format!("{value:.3}"))
}

fn place_of(rank: Option<u32>) -> String {
    rank.map_or("none".to_owned(), |rank| rank.to_string())
}
