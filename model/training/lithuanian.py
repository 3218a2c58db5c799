"""Requests in Lithuanian by grammar: what people ask of tools, in all the forms that words take.

lithuanian.py DATA   writes DATA/lithuanian.json (English texts) and DATA/lithuanian.tsv (index of the English text, text)

The words are in lithuanian_words.txt. Interface texts name things in few cases and deeds by infinitives; people ask in
imperatives, with objects in the accusative, attributes in the genitive, places in the locative.
"""

import json
import os
import random
import re
import sys

NOMINATIVE, GENITIVE, DATIVE, ACCUSATIVE, INSTRUMENTAL, LOCATIVE = range(6)
LIMIT = 9_000  # English texts

# Ending of the nominative: endings of the six cases, singular and plural. A "+" softens the stem's last consonant.
ENDINGS = {
    "jus": ("jus jaus jui jų jumi juje", "jai jų jams jus jais juose"),
    "ius": ("ius iaus iui ių iumi iuje", "iai ių iams ius iais iuose"),
    "us": ("us aus ui ų umi uje", "ūs ų ums us umis uose"),
    "as": ("as o ui ą u e", "ai ų ams us ais uose"),
    "is": ("is +io +iui į +iu yje", "+iai +ių +iams +ius +iais +iuose"),
    "ys": ("ys +io +iui į +iu yje", "+iai +ių +iams +ius +iais +iuose"),
    "is+": ("is ies +iai į imi yje", "ys +ių ims is imis yse"),
    "a": ("a os ai ą a oje", "os ų oms as omis ose"),
    "ė": ("ė ės ei ę e ėje", "ės +ių ėms es ėmis ėse"),
    "i": ("i ios iai ią ia ioje", "ios ių ioms ias iomis iose"),
}
PLURAL_ONLY = {
    "iai": "iai ių iams ius iais iuose",
    "ai": "ai ų ams us ais uose",
    "os": "os ų oms as omis ose",
    "ės": "ės +ių ėms es ėmis ėse",
}
IRREGULAR = {
    "šuo": ("šuo šuns šuniui šunį šunimi šunyje", "šunys šunų šunims šunis šunimis šunyse"),
    "vanduo": ("vanduo vandens vandeniui vandenį vandeniu vandenyje", ""),
    "mėnuo": ("mėnuo mėnesio mėnesiui mėnesį mėnesiu mėnesyje", "mėnesiai mėnesių mėnesiams mėnesius mėnesiais mėnesiuose"),
    "ruduo": ("ruduo rudens rudeniui rudenį rudeniu rudenyje", ""),
    "rodmuo": ("rodmuo rodmens rodmeniui rodmenį rodmeniu rodmenyje", "rodmenys rodmenų rodmenims rodmenis rodmenimis rodmenyse"),
    "sesuo": ("sesuo sesers seseriai seserį seserimi seseryje", "seserys seserų seserims seseris seserimis seseryse"),
    "dantis": ("dantis danties dančiui dantį dantimi dantyje", "dantys dantų dantims dantis dantimis dantyse"),
    "debesis": ("debesis debesies debesiui debesį debesimi debesyje", "debesys debesų debesims debesis debesimis debesyse"),
    "sultys": ("", "sultys sulčių sultims sultis sultimis sultyse"),
    "grindys": ("", "grindys grindų grindims grindis grindimis grindyse"),
    "vaidmuo": ("vaidmuo vaidmens vaidmeniui vaidmenį vaidmeniu vaidmenyje", "vaidmenys vaidmenų vaidmenims vaidmenis vaidmenimis vaidmenyse"),
    "žmogus": ("žmogus žmogaus žmogui žmogų žmogumi žmoguje", "žmonės žmonių žmonėms žmones žmonėmis žmonėse"),
    "durys": ("", "durys durų durims duris durimis duryse"),
    "duomenys": ("", "duomenys duomenų duomenims duomenis duomenimis duomenyse"),
    "pietūs": ("", "pietūs pietų pietums pietus pietumis pietuose"),
}
AGREEING = {"virtuali", "atsarginė", "momentinė", "papildoma", "lankytina"}
# Accusative of a word before a noun: masculine and feminine, singular and plural ("" where there is none), and English.
BEFORE = [
    ("", "", "visus", "visas", "all"),
    ("mano", "mano", "mano", "mano", "my"),
    ("savo", "savo", "savo", "savo", "my"),
    ("naują", "naują", "naujus", "naujas", "new"),
    ("šį", "šią", "šiuos", "šias", "this"),
    ("paskutinį", "paskutinę", "paskutinius", "paskutines", "latest"),
    ("kitą", "kitą", "kitus", "kitas", "other"),
    ("geriausią", "geriausią", "geriausius", "geriausias", "best"),
    ("esamą", "esamą", "esamus", "esamas", "existing"),
    ("seną", "seną", "senus", "senas", "old"),
]
PREPOSITIONS = [
    ("iš", GENITIVE, "from"), ("į", ACCUSATIVE, "to"), ("prie", GENITIVE, "to"), ("pagal", ACCUSATIVE, "by"), ("apie", ACCUSATIVE, "about"),
    ("su", INSTRUMENTAL, "with"), ("be", GENITIVE, "without"), ("", LOCATIVE, "in"), ("", DATIVE, "for"), ("už", ACCUSATIVE, "for"),
]
TIMES = [
    ("šiandien", "today"), ("rytoj", "tomorrow"), ("vakar", "yesterday"), ("dabar", "now"), ("šią savaitę", "this week"), ("kitą savaitę", "next week"),
    ("praėjusį mėnesį", "last month"), ("vakare", "in the evening"), ("ryte", "in the morning"), ("rytojui", "for tomorrow"), ("kasdien", "every day"),
    ("Vilniuje", "in Vilnius"), ("Kaune", "in Kaunas"), ("netoliese", "nearby"), ("internete", "online"), ("namuose", "at home"), ("darbe", "at work"),
    ("po valandos", "in an hour"), ("savaitgalį", "at the weekend"), ("antradienį", "on Tuesday"), ("pirmadienį", "on Monday"), ("penktadienį", "on Friday"),
]


def soften(stem):
    return stem[:-1] + {"t": "č", "d": "dž"}[stem[-1]] if stem[-1] in "td" else stem


def spread(stem, endings):
    return [(soften(stem) + e[1:]) if e.startswith("+") else stem + e for e in endings.split()]


def decline(word):
    """(singular, plural), six cases each or None; `word` is a nominative, with "+" when it is feminine in -is."""
    feminine, word = word.endswith("+"), word.rstrip("+")
    if word in IRREGULAR:
        return tuple(forms.split() or None for forms in IRREGULAR[word])
    for ending, endings in PLURAL_ONLY.items():
        if word.endswith(ending):
            return None, spread(word[: -len(ending)], endings)
    if feminine:
        return tuple(spread(word[:-2], e) for e in ENDINGS["is+"])
    for ending, both in ENDINGS.items():
        if word.endswith(ending):
            return tuple(spread(word[: -len(ending)], e) for e in both)
    raise ValueError(word)


class Noun:
    def __init__(self, entry):
        parts = [p.strip() for p in entry.split("=")]
        *attribute, head = parts[0].split()
        self.singular, self.plural = decline(head)
        for i, word in enumerate(attribute):
            if word in AGREEING:
                one, many = decline(word)
                attribute[i] = None
                self.singular, self.plural = ([f"{a} {b}" for a, b in zip(x, y)] for x, y in ((one, self.singular), (many, self.plural)))
        attribute = " ".join(a for a in attribute if a)
        if attribute:
            self.singular, self.plural = ([f"{attribute} {f}" for f in forms] if forms else None for forms in (self.singular, self.plural))
        self.feminine = parts[0].endswith(("a", "ė", "+", "os", "ės", "i", "durys", "grindys", "sultys", "sesuo"))
        self.english = parts[1]
        self.english_plural = parts[1] + "s" if len(parts) < 3 else None if parts[2] == "-" else parts[2]
        if self.english_plural is None and self.singular:
            self.plural = None

    def pick(self, source, case):
        """(form, English with an article, English bare, whether it is plural)"""
        many = self.singular is None or self.plural is not None and source.random() < 0.4
        english = (self.english_plural or self.english) if many else self.english
        whole = english if many or self.english_plural is None else source.choice(["the ", "a "]) + english
        return (self.plural if many else self.singular)[case], re.sub(r"\ba (?=[aeiou])", "an ", whole), english, many

    def forms(self):
        for many, forms in enumerate((self.singular, self.plural)):
            for form in forms or []:
                yield form, (self.english_plural or self.english) if many else self.english


def read(path):
    nouns, verbs, phrases = {}, {}, []
    for line in open(path, encoding="utf-8"):
        if line.startswith("#") or not line.strip():
            continue
        head, entries = line.split(":", 1)
        entries = [e.strip() for e in entries.split(";")]
        if head == "phrases":
            phrases.extend(tuple(p.strip() for p in e.split("=")) for e in entries)
            continue
        if head.startswith("verbs "):
            verbs.setdefault(head[6:], []).extend(tuple(p.strip() for p in e.split("=")) for e in entries)
        else:
            nouns.setdefault(head, []).extend(Noun(e) for e in entries)
    return nouns, verbs, phrases


def imperative(verb, ending="k"):
    if verb.endswith("tis"):
        return re.sub(r"[kg]?tis$", "", verb) + ending + ("is" if ending == "k" else "ės")
    return re.sub(r"[kg]?ti$", "", verb) + ending


def verbal_noun(verb):
    for ending, noun in (("inti", "inimas"), ("uoti", "avimas"), ("yti", "ymas"), ("oti", "ojimas"), ("ėti", "ėjimas")):
        if verb.endswith(ending):
            return verb[: -len(ending)] + noun
    return None


def deeds(nouns, verbs, source):
    """Requests to do something: (English, Lithuanian texts)."""
    kind = source.choice(list(verbs))
    verb, english_verb = source.choice(verbs[kind])
    noun = source.choice(nouns[kind])
    form, whole, bare, many = noun.pick(source, ACCUSATIVE)
    tail = english_tail = ""
    chance = source.random()
    if chance < 0.3:
        *words, english = source.choice(BEFORE)
        word = words[2 * many + noun.feminine]
        if word:
            form, whole = f"{word} {form}", f"{english} {bare}"
    elif chance < 0.5:
        other = source.choice(source.choice(list(nouns.values())))
        part, english_part, *_ = other.pick(source, GENITIVE)
        form, whole = f"{part} {form}", f"{bare} of {english_part}"
    if 0.4 < chance < 0.65:
        word, case, english = source.choice(PREPOSITIONS)
        other, english_other, *_ = source.choice(source.choice([nouns["data"], nouns["person"], nouns[kind]])).pick(source, case)
        tail, english_tail = f" {word} {other}" if word else f" {other}", f" {english} {english_other}"
    elif 0.65 < chance < 0.8:
        word, english = source.choice(TIMES)
        tail, english_tail = f" {word}", f" {english}"
    texts = [f"{v} {form}{tail}" for v in (verb, imperative(verb), imperative(verb, "kite"))]
    if verb == "dalintis":
        texts = [t.replace(form, noun.pick(source, INSTRUMENTAL)[0]) for t in texts]
    called = verbal_noun(verb)
    if called and chance >= 0.5:
        texts.append(f"{(noun.plural if many else noun.singular)[GENITIVE]} {called}{tail}")
    return f"{english_verb} {whole}{english_tail}", texts


def questions(nouns, _, source):
    noun = source.choice(source.choice(list(nouns.values())))
    case, patterns = source.choice(
        [
            (NOMINATIVE, [("koks yra {}", "what is {}"), ("kas yra {}", "what is {}"), ("kur yra {}", "where is {}"), ("kada bus {}", "when is {}"),
                          ("kiek kainuoja {}", "how much does {} cost"), ("kuris {} geriausias", "which {} is the best"), ("ar yra {}", "is there {}"),
                          ("kiek truks {}", "how long does {} take"), ("koks bus {} rytoj", "what will {} be tomorrow"), ("ar veikia {}", "does {} work")]),
            (GENITIVE, [("ieškau {}", "search for {}"), ("ieškok {}", "search for {}"), ("ieškoti {}", "search for {}"), ("paieškok {}", "look for {}"), ("reikia {}", "I need {}"),
                        ("noriu {}", "I want {}"), ("pateik {} sąrašą", "list {}"), ("parodyk {} sąrašą", "show the list of {}"), ("{} paieška", "search for {}"),
                        ("kiek yra {}", "how many {} are there"), ("kiek turiu {}", "how many {} do I have"), ("{} skaičius", "the number of {}"), ("{} kaina", "price of {}")]),
            (ACCUSATIVE, [("kaip rasti {}", "how to find {}"), ("papasakok apie {}", "tell me about {}"), ("informacija apie {}", "information about {}"), ("kas sukūrė {}", "who created {}"),
                          ("primink apie {}", "remind me about {}"), ("pranešk apie {}", "notify about {}"), ("pasirink {}", "choose {}"), ("ar galima pakeisti {}", "can {} be changed")]),
            (LOCATIVE, [("kas yra {}", "what is in {}"), ("rask tekstą {}", "find text in {}"), ("kas pasikeitė {}", "what changed in {}"), ("kiek žmonių yra {}", "how many people are in {}")]),
        ]
    )
    pattern, english = source.choice(patterns)
    form, whole, *_ = noun.pick(source, case)
    return english.format(whole), [pattern.format(form)]


def attributes(nouns, _, source):
    one, other = (source.choice(source.choice(list(nouns.values()))) for _ in "ab")
    part, english_part, *_ = other.pick(source, GENITIVE)
    form, _, bare, _ = one.pick(source, NOMINATIVE)
    return f"{bare} of {english_part}", [f"{part} {form}"]


def main(data):
    nouns, verbs, whole = read(os.path.join(os.path.dirname(os.path.abspath(__file__)), "lithuanian_words.txt"))
    source = random.Random(0)
    found = {}
    for kind in nouns.values():
        for noun in kind:
            for form, english in noun.forms():
                found.setdefault(english, set()).add(form)
    for kind in verbs.values():
        for verb, english in kind:
            found.setdefault(english, set()).update((verb, imperative(verb), imperative(verb, "kite")))
    for lithuanian, english in whole:
        found.setdefault(english, set()).add(lithuanian)
    for _ in range(200_000):
        if len(found) >= LIMIT:
            break
        make = source.choices([deeds, questions, attributes], [6, 2.5, 0.8])[0]
        english, texts = make(nouns, verbs, source)
        found.setdefault(english, set()).update(texts)
    english = list(found)
    json.dump(english, open(f"{data}/lithuanian.json", "w", encoding="utf-8"))
    rows = 0
    with open(f"{data}/lithuanian.tsv", "w", encoding="utf-8") as file:
        for number, text in enumerate(english):
            for lithuanian in sorted(found[text]):
                file.write(f"{number}\t{lithuanian}\n")
                rows += 1
    print("English", len(english), "Lithuanian", rows)


if __name__ == "__main__":
    main(sys.argv[1])
