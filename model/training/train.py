"""Trains the token table.

train.py WORK DATA OUT.npy STEPS [START.npy]
Environment: TEACHERS (names of their embeddings), DIMENSIONS, BATCH, RATE, CONTRAST, RETRIEVAL, ENGLISH, THREADS, SEED.

A text is the mean of its tokens' vectors. Each text is drawn towards the teachers' embedding of its English original:
by the cosine, and against the other targets of the batch. On the way texts get fillers put around them, or are joined
with others of the same language (the target is then the mean of theirs), so that long requests keep what they ask for.
"""

import json
import os
import sys
import time

import numpy as np
import torch

import spaces

DIMENSIONS = int(os.environ.get("DIMENSIONS", "256"))
BATCH = int(os.environ.get("BATCH", "2048"))
RATE = float(os.environ.get("RATE", "0.02"))
TEMPERATURE = 0.05
CONTRAST = float(os.environ.get("CONTRAST", "0.1"))
ENGLISH_SHARE = float(os.environ.get("ENGLISH", "0.3"))
RETRIEVAL = float(os.environ.get("RETRIEVAL", "0.1"))
HELD_OUT = 200  # one target in so many is never trained on: languages.py measures with them
FILLED, JOINED = 0.3, 0.2
LIFTED = {"lt": 8.0, "pl": 2.0, "es": 2.0, "de": 1.8, "fr": 1.8, "uk": 2.0, "ar": 2.0, "zh": 2.0, "ja": 2.0} | dict.fromkeys(
    "eo cy ga gl eu af is az uz kk be mn my tl km bs si ne sq mk".split(), 0.6
)
PARTS = os.environ.get("PARTS", "english,extra,intents").split(",")

torch.set_num_threads(int(os.environ.get("THREADS", "1")))
torch.manual_seed(int(os.environ.get("SEED", "0")))
random = np.random.default_rng(int(os.environ.get("SEED", "0")))


def targets(data):
    """The teachers' embeddings, centred, joined and cut to the student's dimensions by their principal components."""
    blocks = []
    for name in os.environ.get("TEACHERS", "minilm").split(","):
        both = [np.load(f"{data}/{part}.{name}.npy").astype(np.float32) for part in PARTS]
        block = np.concatenate(both)
        block -= block.mean(0)
        blocks.append(block / np.maximum(np.linalg.norm(block, axis=1, keepdims=True), 1e-6))
    joined = np.concatenate(blocks, 1)
    sample = joined[random.choice(len(joined), min(len(joined), 40_000), replace=False)]
    values, vectors = np.linalg.eigh(sample.T @ sample)
    print("variance kept", values[::-1][:DIMENSIONS].sum() / values.sum(), flush=True)
    reduced = joined @ vectors[:, ::-1][:, :DIMENSIONS]
    return (reduced / np.maximum(np.linalg.norm(reduced, axis=1, keepdims=True), 1e-6)).astype(np.float32)


class Corpus:
    def __init__(self, work):
        stored = np.load(f"{work}/tokens.npz")
        self.flat, self.offsets = stored["flat"], stored["offsets"]
        self.language, self.target = stored["language"], stored["target"]
        self.names = json.load(open(f"{work}/languages.json"))
        fill = json.load(open(f"{work}/fillers.json"))
        self.before = {self.names.index(k): v for k, v in fill["before"].items() if k in self.names}
        self.after = fill["after"]["en"]
        lengths = np.diff(self.offsets)
        seen = (lengths > 0) & (self.target % HELD_OUT != HELD_OUT - 1)
        self.rows = [np.where((self.language == i) & seen)[0] for i in range(len(self.names))]
        share = np.array([len(r) ** 0.5 * LIFTED.get(n, 1.0) for n, r in zip(self.names, self.rows)])
        share[0] = 0
        share *= (1 - ENGLISH_SHARE) / share.sum()
        share[0] = ENGLISH_SHARE
        self.share = share

    def tokens(self, row):
        return self.flat[self.offsets[row] : self.offsets[row + 1]]

    def batch(self, size):
        """Token ids, bag starts, and up to three target rows a bag with -1 where there are fewer."""
        parts, starts, goals = [], np.zeros(size, np.int64), np.full((size, 3), -1, np.int64)
        languages = random.choice(len(self.share), size, p=self.share)
        chance = random.random((size, 3))
        at = 0
        for i, language in enumerate(languages):
            rows = self.rows[language]
            picked = rows[random.integers(len(rows), size=1 if chance[i, 0] > JOINED else 2 + (chance[i, 0] < JOINED * 0.3))]
            bag = []
            for j, row in enumerate(picked):
                if language in self.before and chance[i, 1] < FILLED:
                    fills = self.before[language]
                    for _ in range(1 + (chance[i, 1] < FILLED * 0.4)):
                        bag.append(fills[random.integers(len(fills))])
                bag.append(self.tokens(row))
                goals[i, j] = self.target[row]
            if language == 0 and chance[i, 2] < FILLED * 0.5:
                bag.append(self.after[random.integers(len(self.after))])
            starts[i] = at
            for piece in bag:
                parts.append(np.asarray(piece, np.int64))
                at += len(piece)
        return np.concatenate(parts), starts, goals


class Operations:
    """Requests and tools made of the descriptions of APIs, a few services at a time: siblings are the hard negatives."""

    def __init__(self, work):
        stored = json.load(open(f"{work}/operations.json"))
        self.name, self.text, self.request = stored["name"], stored["text"], stored["request"]
        service = np.array(stored["service"])
        self.services = [np.where(service == i)[0] for i in range(service.max() + 1)]
        share = np.array([len(s) ** 0.5 for s in self.services])
        self.share = share / share.sum()

    def batch(self, corpus, services=20, each=14):
        picked = random.choice(len(self.services), services, replace=False, p=self.share)
        rows, owner = [], []
        for service in picked:
            members = self.services[service]
            chosen = members[random.permutation(len(members))[:each]]
            rows.extend(chosen)
            owner.extend([service] * len(chosen))
        rows, owner = np.array(rows), np.array(owner)
        requests, also = [], np.arange(len(rows))
        before = corpus.before[0]
        for i, row in enumerate(rows):
            words = self.request[row]
            # Some of the words fall away, as people do not repeat a description.
            kept = [w for w in words if random.random() > 0.3] or words
            bag = list(kept)
            chance = random.random()
            if chance < 0.6:
                bag = before[random.integers(len(before))] + bag
            if chance < 0.25:
                siblings = np.where(owner == owner[i])[0]
                other = siblings[random.integers(len(siblings))]
                bag = bag + before[random.integers(len(before))] + [w for w in self.request[rows[other]] if random.random() > 0.3]
                also[i] = other
            if 0.2 < chance < 0.4:
                bag = bag + corpus.after[random.integers(len(corpus.after))]
            requests.append(bag or words)
        return requests, [self.name[r] for r in rows], [self.text[r] for r in rows], also


def bagged(bags, lists):
    """Unit means of lists of token ids."""
    starts = np.zeros(len(lists), np.int64)
    np.cumsum([len(x) for x in lists[:-1]], out=starts[1:])
    ids = torch.from_numpy(np.concatenate([np.asarray(x, np.int64) for x in lists]))
    return torch.nn.functional.normalize(bags(ids, torch.from_numpy(starts)), dim=1)


def retrieval_loss(bags, operations, corpus):
    """Requests must find their tools, and names their descriptions, among siblings and strangers."""
    requests, names, texts, also = operations.batch(corpus)
    request, name, text = bagged(bags, requests), bagged(bags, names), bagged(bags, texts)
    tool = torch.nn.functional.normalize(name + text, dim=1)
    own = torch.arange(len(requests))
    also = torch.from_numpy(also)
    logits = request @ tool.T / TEMPERATURE
    log = torch.log_softmax(logits, 1)
    both = torch.logaddexp(log[own, own], log[own, also]) - np.log(2) * (own == also)
    cross = torch.nn.functional.cross_entropy(name @ text.T / TEMPERATURE, own)
    return -both.mean() + 0.5 * cross


def start_table(corpus, work, data, goal):
    """The base model's token vectors, mapped to the target space by ridge regression over the texts."""
    base = np.load(f"{data}/e5_table.npy").astype(np.float32)
    parents = json.load(open(f"{work}/parents.json"))
    table = np.zeros((len(parents) + 2, base.shape[1]), np.float32)
    for i, ids in enumerate(parents):
        table[i + 2] = base[ids].mean(0)
    table[2:] -= table[2:].mean(0)
    counts = np.bincount(corpus.flat, minlength=len(table)).astype(np.float64)
    weight = (1e-3 / (1e-3 + counts / counts.sum())).astype(np.float32)
    rows = np.concatenate([r[random.integers(len(r), size=60_000 if i == 0 else 3_000)] for i, r in enumerate(corpus.rows)])
    means = np.stack([(table[t := corpus.tokens(r)] * weight[t][:, None]).mean(0) for r in rows])
    left = means.T @ means
    left += 0.01 * np.trace(left) / len(left) * np.eye(len(left), dtype=np.float32)
    mapped = (table @ np.linalg.solve(left, means.T @ goal[corpus.target[rows]])) * weight[:, None]
    mapped[2:] /= np.linalg.norm(mapped[2:], axis=1).mean()
    mapped[:2] = 0
    return mapped.astype(np.float32)


def main(work, data, out, steps, start=None):
    began = time.time()
    goal = targets(data)
    corpus = Corpus(work)
    np.save(out.replace(".npy", ".goal.npy"), goal.astype(np.float16))
    if start:
        table = spaces.brought(start, goal)
    else:
        table = start_table(corpus, work, data, goal)
    operations = Operations(work) if RETRIEVAL else None
    print("ready", f"{time.time() - began:.0f} s", table.shape, flush=True)
    goal = torch.from_numpy(goal)
    bags = torch.nn.EmbeddingBag(*table.shape, mode="mean", sparse=True)
    bags.weight.data.copy_(torch.from_numpy(table))
    optimizer = torch.optim.SparseAdam(list(bags.parameters()), lr=RATE, betas=(0.9, 0.995))
    history = []
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = RATE * max(0.02, 1 - step / steps) * min(1.0, (step + 1) / 100)
        ids, starts, goals = corpus.batch(BATCH)
        goals = torch.from_numpy(goals)
        wanted = (goal[goals.clamp(min=0)] * (goals >= 0)[..., None]).sum(1)
        wanted = torch.nn.functional.normalize(wanted, dim=1)
        made = torch.nn.functional.normalize(bags(torch.from_numpy(ids), torch.from_numpy(starts)), dim=1)
        cosine = (made * wanted).sum(1)
        logits = (made.bfloat16() @ wanted.bfloat16().T).float() / TEMPERATURE
        same = goals[:, :1] == goals[:, :1].T
        same.fill_diagonal_(False)
        logits = logits.masked_fill(same, -1e4)
        loss = (1 - cosine).mean() + CONTRAST * torch.nn.functional.cross_entropy(logits, torch.arange(BATCH))
        if operations:
            loss = loss + RETRIEVAL * retrieval_loss(bags, operations, corpus)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(float(cosine.mean().detach()))
        if step % 200 == 0:
            print(step, steps, f"cosine {np.mean(history[-200:]):.4f} loss {float(loss.detach()):.4f} {time.time() - began:.0f} s", flush=True)
        if step and step % 1000 == 0:
            np.save(out + ".part.npy", bags.weight.detach().numpy())
    np.save(out, bags.weight.detach().numpy())
    print("done", f"{time.time() - began:.0f} s")


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]), *sys.argv[5:6])
