"""All forms of a Lithuanian word share one row of the table.

inflect.py WORK DATA DICTIONARY_FOLDER OUT ROWS TOKENS TABLE.npy[,TABLE.npy...]
Reads the pieces in WORK (vocab.py) and the mean of the tables trained for them, and writes OUT: tokenizer.json with TOKENS tokens, mapping.npy
(token to row), uses.npy (how often each row is used), lithuanian.npz (the Lithuanian texts in rows), and start.npy, the table that
tune.py goes on from.

A noun has a dozen forms, a verb a hundred. Cut into pieces most of them lose their sense, as rows of their own they are
seen too seldom. The dictionary tells which forms belong together; which of them get a token is decided by how often they
are to be expected: what the corpus has of the word, times how often its language uses that ending.
"""

import collections
import json
import math
import os
import shutil
import sys
import zlib

import numpy as np
from tokenizers import Tokenizer

import spaces
import vocab
from hunspell import Dictionary

FORM_SHARE_MIN = 2e-5  # endings rarer than this are left to their pieces
# Interface texts seldom say "I" and "we": these endings of verbs (flags E, P, T) count at least so much.
SPOKEN = set("u iu i ai ei a o ė am ame om ome at ate ot ote au iau ėm ėme k kit kite kim kime čiau tum tų siu si s sim sime".split())
SPOKEN_SHARE = 0.01
SEEN_MIN = 3  # times that a word's forms are seen together before it gets a row


def lexemes(folder, counts):
    """(count, name, {form: expected count}) of each word of the dictionary that the corpus has."""
    known, rules, of_flag = [], collections.Counter(), collections.Counter()
    for name, forms in Dictionary(folder, "lt_LT", "iso8859-13").lexemes():
        forms = [(f, r) for f, r in forms if len(f) > 2]
        seen = {f: counts[f] for f, _ in forms if counts.get(f)}
        total = sum(seen.values())
        if total < SEEN_MIN:
            continue
        for form, rule in {f: r for f, r in forms}.items():
            # A log keeps a few frequent forms from deciding.
            amount = math.log1p(counts.get(form, 0))
            rules[rule] += amount
            of_flag[rule[:1]] += amount
        known.append((total, name, forms, seen))
    found = []
    for total, name, forms, seen in known:
        expected = {}
        for form, rule in forms:
            spoken = SPOKEN_SHARE if rule[:1] in "EPT" and rule[1:] in SPOKEN else 0.0
            share = rules[rule] / max(sum(of_flag[x] for x in {r[:1] for _, r in forms}), 1e-9)
            share = max(share, spoken)
            if share > FORM_SHARE_MIN or form in seen:
                expected[form] = max(expected.get(form, 0.0), 0.5 * seen.get(form, 0) + total * share)
        found.append((total, name, expected))
    return sorted(found, key=lambda x: (-x[0], x[1]))


def owners(found):
    """Each form to the word that it is most often a form of: {form: (expected, name)}; then the same without marks."""
    owner = {}
    for total, name, expected in found:
        for form, amount in expected.items():
            if amount > owner.get(form, (0.0, ""))[0]:
                owner[form] = (amount, name)
    plain = {}
    for form, (amount, name) in owner.items():
        folded = vocab.without_marks(form)
        if folded != form and folded not in owner and amount * 0.4 > plain.get(folded, (0.0, ""))[0]:
            plain[folded] = (amount * 0.4, name)
    return owner | plain


def texts(data):
    """The Lithuanian texts, each with its target; those by grammar come after all others."""
    border = sum(len(json.load(open(f"{data}/{part}.json", encoding="utf-8"))) for part in ("english", "extra", "intents"))
    for language, target, text in vocab.read_texts(data, only="lt"):
        if language == "lt":
            yield target, vocab.normal(text)
    with open(f"{data}/lithuanian.tsv", encoding="utf-8") as file:
        for line in file:
            number, text = line.rstrip("\n").split("\t")
            yield border + int(number), vocab.normal(text)
            folded = vocab.without_marks(text)
            if folded != text.lower() and zlib.crc32(line.encode()) % 10 < 5:
                yield border + int(number), vocab.normal(folded)


def piece_values(work, pieces):
    """How much each piece covers, languages weighed as vocab.py does: of Lithuanian, and of the others together."""
    stored = np.load(f"{work}/tokens.npz")
    flat, offsets, language = stored["flat"], stored["offsets"], stored["language"]
    languages = json.load(open(f"{work}/languages.json"))
    of_token = np.repeat(language, np.diff(offsets))
    counts = np.bincount(flat, minlength=pieces)
    own, others = np.zeros(pieces), np.zeros(pieces)
    for i, name in enumerate(languages):
        part = np.bincount(flat[of_token == i], minlength=pieces)
        share = vocab.weight(name) * part / max(part.sum(), 1)
        if name == "lt":
            own += share
            counts = counts - part
        else:
            others += share
    return own, others, counts


def mean(tables):
    """The mean of several tables, in the space of the first."""
    first, *others = tables.split(",")
    return np.mean([np.load(first), *(spaces.brought(table, spaces.goal_of(first)) for table in others)], 0, dtype=np.float32)


def main(work, data, folder, out, rows_wanted, tokens_wanted, tables):
    os.makedirs(out, exist_ok=True)
    corpus = list(texts(data))
    counts = collections.Counter(w for _, text in corpus for w in text.split() if w.isalpha())
    found = lexemes(folder, counts)
    owner = owners(found)
    print("texts", len(corpus), "words", len(found), "forms", len(owner), flush=True)

    pieces = [tuple(p) for p in json.load(open(f"{work}/tokenizer.json", encoding="utf-8"))["model"]["vocab"][2:]]
    score = dict(pieces)
    place = {p: i + 2 for i, (p, _) in enumerate(pieces)}
    old = Tokenizer.from_file(f"{work}/tokenizer.json")
    own, others, seen = piece_values(work, len(pieces) + 2)
    # A form that is a whole word of another language too stays with it when that one says it more often.
    elsewhere = {f for f in owner if "▁" + f in place and others[place["▁" + f]] > own[place["▁" + f]]}
    forms = sorted((f for f in owner if f not in elsewhere), key=lambda f: (-owner[f][0], f))[:tokens_wanted]
    kept = [i for i, (p, _) in enumerate(pieces) if p[1:] not in owner or p[1:] in elsewhere or not p.startswith("▁")]
    names = {}
    for form in forms:
        names.setdefault(owner[form][1], len(names))
    single = [len(pieces[i][0]) == 1 for i in kept]
    order = sorted(range(len(kept)), key=lambda n: (not single[n], -others[kept[n] + 2] - 0.3 * own[kept[n] + 2]))
    room = min(rows_wanted - 2 - len(names), len(kept))
    chosen = sorted(kept[n] for n in order[:room])
    dropped = sum(others[kept[n] + 2] for n in order[room:]) / others.sum()
    forms = forms[: tokens_wanted - 2 - len(chosen)]

    cut = old.encode_batch_fast(forms, add_special_tokens=False)
    final = [pieces[i] for i in chosen]
    mapping = np.arange(2 + len(chosen) + len(forms), dtype=np.int32)
    used = {}
    for n, (form, e) in enumerate(zip(forms, cut)):
        whole = sum(score[pieces[i - 2][0]] if i > 1 else -13.0 for i in e.ids) + 0.1
        final.append(("▁" + form, round(max(whole, -13.5), 3)))
        mapping[2 + len(chosen) + n] = 2 + len(chosen) + used.setdefault(owner[form][1], len(used))
    rows = 2 + len(chosen) + len(used)
    print("rows", rows, "tokens", len(mapping), "pieces kept", len(chosen), "words with a row", len(used), f"share of other languages' text in dropped pieces {dropped:.4f}", flush=True)
    json.dump(vocab.tokenizer(final), open(f"{out}/tokenizer.json", "w", encoding="utf-8"), ensure_ascii=False, separators=(",", ":"))
    np.save(f"{out}/mapping.npy", mapping)

    # Kept pieces keep their vectors; a word's is the mean of its forms', each the sum of the pieces that it was cut into.
    earlier = mean(tables)
    fresh, weight, uses = np.zeros((rows, earlier.shape[1]), np.float32), np.zeros(rows, np.float32), np.zeros(rows)
    fresh[2 : 2 + len(chosen)] = earlier[[i + 2 for i in chosen]]
    uses[2 : 2 + len(chosen)] = seen[[i + 2 for i in chosen]]
    for n, (form, e) in enumerate(zip(forms, cut)):
        row, often = mapping[2 + len(chosen) + n], 0.05 + counts.get(form, 0)
        ids = [i for i in e.ids if i > 1]
        if ids:
            fresh[row] += often * earlier[ids].sum(0)
            weight[row] += often
    fresh /= np.where(weight > 0, weight, 1)[:, None]
    model = Tokenizer.from_file(f"{out}/tokenizer.json")
    flat, offsets = [], [0]
    for at in range(0, len(corpus), 20_000):
        for e in model.encode_batch_fast([t for _, t in corpus[at : at + 20_000]], add_special_tokens=False):
            ids = mapping[[i for i in e.ids if i > 1][: vocab.LONGEST]]
            flat.append(ids)
            offsets.append(offsets[-1] + len(ids))
    flat = np.concatenate(flat)
    print(f"pieces a word {len(flat) / sum(len(t.split()) for _, t in corpus):.2f}")
    np.savez(f"{out}/lithuanian.npz", flat=flat, offsets=np.array(offsets), target=np.array([t for t, _ in corpus], np.int32))
    np.save(f"{out}/start.npy", fresh)
    np.save(f"{out}/uses.npy", uses + np.bincount(flat, minlength=rows))
    vocab.store_fillers(model, out, mapping)
    json.dump({"first": 2 + len(chosen)}, open(f"{out}/own.json", "w"))
    shutil.copy(tables.split(",")[0].replace(".npy", ".goal.npy"), f"{out}/start.goal.npy")


if __name__ == "__main__":
    main(*sys.argv[1:5], int(sys.argv[5]), int(sys.argv[6]), sys.argv[7])
