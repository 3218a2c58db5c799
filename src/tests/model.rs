//! The built-in model and its reader, held to its digests, to vectors that model2vec made, and to model2vec-rs.

use proptest::prelude::*;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use toolsearch_proxy::embedder::StaticModel;
use toolsearch_proxy::search::{Document, Embed, Ranker, RankerOptions};

type Oracle = model2vec_rs::model::StaticModel;

static OURS: LazyLock<Arc<StaticModel>> = LazyLock::new(|| StaticModel::builtin().unwrap());
static ORACLE: LazyLock<Oracle> =
    LazyLock::new(|| Oracle::from_pretrained(folder().join("builtin"), None, Some(true), None).unwrap());

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("model")
}

/// The largest difference of two vectors.
fn distance(one: &[f32], other: &[f32]) -> f32 {
    assert_eq!(one.len(), other.len());
    one.iter().zip(other).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

fn assert_same(text: &str) {
    // Without a limit of tokens, as a tool's text has its own.
    let expected = &ORACLE.encode_with_args(&[text.to_owned()], None, 1)[0];
    let far = distance(expected, &OURS.encode(text));
    assert!(far < 1e-5, "{text:?} is {far} off");
}

#[test]
fn the_files_have_the_digests_of_the_list() {
    let list = std::fs::read_to_string(folder().join("builtin/SHA256SUMS")).unwrap();
    assert_eq!(list.lines().count(), 4);
    for line in list.lines() {
        let (expected, name) = line.split_once("  ").unwrap();
        let bytes = std::fs::read(folder().join("builtin").join(name)).unwrap();
        let found = Sha256::digest(&bytes).iter().fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").unwrap();
            hex
        });
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn t_s1_reference_texts_have_the_tokens_and_vectors_of_model2vec() {
    #[derive(Deserialize)]
    struct Reference {
        text: String,
        ids: Vec<u32>,
        vector: Vec<f32>,
    }
    let references: Vec<Reference> =
        serde_json::from_slice(&std::fs::read(folder().join("reference.json")).unwrap()).unwrap();
    assert!(references.len() >= 60);
    for reference in references {
        let mut ids = Vec::new();
        OURS.tokenize(&reference.text, &mut ids);
        // Model2vec cuts at 512 tokens by itself; the ranker cuts text before.
        if ids.len() > 512 {
            continue;
        }
        assert_eq!(ids, reference.ids, "{:?}", reference.text);
        let far = distance(&OURS.encode(&reference.text), &reference.vector);
        assert!(far < 1e-4, "{:?} is {far} off", reference.text);
    }
}

#[test]
fn questions_in_every_language_have_the_vectors_of_model2vec_rs() {
    #[derive(Deserialize)]
    struct Question {
        query: String,
    }
    let questions = std::fs::read_to_string(folder().join("eval/queries.jsonl")).unwrap();
    for line in questions.lines() {
        assert_same(&serde_json::from_str::<Question>(line).unwrap().query);
    }
}

#[test]
fn odd_texts_have_the_vectors_of_model2vec_rs() {
    for text in [
        "",
        " ",
        "\r\n",
        "a\r\n\r\nb",
        "\t\tx",
        "▁",
        "▁▁x",
        "a  b   c",
        "\0",
        "a\0b",
        "İstanbul ΣΑΣ ß",
        "ﬁ ﬂ Ⅻ ① ㎏",
        "e\u{301} n\u{303}",
        "👩‍👩‍👧‍👦 👍🏽 🇮🇳",
        "\u{200b}\u{feff}x",
        "\u{10ffff}",
        "<unk> <s> <pad>",
        "हिन्दी में",
        "สวัสดีชาวโลก",
        "ＦＵＬＬ ｶﾀｶﾅ",
        "\u{a0}n\u{3000}i\u{2009}t",
    ] {
        assert_same(text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    #[test]
    fn random_texts_have_the_vectors_of_model2vec_rs(
        text in "[a-zA-Z ąčęėįšųūžéüßа-яא-תا-ي一-十ぁ-んก-ฮ가-나0-9\u{200b}-\u{200f}\r\n\t ]{0,80}",
        any in "[\u{20}-\u{7e}\u{a0}-\u{17f}\u{400}-\u{4ff}]{0,60}",
    ) {
        assert_same(&text);
        assert_same(&any);
    }
}

#[test]
fn letters_at_random_find_nothing_and_words_of_any_language_do() {
    #[derive(Deserialize)]
    struct Listing {
        tools: Vec<Tool>,
    }
    #[derive(Deserialize)]
    struct Tool {
        name: String,
        #[serde(default)]
        description: String,
    }
    let listing: Listing =
        serde_json::from_slice(&std::fs::read(folder().join("eval/catalogue.json")).unwrap()).unwrap();
    let ranker = Ranker::new(RankerOptions::default(), Some(OURS.clone()));
    let documents: Vec<_> = listing.tools[..80]
        .iter()
        .map(|tool| Document { name: &tool.name, description: &tool.description, ..Document::default() })
        .map(|document| Arc::new(ranker.analyze(&document)))
        .collect();
    let index = ranker.index(&documents);
    let found = |query: &str| !ranker.rank(query, &index, 5).is_empty();
    for nonsense in ["asdf qwer zxcv", "lkjhg poiuy", "xkcd9 zz7 q", "wvqx jzkpt", "фывапр олджэ", "???"]
    {
        assert!(!found(nonsense), "{nonsense}");
    }
    for question in [
        "merge the pull request",
        "sujunk pakeitimų prašymą",
        "ein Ticket anlegen",
        "wyślij wiadomość",
        "créer une branche",
        "yeni bir toplantı oluştur",
        "створити завдання",
        "プルリクエストをマージする",
        "أنشئ مهمة جديدة",
    ] {
        assert!(found(question), "{question}");
    }
}
