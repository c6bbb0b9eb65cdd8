"""make.py FILE [SHAPE] [KIND]: a GGUF file of random weights, for measuring: SHAPE is 135m, 1b or 8b (Llama 3's), KIND a format of GGUF's for
matrices (Q4_1). One piece of random blocks is written over and over, so 16 GB take as long as the disk does. No tokenizer: --ids of examples/llama."""
import struct, sys
import numpy as np

import reference

SHAPES = {"135m": dict(layers=30, dim=576, hidden=1536, heads=9, kv_heads=3, head_dim=64, vocabulary=49152, theta=1e5, tied=True),
          "1b": dict(layers=16, dim=2048, hidden=8192, heads=32, kv_heads=8, head_dim=64, vocabulary=128256, theta=5e5, tied=True),
          "8b": dict(layers=32, dim=4096, hidden=14336, heads=32, kv_heads=8, head_dim=128, vocabulary=128256, theta=5e5, tied=False)}
PIECE = 1 << 20         # numbers


def size_of(kind, count):
    n, bytes_ = reference.BLOCKS.get(kind, (1, {"F32": 4, "F16": 2, "BF16": 2}.get(kind)))
    return count // n * bytes_


path, shape, kind = (sys.argv[1:] + ["8b", "Q4_1"][len(sys.argv) - 2:])[:3]
c = dict(SHAPES[shape], context=8192, eps=1e-5)
sizes = dict(c, q=c["heads"] * c["head_dim"], kv=c["kv_heads"] * c["head_dim"])
names = [(f"blk.{i}.{g}", r, k) for i in range(c["layers"]) for g, _, r, k in reference.LAYER]
names += [(g, r, k) for g, _, r, k in reference.OUTSIDE if g != "output" or not c["tied"]]
text = lambda s: struct.pack("<Q", len(s)) + s.encode()
values = [("block_count", c["layers"]), ("embedding_length", c["dim"]), ("feed_forward_length", c["hidden"]), ("attention.head_count", c["heads"]),
          ("attention.head_count_kv", c["kv_heads"]), ("rope.dimension_count", c["head_dim"]), ("context_length", c["context"]),
          ("attention.layer_norm_rms_epsilon", c["eps"]), ("rope.freq_base", c["theta"])]
head = b"GGUF" + struct.pack("<IQQ", 3, len(names), len(values) + 1) + text("general.architecture") + struct.pack("<I", 8) + text("llama")
for key, v in values:
    head += text("llama." + key) + (struct.pack("<If", 6, v) if isinstance(v, float) else struct.pack("<II", 4, v))
at = 0
for name, rows, cols in names:
    k, shape_ = (kind, (sizes[cols], sizes[rows])) if rows else ("F32", (sizes[cols],))
    head += text(name + ".weight") + struct.pack(f"<I{len(shape_)}QIQ", len(shape_), *shape_, reference.GGUF_TYPES[k], at)
    at += -(-size_of(k, int(np.prod(shape_))) // 32) * 32
rng = np.random.default_rng(1)
piece, _ = reference.random_tensor(rng, kind, PIECE // 256, 256, 0.3)
with open(path, "wb") as f:
    f.write(head + bytes(-len(head) % 32))
    for name, rows, cols in names:
        left = size_of(kind, sizes[rows] * sizes[cols]) if rows else 4 * sizes[cols]
        if not rows:
            f.write(np.ones(sizes[cols], "<f4").tobytes())
        for _ in range(left // len(piece) if rows else 0):
            f.write(piece)
        if rows:
            f.write(piece[:left % len(piece)])
        f.write(bytes(-left % 32))
