//! Writes compact JSON with raw pieces in it, and cuts text where a reader would.

use std::borrow::Cow;

/// A JSON object under construction. Values that are already JSON go in as they are.
pub(super) struct ObjectText(String);

impl ObjectText {
    pub(super) fn new() -> Self {
        Self("{".to_owned())
    }

    fn key(&mut self, key: &str) {
        if self.0 != "{" {
            self.0.push(',');
        }
        self.0.push('"');
        self.0.push_str(key);
        self.0.push_str("\":");
    }

    pub(super) fn text(&mut self, key: &str, value: &str) {
        self.key(key);
        self.0.push_str(&quoted(value));
    }

    pub(super) fn flag(&mut self, key: &str, value: bool) {
        self.raw(key, if value { "true" } else { "false" });
    }

    pub(super) fn texts(&mut self, key: &str, values: &[impl AsRef<str>]) {
        self.list(key, values.iter().map(|value| quoted(value.as_ref())));
    }

    /// A value that is JSON already.
    pub(super) fn raw(&mut self, key: &str, json: &str) {
        self.key(key);
        self.0.push_str(json);
    }

    /// An array of values that are JSON already.
    pub(super) fn list(&mut self, key: &str, items: impl IntoIterator<Item = impl AsRef<str>>) {
        self.key(key);
        self.0.push('[');
        for (i, item) in items.into_iter().enumerate() {
            if i > 0 {
                self.0.push(',');
            }
            self.0.push_str(item.as_ref());
        }
        self.0.push(']');
    }

    pub(super) fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }

    /// Further members of an object that was begun elsewhere.
    pub(super) fn going_on() -> Self {
        Self(String::new())
    }

    /// The members so far, of an object that is ended elsewhere.
    pub(super) fn unfinished(self) -> String {
        self.0
    }
}

/// Text as a JSON string.
pub(super) fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("text serialises")
}

/// Text as it stands between the quotes of a JSON string.
pub(super) fn escaped(text: &str) -> String {
    let mut quoted = quoted(text);
    quoted.pop();
    quoted.remove(0);
    quoted
}

/// The text up to `chars_max` characters, cut behind a sentence where there is one, else behind a word and marked
/// with an ellipsis. White space runs become one space.
pub(super) fn shortened(text: &str, chars_max: usize) -> String {
    let mut flat = String::with_capacity(text.len().min(chars_max * 4));
    for word in text.split_whitespace() {
        if !flat.is_empty() {
            flat.push(' ');
        }
        flat.push_str(word);
        if flat.len() > chars_max * 8 {
            break;
        }
    }
    let Some((cut, _)) = flat.char_indices().nth(chars_max) else { return flat };
    let kept = &flat[..cut];
    // A first sentence of a few words says too little to stop there.
    if let Some(end) = sentence_end(kept).filter(|end| *end >= cut / 4) {
        return kept[..end].to_owned();
    }
    let word_end = kept.rfind(' ').filter(|end| *end >= cut / 2).unwrap_or(cut);
    format!("{}…", kept[..word_end].trim_end_matches([',', ';', ':', ' ']))
}

/// Most characters of a name that an error repeats.
const SHOWN_CHARS_MAX: usize = 100;

/// A name in an error: short, and on one line.
pub(super) fn shown(name: &str) -> String {
    let mut out = String::new();
    for (i, c) in name.chars().enumerate() {
        if i == SHOWN_CHARS_MAX {
            out.push('…');
            break;
        }
        push_visible(&mut out, c);
    }
    out
}

/// Most bytes of an upstream's message that are passed on.
const MESSAGE_BYTES_MAX: usize = 2 * 1024;

/// Somebody else's message: at most 2 KiB, and nothing in it that hides or moves text. Lines stay lines.
pub(super) fn told(message: &str) -> String {
    let mut out = String::new();
    for c in message.chars() {
        if matches!(c, '\n' | '\t') {
            out.push(c);
        } else {
            push_visible(&mut out, c);
        }
        if out.len() > MESSAGE_BYTES_MAX {
            out.truncate(out.floor_char_boundary(MESSAGE_BYTES_MAX - '…'.len_utf8()));
            out.push('…');
            break;
        }
    }
    out
}

/// Text that a model reads, with everything in it to be seen; borrowed where nothing hid.
pub(super) fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    text.chars().for_each(|c| push_visible(&mut out, c));
    Cow::Owned(out)
}

/// A character, escaped where nobody would see it or where it changes how others are seen.
fn push_visible(out: &mut String, c: char) {
    if is_hidden(c) { out.extend(c.escape_unicode()) } else { out.push(c) }
}

/// Controls, marks without width, and what turns the direction of writing. Joiners are needed: Persian, Hindi and emoji
/// are written with them.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The index behind the last full stop of the text.
fn sentence_end(text: &str) -> Option<usize> {
    let latin = [". ", "! ", "? "].into_iter().filter_map(|stop| text.rfind(stop).map(|at| at + 1));
    let wide = ["。", "！", "？"].into_iter().filter_map(|stop| text.rfind(stop).map(|at| at + stop.len()));
    latin.chain(wide).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_compact_and_escaped() {
        let mut object = ObjectText::new();
        object.text("a", "x\"\n");
        object.flag("b", true);
        object.raw("c", "[1]");
        object.texts("d", &["e"]);
        assert_eq!(object.finish(), r#"{"a":"x\"\n","b":true,"c":[1],"d":["e"]}"#);
        assert_eq!(ObjectText::new().finish(), "{}");
    }

    #[test]
    fn t_d6_names_and_messages_are_short_and_hide_nothing() {
        assert_eq!(shown("a\u{1b}[2J\u{202e}\nž"), "a\\u{1b}[2J\\u{202e}\\u{a}ž");
        assert_eq!(shown(&"ž".repeat(101)), format!("{}…", "ž".repeat(100)));
        assert_eq!(told("one\ntwo\u{7}"), "one\ntwo\\u{7}");
        for message in ["x", "\u{1b}", "ž"].map(|part| part.repeat(3_000_000)) {
            let told = told(&message);
            assert!(told.len() <= MESSAGE_BYTES_MAX && told.ends_with('…'), "{}", told.len());
        }
    }

    #[test]
    fn t_d2_hidden_characters_are_shown_and_joiners_stay() {
        assert_eq!(visible("a\u{e0041}\u{200b}b\u{202e}"), "a\\u{e0041}\\u{200b}b\\u{202e}");
        for plain in ["Žiūri 👩\u{200d}💻", "می\u{200c}خواهم", "一句话"] {
            assert!(matches!(visible(plain), Cow::Borrowed(_)), "{plain}");
        }
    }

    #[test]
    fn text_is_cut_behind_a_sentence_or_a_word() {
        assert_eq!(shortened("Short.\n\n  Text", 300), "Short. Text");
        assert_eq!(shortened("One sentence here. Two sentence here.", 30), "One sentence here.");
        assert_eq!(shortened("word word word, word", 16), "word word word…");
        assert_eq!(shortened("ąčęėįšųūž", 3), "ąčę…");
        assert_eq!(shortened("一句话很长很长。第二句话很长很长", 10), "一句话很长很长。");
        assert_eq!(shortened("", 3), "");
    }
}
