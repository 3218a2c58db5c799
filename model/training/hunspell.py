"""Reads a hunspell dictionary: which forms belong to one word.

Only what Lithuanian needs: suffixes and prefixes of one letter's flag, conditions of characters and classes.
"""

import collections
import re


class Dictionary:
    def __init__(self, folder, name, encoding):
        self.suffixes, self.prefixes = collections.defaultdict(list), collections.defaultdict(list)
        for line in open(f"{folder}/{name}.aff", encoding=encoding):
            parts = line.split()
            if len(parts) >= 5 and parts[0] in ("SFX", "PFX"):
                flag, strip, add, condition = parts[1:5]
                strip, add = ("" if x == "0" else x for x in (strip, add))
                if parts[0] == "SFX":
                    self.suffixes[flag].append((strip, add, re.compile(condition + "$")))
                else:
                    self.prefixes[flag].append((add, re.compile(condition)))
        self.words = []
        for line in open(f"{folder}/{name}.dic", encoding=encoding):
            word, _, flags = line.strip().partition("/")
            if word and word.islower() and len(word) > 2 and word.isalpha():
                self.words.append((word, flags))

    def lexemes(self):
        """Every word with each of its prefixes, as (name, [(form, rule)]): a prefix makes another word of it."""
        for word, flags in self.words:
            forms = [(word, "")]
            for flag in flags:
                for strip, add, condition in self.suffixes.get(flag, ()):
                    if condition.search(word) and word.endswith(strip):
                        forms.append((word[: len(word) - len(strip)] + add, flag + add))
            yield word, forms
            for flag in flags:
                for add, condition in self.prefixes.get(flag, ()):
                    # Negations are left to their pieces.
                    if condition.match(word) and not add.startswith("ne"):
                        yield f"{add}+{word}", [(add + form, rule) for form, rule in forms]
