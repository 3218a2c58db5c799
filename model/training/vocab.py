"""Chooses the pieces and tokenises the corpus.

vocab.py E5_TOKENIZER.json DATA OUT PIECES
Writes OUT/tokenizer.json, OUT/parents.json (for each piece, the ids in the base vocabulary that it starts from) and
OUT/tokens.npz (the tokens of every text).

The base pieces are those of multilingual-e5-small, lower-cased: a piece that exists only with capitals gets a lower-case
copy, since the texts are lower-cased. Kept are the pieces that cover the most text, each language weighed as if it had the
same amount. Then whole words are added where they save the most.
"""

import collections
import json
import math
import os
import re
import sys
import unicodedata
import zlib

import numpy as np
from tokenizers import Tokenizer

import fillers
import moods
from corpus import LANGUAGES

WEIGHT = {"en": 8.0, "lt": 2.5, "pl": 1.5, "de": 1.5, "es": 1.5, "fr": 1.5, "ja": 1.5, "zh": 1.5, "uk": 1.5, "ar": 1.5}
LESS = set("eo cy ga gl eu af is az uz kk be mn my tl sw ms km bs si ne pa".split())
# Whole words added: those that would be cut most often. Lithuanian is cut badly by the base pieces.
WORDS = {"en": 3500, "lt": 2800, "pl": 300} | dict.fromkeys("de es fr it pt nl ru uk cs sk hu sv da nb fi et lv tr el ar he fa hi".split(), 130)
OTHER_WORDS = 50
LONGEST = 64  # tokens kept of a text
LATIN = set("lt pl de es fr it pt cs sk hu sv da nb fi et lv ro hr sl tr ca vi sq is eu gl ga az bs nl".split())
LETTERS = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ß": "ss", "ı": "i", "æ": "ae", "ð": "d", "þ": "th", "ə": "e"})


INVISIBLE = "[\u00ad\u200b-\u200f\u2060\ufeff]"  # soft hyphen, zero-width marks, joiners, byte order mark


def weight(language):
    return WEIGHT.get(language, 0.6 if language in LESS else 1.0)


def lower(text):
    """As the tokenizers crate lower-cases: character by character."""
    return "".join(c.lower() for c in text)


def normal(text):
    return " ".join(lower(re.sub(INVISIBLE, "", unicodedata.normalize("NFKC", text))).split())


def without_marks(text):
    """Latin text as typed on a keyboard without its letters."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", text.lower()) if not unicodedata.combining(c))
    return plain.translate(LETTERS)


def base_pieces(path):
    """Lower-cased pieces of the base vocabulary: {piece: (score, [ids])}."""
    pieces = {}
    vocabulary = json.load(open(path, encoding="utf-8"))["model"]["vocab"]
    for index, (piece, score) in enumerate(vocabulary):
        if index < 4 or piece == "<mask>":
            continue
        small = lower(unicodedata.normalize("NFKC", piece))
        if small.count("▁") > 1 or "▁" in small[1:] or " " in small:
            continue
        kept = pieces.get(small)
        exact = small == piece
        if kept is None:
            pieces[small] = [score, [index], exact]
        elif exact:
            pieces[small] = [max(score, kept[0]), [index], True]
        elif not kept[2]:
            pieces[small] = [max(score, kept[0]), kept[1] + [index], False]
    return {piece: (score, ids) for piece, (score, ids, _) in pieces.items()}


def tokenizer(pieces):
    """A Unigram tokenizer over [(piece, score)] with the two special pieces first."""
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "NFKC"},
                {"type": "Replace", "pattern": {"Regex": INVISIBLE}, "content": ""},
                {"type": "Lowercase"},
                {"type": "Replace", "pattern": {"Regex": "\\s+"}, "content": " "},
                {"type": "Strip", "strip_left": True, "strip_right": True},
            ],
        },
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
        "post_processor": None,
        "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
        "model": {
            "type": "Unigram",
            "unk_id": 1,
            "vocab": [["<pad>", 0.0], ["<unk>", 0.0]] + [[p, round(s, 3)] for p, s in pieces],
            "byte_fallback": False,
        },
    }


def load(description):
    return Tokenizer.from_str(json.dumps(description, ensure_ascii=False))


def read_texts(data, only=None):
    """All texts, or of the pairs those of one language, as (language, target, text); targets count the English texts
    first, then the extra ones, then the requests."""
    english = json.load(open(f"{data}/english.json", encoding="utf-8"))
    extra = json.load(open(f"{data}/extra.json", encoding="utf-8"))
    for target, text in enumerate(english + extra):
        yield "en", target, text
    requests = json.load(open(f"{data}/intents.json", encoding="utf-8"))
    border = len(english) + len(extra)
    for number, text in enumerate(requests):
        yield "en", border + number, text
    with open(f"{data}/intents.tsv", encoding="utf-8") as file:
        for line in file:
            language, number, text = line.rstrip("\n").split("\t", 2)
            yield language, border + int(number), text
    with open(f"{data}/pairs.tsv", encoding="utf-8") as file:
        for line in file:
            if only and not line.startswith(only):
                continue
            language, target, text = line.rstrip("\n").split("\t", 2)
            yield language, int(target), text
            for other in moods.imperatives(language, text):
                yield language, int(target), other
            # A tenth of the Latin-script texts again without marks, half of the Lithuanian ones.
            if language in LATIN and zlib.crc32(line.encode()) % 10 < (5 if language == "lt" else 1):
                folded = without_marks(text)
                if folded != text.lower():
                    yield language, int(target), folded


class Words:
    """Every distinct word once, with its count in each language; the texts as sequences of word numbers."""

    def __init__(self, data):
        self.languages = ["en"] + LANGUAGES
        number = {language: i for i, language in enumerate(self.languages)}
        self.number_of, self.sequences, self.owner, self.target = {}, [], [], []
        self.counts = [collections.Counter() for _ in self.languages]
        for language, goal, text in read_texts(data):
            ids = [self.number_of.setdefault(w, len(self.number_of)) for w in normal(text).split()[:40]]
            self.counts[number[language]].update(ids)
            self.sequences.append(np.array(ids, np.int32))
            self.owner.append(number[language])
            self.target.append(goal)
        self.texts = list(self.number_of)
        print("texts", len(self.sequences), "words", len(self.texts), flush=True)

    def cut(self, model):
        """The pieces of each word."""
        found = []
        for at in range(0, len(self.texts), 50_000):
            encoded = model.encode_batch_fast(self.texts[at : at + 50_000], add_special_tokens=False)
            found += [np.array(e.ids, np.int32) for e in encoded]
        return found


def choose(words, base, size):
    """The pieces to keep, as (piece, score, ids in the base vocabulary)."""
    pieces = base_pieces(base)
    order = list(pieces)
    cut = words.cut(load(tokenizer([(p, pieces[p][0]) for p in order])))
    value = np.zeros(len(order) + 2)
    seen = np.zeros(len(order) + 2, np.int64)
    chosen_words = {}
    for i, language in enumerate(words.languages):
        total = sum(words.counts[i].values())
        best = collections.Counter()
        for word, count in words.counts[i].items():
            ids = cut[word]
            np.add.at(value, ids, weight(language) * count / total)
            np.add.at(seen, ids, count)
            if len(ids) > 1 and count >= (10 if language == "lt" else 20) and words.texts[word].isalpha():
                best[word] = count * (len(ids) - 1)
        for word, _ in best.most_common(WORDS.get(language, OTHER_WORDS)):
            score = math.log(words.counts[i][word] / total)
            chosen_words[word] = max(chosen_words.get(word, -99.0), score)
    # A whole word's score is its share of the language, held where it beats its pieces but no longer piece.
    added = []
    for word, score in chosen_words.items():
        if "▁" + words.texts[word] not in pieces:
            parents = [pieces[order[x - 2]][1][0] for x in cut[word] if x > 1]
            added.append(("▁" + words.texts[word], max(min(score, -7.0), -13.5), parents))
    single = {i for i, p in enumerate(order) if p == "▁" or len(p) == 1 and (seen[i + 2] >= 3 or ord(p) < 128)}
    keep = set(single)
    for i in np.argsort(-value[2:], kind="stable"):
        if len(keep) >= size - 2 - len(added):
            break
        if seen[i + 2] >= 4:
            keep.add(int(i))
    print("own words", len(added), "single characters", len(single))
    return [(order[i], *pieces[order[i]]) for i in sorted(keep)] + added


def report(words, cut):
    for i, language in enumerate(words.languages):
        total = sum(words.counts[i].values())
        tokens = sum(c * len(cut[w]) for w, c in words.counts[i].items())
        unknown = sum(c * int((cut[w] == 1).sum()) for w, c in words.counts[i].items())
        print(f"{language} {tokens / max(total, 1):.2f} pieces a word, unknown {100 * unknown / max(tokens, 1):.2f}%")


def store_tokens(words, cut, out):
    flat, offsets = [], np.zeros(len(words.sequences) + 1, np.int64)
    for n, sequence in enumerate(words.sequences):
        ids = np.concatenate([cut[w] for w in sequence]) if len(sequence) else np.zeros(0, np.int32)
        ids = ids[ids > 1][:LONGEST]
        flat.append(ids)
        offsets[n + 1] = offsets[n] + len(ids)
    np.savez(
        f"{out}/tokens.npz",
        flat=np.concatenate(flat),
        offsets=offsets,
        language=np.array(words.owner, np.int16),
        target=np.array(words.target, np.int32),
    )


def store_fillers(model, out, mapping=None):
    def phrases(texts):
        found = [[i for i in e.ids if i > 1] for e in model.encode_batch_fast(texts, add_special_tokens=False)]
        return found if mapping is None else [mapping[ids].tolist() for ids in found]

    before = {language: phrases(text.split("|")) for language, text in fillers.BEFORE.items()}
    before["en"] = phrases(fillers.ENGLISH_BEFORE)
    stored = {"before": before, "after": {"en": phrases(fillers.ENGLISH_AFTER)}}
    json.dump(stored, open(f"{out}/fillers.json", "w"))


def main(base, data, out, size):
    os.makedirs(out, exist_ok=True)
    words = Words(data)
    final = choose(words, base, size)
    description = tokenizer([(p, s) for p, s, _ in final])
    with open(f"{out}/tokenizer.json", "w", encoding="utf-8") as file:
        json.dump(description, file, ensure_ascii=False, separators=(",", ":"))
    json.dump([ids for _, _, ids in final], open(f"{out}/parents.json", "w"))
    json.dump(words.languages, open(f"{out}/languages.json", "w"))
    model = Tokenizer.from_file(f"{out}/tokenizer.json")
    cut = words.cut(model)
    report(words, cut)
    store_tokens(words, cut, out)
    store_fillers(model, out)


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]))
