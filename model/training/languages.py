"""Figures by language on texts that training left out: languages.py MODEL DATA

For each language: how often a text's English original is the nearest, or among the five nearest, of all English texts left
out (some 650).
"""

import collections
import json
import sys

import numpy as np
from model2vec import StaticModel

from corpus import LANGUAGES
from train import HELD_OUT


def main(folder, data):
    model = StaticModel.from_pretrained(folder)
    english = json.load(open(f"{data}/english.json", encoding="utf-8"))
    rows = [i for i in range(len(english)) if i % HELD_OUT == HELD_OUT - 1]
    place = {row: at for at, row in enumerate(rows)}
    originals = model.encode([english[i] for i in rows])
    texts = collections.defaultdict(dict)
    with open(f"{data}/pairs.tsv", encoding="utf-8") as file:
        for line in file:
            language, target, text = line.rstrip("\n").split("\t", 2)
            if int(target) in place:
                texts[language].setdefault(place[int(target)], text)
    print("| language | texts | first | first five |\n|---|---|---|---|")
    for language in LANGUAGES:
        found = texts[language]
        if not found:
            continue
        scores = model.encode(list(found.values())) @ originals.T
        own = scores[np.arange(len(found)), list(found)]
        rank = (scores > own[:, None]).sum(1)
        print(f"| {language} | {len(found)} | {np.mean(rank < 1):.2f} | {np.mean(rank < 5):.2f} |")


if __name__ == "__main__":
    main(*sys.argv[1:3])
