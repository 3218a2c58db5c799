"""Trains the rows of Lithuanian words, all other rows as they are: tune.py WORK DATA OUT.npy STEPS

Environment: BATCH, RATE, CONTRAST, THREADS, SEED.
The rest of the table stays, so nothing is forgotten, and the run takes minutes.
"""

import json
import os
import sys
import time

import numpy as np
import torch

BATCH = int(os.environ.get("BATCH", "2048"))
RATE = float(os.environ.get("RATE", "0.02"))
CONTRAST = float(os.environ.get("CONTRAST", "0.1"))
TEMPERATURE, HELD_OUT, FILLED, JOINED = 0.05, 200, 0.3, 0.2
torch.set_num_threads(int(os.environ.get("THREADS", "1")))
torch.manual_seed(int(os.environ.get("SEED", "0")))
random = np.random.default_rng(int(os.environ.get("SEED", "0")))


def unit(x):
    return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-6)


def targets(work, data):
    """The table's own targets, and those of the texts written since, brought into the same space by a linear map."""
    goal = np.load(f"{work}/start.goal.npy").astype(np.float32)
    old, new = [], []
    for teacher in os.environ.get("TEACHERS", "minilm,mpnet").split(","):
        block = np.concatenate([np.load(f"{data}/{part}.{teacher}.npy") for part in ("english", "extra", "intents")]).astype(np.float32)
        mean = block.mean(0)
        old.append(unit(block - mean))
        new.append(unit(np.load(f"{data}/lithuanian.{teacher}.npy").astype(np.float32) - mean))
    old, new = np.concatenate(old, 1), np.concatenate(new, 1)
    rows = random.choice(len(old), 40_000, replace=False)
    x, y = old[rows], goal[rows]
    # The targets are a rotation and a cut of the teachers', at unit length: undo the length first.
    for _ in range(3):
        way = np.linalg.lstsq(x.T @ x + 1e-3 * np.eye(x.shape[1], dtype=np.float32), x.T @ y, rcond=None)[0]
        y = goal[rows] * np.linalg.norm(x @ way, axis=1, keepdims=True)
    print("cosine of the map", float((unit(x @ way) * goal[rows]).sum(1).mean()))
    return np.concatenate([goal, unit(new @ way)])


def main(work, data, out, steps):
    began = time.time()
    first = json.load(open(f"{work}/own.json"))["first"]
    goal = torch.from_numpy(targets(work, data))
    stored = np.load(f"{work}/lithuanian.npz")
    flat, offsets, target = stored["flat"], stored["offsets"], stored["target"]
    fill = json.load(open(f"{work}/fillers.json"))["before"]["lt"]
    seen = np.where((np.diff(offsets) > 0) & ((target % HELD_OUT != HELD_OUT - 1) | (target >= len(np.load(f"{work}/start.goal.npy", mmap_mode="r")))))[0]
    held = np.where((np.diff(offsets) > 0) & ~np.isin(np.arange(len(target)), seen))[0][:4000]
    table = torch.from_numpy(np.load(f"{work}/start.npy"))
    own = torch.nn.Parameter(table[first:].clone())
    frozen = table.clone()
    frozen[first:] = 0
    optimizer = torch.optim.Adam([own], lr=RATE, betas=(0.9, 0.99))

    def embed(lists):
        starts = torch.from_numpy(np.cumsum([0] + [len(x) for x in lists[:-1]]))
        ids = torch.from_numpy(np.concatenate(lists).astype(np.int64))
        mine = ids >= first
        fixed = torch.nn.functional.embedding_bag(ids, frozen, starts, mode="sum")
        moved = torch.nn.functional.embedding_bag((ids - first).clamp(min=0), own, starts, mode="sum", per_sample_weights=mine.float())
        return torch.nn.functional.normalize(fixed + moved, dim=1)

    def text(row):
        return flat[offsets[row] : offsets[row + 1]]

    def quality():
        with torch.no_grad():
            made = embed([text(r) for r in held])
            return float((made * goal[target[held]]).sum(1).mean())

    print("ready", f"{time.time() - began:.0f} s; left out: {quality():.4f}", flush=True)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = RATE * max(0.02, 1 - step / steps) * min(1.0, (step + 1) / 30)
        rows = random.choice(seen, BATCH, replace=False)
        chance = random.random((BATCH, 2))
        wanted = goal[target[rows]].clone()
        lists = []
        for i, row in enumerate(rows):
            bag = [text(row)]
            if chance[i, 0] < FILLED:
                bag.insert(0, np.asarray(fill[random.integers(len(fill))]))
            if chance[i, 1] < JOINED:
                other = seen[random.integers(len(seen))]
                bag.append(text(other))
                wanted[i] += goal[target[other]]
            lists.append(np.concatenate(bag))
        wanted = torch.nn.functional.normalize(wanted, dim=1)
        made = embed(lists)
        cosine = (made * wanted).sum(1)
        logits = made @ wanted.T / TEMPERATURE
        same = torch.from_numpy(target[rows][:, None] == target[rows][None])
        same.fill_diagonal_(False)
        loss = (1 - cosine).mean() + CONTRAST * torch.nn.functional.cross_entropy(logits.masked_fill(same, -1e4), torch.arange(BATCH))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0 or step == steps - 1:
            print(step, steps, f"cosine {float(cosine.detach().mean()):.4f} left out {quality():.4f} {time.time() - began:.0f} s", flush=True)
    table[first:] = own.detach()
    np.save(out, table.numpy())


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]))
