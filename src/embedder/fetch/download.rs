//! One file: from the hub to a hidden file beside its name, checked, and then to its name.
//!
//! A download that ends early is gone on with, in this run or a later one: the part on the disk is hashed again from its
//! first byte, and the rest is asked for. What was put together so and has the wrong digest is thrown away and
//! downloaded once more from the start, since the hub may have another file by now.

use std::io::{Read, Seek, SeekFrom};
use std::time::Duration;

use http::StatusCode;
use http::header::CONTENT_RANGE;
use sha2::{Digest as _, Sha256};
use url::Url;

use super::FetchError;
use super::client::{Answer, Hub, Trouble, refused, shown};
use super::folder::{Folder, FolderLock, Hashed, Part, remove};
use super::manifest::{Digest, FILE_BYTES_MAX, Pin};
use super::progress::Progress;

/// The wait before the first retry; each later one is twice as long.
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// A file to be brought.
pub(super) struct Download<'a> {
    pub hub: &'a Hub,
    pub folder: &'a Folder,
    pub lock: &'a FolderLock,
    pub url: Url,
    pub name: &'a str,
    /// What it must be; without one, what it is said.
    pub pin: Option<Pin>,
    pub retries: u32,
}

/// What came.
pub(super) struct Downloaded {
    pub pin: Pin,
    /// The commit and the digest that the hub names, where it does.
    pub commit: Option<String>,
    pub hub_digest: Option<String>,
}

/// The bytes so far, on the disk and in the hash.
struct Partial {
    part: Part,
    hasher: Sha256,
    len: u64,
    /// Pieced together from more than one answer.
    is_resumed: bool,
}

/// What the hub said beside the bytes.
#[derive(Default)]
struct Said {
    total: Option<u64>,
    commit: Option<String>,
    digest: Option<String>,
}

enum Outcome {
    Complete,
    /// The bytes so far are of no use.
    StartOver(String),
    Trouble(Trouble),
}

impl Download<'_> {
    /// Brings the file to its name.
    ///
    /// # Errors
    /// [`FetchError::Wrong`] when the file is not what its pin says; nothing is left of it then.
    pub async fn run(&self, progress: &mut Progress) -> Result<Downloaded, FetchError> {
        let mut partial = self.leftover()?;
        let mut said = Said { total: self.pin.map(|pin| pin.bytes), ..Said::default() };
        let (mut starts_left, mut retries_left, mut delay) = (1, self.retries, RETRY_DELAY);
        loop {
            let before = partial.len;
            let why = match self.transfer(&mut partial, &mut said, progress).await {
                Outcome::Complete => match self.finish(partial)? {
                    Ok(pin) => {
                        progress.finish(pin.bytes);
                        return Ok(Downloaded { pin, commit: said.commit, hub_digest: said.digest });
                    }
                    Err((found, was_resumed)) if !was_resumed || starts_left == 0 => {
                        return Err(self.wrong(format!("its SHA-256 is {found}")));
                    }
                    Err(_) => {
                        partial = self.empty()?;
                        starts_left -= 1;
                        "its parts do not belong together; starting over".to_owned()
                    }
                },
                Outcome::StartOver(why) if starts_left > 0 => {
                    partial.part.remove()?;
                    partial = self.empty()?;
                    starts_left -= 1;
                    format!("{why}; starting over")
                }
                Outcome::StartOver(why) => return partial.give_up(refused(&self.url, why)),
                Outcome::Trouble(Trouble::Lasting(error)) => return partial.give_up(error),
                Outcome::Trouble(Trouble::Passing(why)) => {
                    if partial.len > before {
                        (retries_left, delay) = (self.retries, RETRY_DELAY);
                    }
                    if retries_left == 0 {
                        return partial.give_up(FetchError::Network(why));
                    }
                    retries_left -= 1;
                    progress.note(&format!("{}: {why}; trying again", self.name));
                    tokio::time::sleep(delay).await;
                    delay *= 2;
                    continue;
                }
            };
            progress.note(&format!("{}: {why}", self.name));
        }
    }

    /// What an earlier run left, or nothing. All but the largest leftover goes.
    fn leftover(&self) -> Result<Partial, FetchError> {
        let mut leftovers = self.folder.leftovers(self.name, self.lock)?;
        let largest = leftovers.pop();
        for path in leftovers {
            remove(&path)?;
        }
        let Some(path) = largest else { return self.empty() };
        let mut part = self.folder.open_part(&path)?;
        let mut hasher = Sha256::new();
        let (mut len, mut buffer) = (0, vec![0; 1 << 17]);
        loop {
            let read = part.file.read(&mut buffer).map_err(part.failed("read"))?;
            if read == 0 {
                break;
            }
            hasher.update(&buffer[..read]);
            len += read as u64;
        }
        let is_of_use = len > 0 && self.pin.is_none_or(|pin| len <= pin.bytes);
        if is_of_use {
            return Ok(Partial { part, hasher, len, is_resumed: true });
        }
        part.remove()?;
        self.empty()
    }

    fn empty(&self) -> Result<Partial, FetchError> {
        let part = self.folder.new_part(self.name)?;
        Ok(Partial { part, hasher: Sha256::new(), len: 0, is_resumed: false })
    }

    async fn transfer(&self, partial: &mut Partial, said: &mut Said, progress: &mut Progress) -> Outcome {
        if self.pin.is_some_and(|pin| pin.bytes == partial.len) {
            progress.start(self.name, said.total, partial.len);
            return Outcome::Complete;
        }
        let answer = match self.hub.get(&self.url, partial.len).await {
            Ok(answer) => answer,
            Err(trouble) => return Outcome::Trouble(trouble),
        };
        let total = match self.total(&answer, partial, said) {
            Ok(total) => total,
            Err(outcome) => return outcome,
        };
        progress.start(self.name, Some(total), partial.len);
        let mut response = answer.response;
        while partial.len < total {
            let chunk = match self.hub.chunk(&mut response).await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => {
                    let why = format!("the download ended after {} of {total} bytes", partial.len);
                    return Outcome::Trouble(Trouble::Passing(why));
                }
                Err(why) => {
                    let why = format!("{why} after {} of {total} bytes", partial.len);
                    return Outcome::Trouble(Trouble::Passing(why));
                }
            };
            if chunk.len() as u64 > total - partial.len {
                return Outcome::Trouble(self.longer(total).into());
            }
            if let Err(error) = partial.part.write(&chunk) {
                return Outcome::Trouble(FetchError::from(error).into());
            }
            partial.hasher.update(&chunk);
            partial.len += chunk.len() as u64;
            progress.advance(partial.len);
        }
        match self.hub.chunk(&mut response).await {
            Ok(Some(more)) if !more.is_empty() => Outcome::Trouble(self.longer(total).into()),
            // All that was asked for is here, however the connection ends.
            _ => Outcome::Complete,
        }
    }

    /// How long the whole file is, once the answer fits what was asked for.
    fn total(&self, answer: &Answer, partial: &mut Partial, said: &mut Said) -> Result<u64, Outcome> {
        let response = &answer.response;
        said.commit = answer.commit.clone().or(said.commit.take());
        said.digest = answer.digest.clone().or(said.digest.take());
        let total = match response.status() {
            StatusCode::PARTIAL_CONTENT => {
                let range = response.headers().get(CONTENT_RANGE).and_then(|range| range.to_str().ok());
                let range = range.and_then(content_range);
                let known = self.pin.map(|pin| pin.bytes).or(said.total);
                match range {
                    Some((start, end, total))
                        if start == partial.len
                            && end + 1 == total
                            && known.is_none_or(|known| known == total) =>
                    {
                        partial.is_resumed |= partial.len > 0;
                        Some(total)
                    }
                    _ => {
                        let why = format!("{} sends another part than was asked for", shown(&self.url));
                        return Err(Outcome::StartOver(why));
                    }
                }
            }
            StatusCode::RANGE_NOT_SATISFIABLE => {
                let why = format!("{} does not have the part that was asked for", shown(&self.url));
                return Err(Outcome::StartOver(why));
            }
            _ => {
                // The whole file, whatever was asked for.
                if partial.len > 0 {
                    let emptied = partial.empty();
                    emptied.map_err(|error| Outcome::Trouble(error.into()))?;
                }
                response.content_length()
            }
        };
        let Some(total) = total.or(self.pin.map(|pin| pin.bytes)) else {
            let why = "it does not say how long the file is, so nothing would tell when it is whole";
            return Err(Outcome::Trouble(refused(&self.url, why.to_owned()).into()));
        };
        if let Some(pin) = self.pin.filter(|pin| pin.bytes != total) {
            let why = format!("it has {total} bytes there instead of {}", pin.bytes);
            return Err(Outcome::Trouble(self.wrong(why).into()));
        }
        if total > FILE_BYTES_MAX {
            return Err(Outcome::Trouble(refused(&self.url, format!("{total} bytes are too many")).into()));
        }
        said.total = Some(total);
        Ok(total)
    }

    /// Checks the whole file, from the disk too, and gives it its name; or the digest that it should not have.
    fn finish(&self, partial: Partial) -> Result<Result<Pin, (Digest, bool)>, FetchError> {
        let Partial { mut part, hasher, len, is_resumed } = partial;
        let digest = Digest(hasher.finalize().into());
        if self.pin.is_some_and(|pin| pin.digest != digest) {
            part.remove()?;
            return Ok(Err((digest, is_resumed)));
        }
        part.file.sync_all().map_err(part.failed("write"))?;
        part.file.seek(SeekFrom::Start(0)).map_err(part.failed("read"))?;
        let (read, read_digest) = Hashed::new(&part.file).finish().map_err(part.failed("read"))?;
        if (read, read_digest) != (len, digest) {
            part.remove()?;
            return Err(self.wrong("the disk does not give back what was written".to_owned()));
        }
        self.folder.publish(part, self.name)?;
        Ok(Ok(Pin { bytes: len, digest }))
    }

    fn longer(&self, total: u64) -> FetchError {
        self.wrong(format!("more than {total} bytes came"))
    }

    fn wrong(&self, why: String) -> FetchError {
        let pin = self.pin.map_or_else(String::new, |pin| {
            format!("; it must have {} bytes and the SHA-256 {}", pin.bytes, pin.digest)
        });
        FetchError::Wrong { name: self.name.to_owned(), from: shown(&self.url), why: why + &pin }
    }
}

impl Partial {
    fn empty(&mut self) -> Result<(), FetchError> {
        self.part.file.set_len(0).map_err(self.part.failed("write"))?;
        self.part.file.seek(SeekFrom::Start(0)).map_err(self.part.failed("write"))?;
        self.hasher = Sha256::new();
        (self.len, self.is_resumed) = (0, false);
        Ok(())
    }

    /// Keeps what a later run can go on with.
    fn give_up<T>(self, error: FetchError) -> Result<T, FetchError> {
        if self.len == 0 || matches!(error, FetchError::Wrong { .. }) {
            self.part.remove()?;
        }
        Err(error)
    }
}

/// First byte, last byte and whole length of `bytes 2-4/5`. A length that is not known is no answer to go on with.
fn content_range(text: &str) -> Option<(u64, u64, u64)> {
    let (range, total) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (start, end) = range.split_once('-')?;
    let (start, end, total) = (start.parse().ok()?, end.parse().ok()?, total.parse().ok()?);
    (start <= end && end < total).then_some((start, end, total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_range_is_read_or_refused() {
        assert_eq!(content_range("bytes 2-4/5"), Some((2, 4, 5)));
        for bad in
            ["", "bytes */5", "bytes 2-4/*", "bytes 4-2/5", "bytes 2-5/5", "items 2-4/5", "bytes -1-4/5"]
        {
            assert_eq!(content_range(bad), None, "{bad}");
        }
    }
}
