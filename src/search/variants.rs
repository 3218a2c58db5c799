//! Words that tools use for one another, and words that say nothing.
//!
//! A table of a few dozen groups, not a thesaurus: verbs of reading and writing, abbreviations, and the things that most
//! services have. `docs/search.md` has its measured effect.

/// Each line is a group: a query's word also finds the others, at reduced weight.
pub(super) const GROUPS: &[&[&str]] = &[
    // Verbs.
    &["get", "fetch", "retrieve", "read", "show", "view", "obtain", "load"],
    &["list", "show", "get", "enumerate", "browse", "all"],
    &["search", "find", "query", "lookup", "locate", "discover"],
    &["create", "add", "new", "make", "insert", "register", "open", "raise"],
    &["delete", "remove", "erase", "destroy", "drop", "discard"],
    &["update", "edit", "modify", "change", "set", "patch", "adjust", "replace"],
    &["send", "post", "submit", "publish", "share"],
    &["run", "execute", "invoke", "launch", "start", "trigger"],
    &["stop", "cancel", "abort", "kill", "terminate", "end", "halt"],
    &["write", "save", "store"],
    &["move", "rename", "relocate"],
    &["copy", "duplicate", "clone"],
    &["check", "verify", "validate", "test"],
    &["download", "export"],
    &["upload", "import", "attach"],
    &["generate", "create", "produce"],
    &["calculate", "compute", "calculator"],
    &["translate", "translation", "translator"],
    &["convert", "transform", "conversion", "converter"],
    &["analyze", "analyse", "analysis", "analytics"],
    &["compare", "diff", "difference", "comparison"],
    &["book", "reserve", "reservation", "booking"],
    &["buy", "purchase", "order"],
    &["recommend", "suggest", "recommendation", "suggestion"],
    &["join", "merge", "combine"],
    // Abbreviations.
    &["repo", "repository", "project"],
    &["pr", "mr"],
    &["db", "database", "sql"],
    &["k8s", "kubernetes"],
    &["config", "configuration", "settings", "cfg"],
    &["env", "environment"],
    &["dir", "directory", "folder"],
    &["doc", "docs", "document", "documentation"],
    &["info", "information", "detail", "details"],
    &["app", "application"],
    &["auth", "authentication", "login", "authorization"],
    &["msg", "message"],
    &["img", "image", "picture", "photo"],
    &["org", "organization", "organisation"],
    &["param", "parameter"],
    &["stat", "stats", "statistics"],
    &["temp", "temperature"],
    &["vm", "machine", "instance"],
    &["url", "link", "webpage"],
    &["id", "identifier"],
    &["dm", "message", "chat"],
    // Things.
    &["email", "mail", "inbox"],
    &["meeting", "event", "appointment", "calendar"],
    &["movie", "film"],
    &["song", "track", "music"],
    &["task", "todo"],
    &["ticket", "issue", "bug"],
    &["person", "people", "user", "contact"],
    &["price", "cost", "quote"],
    &["weather", "forecast"],
    &["customer", "client"],
    &["stock", "share", "equity"],
    &["picture", "screenshot", "snapshot"],
    &["website", "site", "webpage"],
    &["hotel", "accommodation", "lodging"],
    &["car", "vehicle"],
    &["house", "home", "property"],
    &["job", "career", "vacancy"],
    &["present", "gift"],
];

/// Words of a query that carry no meaning for search.
pub(super) const STOP_WORDS: &str = "a about am an and any are as at be been being but by can could did do does doing done eg etc for from had has \
    have having he hello her hers hey hi him his how however i id ie if ill im in into is it its itself ive just let \
    lets me might mine my myself of ok okay on onto or our ours ourselves please shall she should so than thank \
    thanks that thats the their theirs them themselves then there theres these they theyre this those though through \
    to too toward towards under up upon us very via was we were weve what whats when where which while who whom \
    whose why will with within without would yes you youd your youre yours yourself";

/// Words that hold English sentences together and that few other languages write. "To", "is", "do", "for" and "me" are
/// words elsewhere too.
pub(super) const FUNCTION_WORDS: &str = "about and any are can could does from how if its my of our please shall should \
    some than that the their them then there these they this those were what when where which while who why with would \
    you your";

/// Function words of English that are words elsewhere too: a sign in numbers only.
pub(super) const SHARED_FUNCTION_WORDS: &str = "a at be for had has have i id is it me of on to we";

/// Words that most questions could have and few tools are about, whatever the catalogue's frequencies say: in a
/// catalogue of fifty tools "already" is as rare as "invoice". They count [`super::RankerOptions::weak`] of a word.
pub(super) const WEAK_WORDS: &str = "able accomplish according account across actual actually additional additionally after again ago all allow \
    almost alone along already alright also although always among another anybody anymore anyone anything anyway \
    anywhere appreciate around aside ask asking assist assistance available away back based basic basically \
    beautiful because become before begin behind believe below beneath besides best better between big both brand \
    brief bring brings bunch called came cannot cant care case cause certain certainly clear clearly come comes \
    coming complete completely comprehensive consider considering contain contained containing cool couldnt couple \
    curious currently deal deep depth desire desired despite detailed didnt different discover doesnt dont down due \
    during each easily easy either else enable enjoy enough ensure entire entirely especially even ever every \
    everybody everyone everything everywhere exact exactly exciting exist existing exists explain explore extra fact \
    familiar fan far favorite feel few figure final finally fine first fit focus follow following former forward \
    full fully fun further furthermore gain gather general generally getting give given gives giving go goes going \
    gone gonna good got great guide half hand handful happen happened happening happens happy hard hear help helped \
    helpful helping helps here hope hoping huge idea ideal important impress improve include included includes \
    including indeed individual inside insight insights instead intend interest interested interesting involved isnt \
    itd itll keep keeping kind kinda kindly know known large larger last lastly later latest least less letting like \
    liked likes little local long longer look looked looking looks lot lots love loved lovely made mainly major make \
    makes making many match matching matter may maybe mean means mention mentioned mentions moment more moreover \
    most mostly much multiple must name named namely near nearby nearly necessary need needed needing needs neither \
    never nevertheless next nice no nobody none nor normal not nothing now number obviously off often old once one \
    ones only onwards open other others otherwise out outside over overall own part particular particularly perfect \
    perhaps permanently personal piece place plan planning plus possible possibly potential precise prefer \
    preferably present previous previously probably project properly provide provided provides providing purpose put \
    puts quick quickly quite rather ready real really reason recent recently regarding related relevant require \
    required requires respective respectively right said same save say saying says second see seeing seem seems seen \
    several short shortly simple simply since single small some somebody somehow someone something sometimes \
    somewhere soon sort special specific specifically still stuff such suitable suppose supposed sure surprise take \
    taken takes taking tell telling term terms thing things think thinking thought three together told tons took \
    tool tools top total totally tried true truly try trying turn two type types typical understand unique unless \
    until upcoming use used useful uses using usual usually utilize valuable various version versions vs wanna want \
    wanted wanting wants wasnt way ways welcome well went whatever whatsoever whenever wherever whether whichever \
    whoever whole wide wish wonder wonderful wondering wont word work worked working works world worth wouldnt yeah \
    yet youve";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_is_both_a_stop_word_and_weak_nor_named_twice() {
        let mut all: Vec<&str> = STOP_WORDS.split_whitespace().chain(WEAK_WORDS.split_whitespace()).collect();
        all.sort_unstable();
        let twice: Vec<_> = all.windows(2).filter(|pair| pair[0] == pair[1]).collect();
        assert!(twice.is_empty(), "{twice:?}");
    }
}
