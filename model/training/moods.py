"""Interface texts name actions by infinitives, people ask with imperatives: 'Ištrinti failą', but 'ištrink failą'.

`imperatives(language, text)` gives the forms that simple rules of our own make. They are right for regular verbs, and a
wrong form of a rare verb does no harm.
"""

import re

# Language: rules for the first word, and whether the verb stands last in interface texts.
FIRST = {
    "es": [(r"(\w{2,})ar$", ["{}a", "{}e"]), (r"(\w{2,})[ei]r$", ["{}e", "{}a"])],
    "fr": [(r"(\w{2,})er$", ["{}e", "{}ez"]), (r"(\w{2,})ir$", ["{}is", "{}issez"])],
    "it": [(r"(\w{2,})are$", ["{}a"]), (r"(\w{2,})[ei]re$", ["{}i"])],
    "pt": [(r"(\w{2,})ar$", ["{}a", "{}e"]), (r"(\w{2,})[ei]r$", ["{}e", "{}a"])],
    "ca": [(r"(\w{2,})ar$", ["{}a"])],
    "ru": [(r"(\w{2,})[оe]вать$", ["{}уй", "{}уйте"]), (r"(\w{2,})ать$", ["{}ай", "{}айте"]), (r"(\w{2,})ить$", ["{}и", "{}ите"])],
    "uk": [(r"(\w{2,})увати$", ["{}уй", "{}уйте"]), (r"(\w{2,})ювати$", ["{}юй"]), (r"(\w{2,})ати$", ["{}ай", "{}айте"]), (r"(\w{2,})ити$", ["{}и", "{}іть"])],
    "cs": [(r"(\w{2,})ovat$", ["{}uj", "{}ujte"]), (r"(\w{2,})at$", ["{}ej"])],
    "sk": [(r"(\w{2,})ovať$", ["{}uj", "{}ujte"]), (r"(\w{2,})ať$", ["{}aj", "{}ajte"])],
    "lv": [(r"(\w{2,})ēt$", ["{}ē", "{}ējiet"]), (r"(\w{2,})ot$", ["{}o", "{}ojiet"])],
    "et": [(r"(\w{2,})ma$", ["{}"]), (r"(\w{2,})da$", ["{}"])],
}
LAST = {"de": (r"(\w{2,})en$", ["{}e", "{}"]), "nl": (r"(\w{2,})en$", ["{}"])}


def lithuanian(text):
    """-ti becomes -k or -kite, -tis becomes -kis; a k or g before it falls away."""

    def changed(ending, reflexive):
        text_now = re.sub(r"\b(\w{2,}?)[kg]?ti\b", r"\1" + ending, text)
        return re.sub(r"\b(\w{2,}?)[kg]?(?<!n)tis\b", r"\1" + reflexive, text_now)

    return [changed("k", "kis"), changed("kite", "kitės")]


def imperatives(language, text):
    """Other forms of a text of at most eight words, without the text itself."""
    words = text.rstrip(".").split()
    if not 1 <= len(words) <= 8:
        return []
    if language == "lt":
        return [t for t in dict.fromkeys(lithuanian(text)) if t != text]
    if language in LAST and len(words) > 1 and words[-1].islower():
        pattern, forms = LAST[language]
        found = re.match(pattern, words[-1])
        return [" ".join([form.format(found[1])] + words[:-1]) for form in forms] if found else []
    for pattern, forms in FIRST.get(language, []):
        found = re.match(pattern, words[0].lower())
        if found:
            return [" ".join([form.format(found[1])] + words[1:]) for form in forms]
    return []
