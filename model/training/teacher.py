"""Embeds English texts with a sentence transformer: teacher.py MODEL_DIR TEXTS.json OUT.npy"""

import json
import os
import sys
import time

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer

torch.set_num_threads(int(os.environ.get("THREADS", "1")))


@torch.no_grad()
def embed(folder, texts, batch=64, longest=64):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder).eval().to(torch.bfloat16)
    order = np.argsort([len(t) for t in texts], kind="stable")
    out = np.zeros((len(texts), model.config.hidden_size), np.float16)
    started = time.time()
    for at in range(0, len(texts), batch):
        rows = order[at : at + batch]
        inputs = tokenizer([texts[i] for i in rows], padding=True, truncation=True, max_length=longest, return_tensors="pt")
        hidden = model(**inputs).last_hidden_state.float()
        mask = inputs["attention_mask"][..., None].float()
        mean = (hidden * mask).sum(1) / mask.sum(1)
        out[rows] = torch.nn.functional.normalize(mean, dim=1).numpy().astype(np.float16)
        if at % (batch * 200) == 0:
            print(at, len(texts), f"{time.time() - started:.0f} s", flush=True)
    return out


if __name__ == "__main__":
    folder, source, target = sys.argv[1:4]
    np.save(target, embed(folder, json.load(open(source, encoding="utf-8"))))
