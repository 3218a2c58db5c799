"""A second, larger teacher on the part of the texts that matters most.

widen.py choose DATA             writes DATA/chosen.json, the texts to embed
widen.py fill DATA SMALL LARGE   writes DATA/english.LARGE.npy and DATA/extra.LARGE.npy: the large teacher's embeddings where
                                 it was asked, elsewhere a linear guess from the small one's
"""

import collections
import json
import sys

import numpy as np

import templates


def chosen(data):
    """Rows of texts with at least 30 translations, first sentences of operations and templates, none of them long."""
    english = json.load(open(f"{data}/english.json", encoding="utf-8"))
    extra = json.load(open(f"{data}/extra.json", encoding="utf-8"))
    ours = {o["text"] for o in json.load(open(f"{data}/operations.json"))} | set(templates.texts())
    uses = collections.Counter()
    with open(f"{data}/pairs.tsv", encoding="utf-8") as file:
        for line in file:
            uses[int(line.split("\t", 2)[1])] += 1
    rows = [i for i, text in enumerate(english) if uses[i] >= 30 and len(text) < 110]
    rows += [len(english) + i for i, text in enumerate(extra) if text in ours and len(text) < 150]
    return rows, english + extra, len(english)


def fill(data, small, large):
    rows, _, border = chosen(data)
    near = np.concatenate([np.load(f"{data}/{part}.{small}.npy").astype(np.float32) for part in ("english", "extra")])
    far = np.load(f"{data}/chosen.{large}.npy").astype(np.float32)
    mean = far.mean(0)
    left = near[rows]
    square = left.T @ left
    square += 1e-3 * np.trace(square) / len(square) * np.eye(len(square), dtype=np.float32)
    guess = near @ np.linalg.solve(square, left.T @ (far - mean)) + mean
    guess /= np.linalg.norm(guess, axis=1, keepdims=True)
    print("cosine of the guess", float((guess[rows] * far).sum(1).mean()))
    guess[rows] = far
    np.save(f"{data}/english.{large}.npy", guess[:border].astype(np.float16))
    np.save(f"{data}/extra.{large}.npy", guess[border:].astype(np.float16))


if __name__ == "__main__":
    if sys.argv[1] == "choose":
        rows, texts, _ = chosen(sys.argv[2])
        json.dump([texts[i] for i in rows], open(f"{sys.argv[2]}/chosen.json", "w", encoding="utf-8"), ensure_ascii=False)
        print("chosen", len(rows), "of", len(texts))
    else:
        fill(*sys.argv[2:5])
