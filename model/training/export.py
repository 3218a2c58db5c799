"""Writes the model folder: export.py TABLE.npy[,TABLE.npy...] WORK OUT

Of several tables the mean is taken.
"""

import json
import os
import shutil
import sys

import numpy as np
from safetensors.numpy import save_file


COMMON = float(os.environ.get("COMMON", "1e-3"))  # a row this frequent in the corpus weighs half; rarer ones more, up to one


def main(tables, work, out):
    os.makedirs(out, exist_ok=True)
    vectors = np.mean([np.load(t) for t in tables.split(",")], 0, dtype=np.float32)
    counts = np.load(f"{work}/uses.npy")
    vectors *= (COMMON / (COMMON + counts / counts.sum())).astype(np.float32)[:, None]
    vectors = vectors[:, : int(os.environ.get("KEPT", "256"))]
    vectors[:2] = 0
    # One scale for the whole table: a vector's length is its weight in the mean. The few longest values are cut.
    scale = np.quantile(np.abs(vectors), float(os.environ.get("CUT", "0.9999"))) / 127
    whole = np.clip(np.round(vectors / scale), -127, 127).astype(np.int8)
    # Several tokens may have one row, as the forms of a Lithuanian word do.
    mapping = np.load(f"{work}/mapping.npy").astype(np.int32)
    save_file({"embeddings": whole, "mapping": mapping}, f"{out}/model.safetensors")
    shutil.copy(f"{work}/tokenizer.json", f"{out}/tokenizer.json")
    config = {
        "model_type": "model2vec",
        "architectures": ["StaticModel"],
        "tokenizer_name": "lower-cased Unigram pieces, from multilingual-e5-small",
        "hidden_dim": int(vectors.shape[1]),
        "seq_length": 1000000,
        "normalize": True,
        "pooling": "mean",
        "apply_pca": int(vectors.shape[1]),
        "embedding_dtype": "int8",
    }
    with open(f"{out}/config.json", "w") as file:
        json.dump(config, file, indent=1)
        file.write("\n")
    print(out, vectors.shape, {n: os.path.getsize(f"{out}/{n}") for n in sorted(os.listdir(out))})


if __name__ == "__main__":
    main(*sys.argv[1:4])
