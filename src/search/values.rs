//! What people put into questions that is no word: file names, addresses, numbers, short forms.
//!
//! "Edit settings.json" asks for a tool about files, whatever the file is called. Each such value counts little by
//! itself, and the word for its kind is put beside it. Short forms are spelt out beside themselves, because tools and the
//! embedding model know the long ones.

/// A query, taken apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    /// The query with what was added; for the embedder.
    pub spelled: String,
    /// The query without its values.
    pub plain: String,
    pub values: String,
    /// The kinds of the values, each once.
    pub kinds: Vec<&'static str>,
}

/// Short forms and what they stand for.
const SHORT_FORMS: &[(&str, &str)] = &[
    ("pr", "pull request"),
    ("prs", "pull requests"),
    ("mr", "merge request"),
    ("repo", "repository"),
    ("repos", "repositories"),
    ("db", "database"),
    ("k8s", "kubernetes"),
    ("config", "configuration"),
    ("env", "environment"),
    ("dir", "directory"),
    ("docs", "documentation"),
    ("msg", "message"),
    ("dm", "direct message"),
    ("img", "image"),
    ("pic", "picture"),
    ("org", "organization"),
    ("temp", "temperature"),
    ("vm", "virtual machine"),
    ("acct", "account"),
    ("appt", "appointment"),
];

const FILE_EXTENSIONS: &str = "avi bat bin bmp c cfg conf cpp cs css csv db doc docx env exe gif go gz h htm html ini ipynb \
    jar java jpeg jpg js json jsx kt lock log lua m4a md mkv mov mp3 mp4 pdf php png ppt pptx ps1 py rb rs rtf sh sql \
    sqlite svg swift tar tex toml ts tsv tsx txt wav webm webp xls xlsx xml yaml yml zip";

/// Takes a query apart.
pub(super) fn take(query: &str) -> Taken {
    let mut taken = Taken { spelled: String::with_capacity(query.len() + 32), ..Taken::default() };
    for chunk in query.split_inclusive(char::is_whitespace) {
        taken.spelled.push_str(chunk);
        let word = chunk.trim_matches(|c: char| !(c.is_alphanumeric() || matches!(c, '/' | '~' | '*')));
        if let Some(kind) = kind(word) {
            taken.values.push_str(chunk);
            taken.add(kind);
            if !taken.kinds.contains(&kind) {
                taken.kinds.push(kind);
            }
        } else {
            taken.plain.push_str(chunk);
            if let Some((_, long)) = SHORT_FORMS.iter().find(|(short, _)| word.eq_ignore_ascii_case(short)) {
                taken.add(long);
                taken.plain.push(' ');
                taken.plain.push_str(long);
                taken.plain.push(' ');
            }
        }
    }
    taken
}

impl Taken {
    fn add(&mut self, word: &str) {
        self.spelled.push(' ');
        self.spelled.push_str(word);
        self.spelled.push(' ');
    }
}

fn kind(word: &str) -> Option<&'static str> {
    // Each kind has one of these signs.
    if !word.bytes().any(|byte| matches!(byte, b'.' | b'/' | b':' | b'@')) {
        return None;
    }
    if word.contains("://") || word.starts_with("www.") {
        return Some("url");
    }
    if word.split_once('@').is_some_and(|(user, host)| !user.is_empty() && host.contains('.')) {
        return Some("email");
    }
    let path = word.starts_with("~/") || (word.starts_with('/') && word.len() > 2);
    let extension = word
        .rsplit_once('.')
        .filter(|(stem, _)| stem.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '*' | '/')));
    let file = extension.is_some_and(|(_, extension)| {
        FILE_EXTENSIONS.split_whitespace().any(|known| extension.eq_ignore_ascii_case(known))
    });
    (path || file).then_some("file")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_get_the_word_for_their_kind() {
        let taken = take("edit src/app.py, then mail it to ann@example.com");
        assert_eq!(taken.kinds, ["file", "email"]);
        assert_eq!(taken.plain, "edit then mail it to ");
        assert_eq!(take("open https://example.com/a.html").kinds, ["url"]);
        assert_eq!(take("read /etc/hosts").kinds, ["file"]);
    }

    #[test]
    fn short_forms_are_spelt_out() {
        assert_eq!(take("list PRs").spelled, "list PRs pull requests ");
    }

    #[test]
    fn prose_has_no_values() {
        let prose = "Send it. e.g. to Bob and/or Ann, v1.2 i.e. soon";
        let taken = take(prose);
        assert!(taken.kinds.is_empty() && taken.plain == prose, "{taken:?}");
    }
}
