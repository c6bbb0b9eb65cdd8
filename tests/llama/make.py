"""make.py PATH [SHAPE] [KIND]: random weights, for measuring: SHAPE is tiny, 135m, 1b or 8b (Llama 3's). KIND is a format of GGUF's for matrices (Q4_1),
and PATH such a file, or F8_E4M3 with a scale for each row, and PATH a folder of safetensors. One piece of random numbers is written over and over,
so 16 GB take as long as the disk does. No tokenizer: --ids or --rounds of examples/llama."""
import json, os, struct, sys
import numpy as np

import reference

SHAPES = {"tiny": dict(layers=1, dim=256, hidden=512, heads=4, kv_heads=2, head_dim=64, vocabulary=512, theta=5e5, tied=False),
          "135m": dict(layers=30, dim=576, hidden=1536, heads=9, kv_heads=3, head_dim=64, vocabulary=49152, theta=1e5, tied=True),
          "1b": dict(layers=16, dim=2048, hidden=8192, heads=32, kv_heads=8, head_dim=64, vocabulary=128256, theta=5e5, tied=True),
          "8b": dict(layers=32, dim=4096, hidden=14336, heads=32, kv_heads=8, head_dim=128, vocabulary=128256, theta=5e5, tied=False)}
PIECE = 1 << 20         # numbers


def size_of(kind, count):
    n, bytes_ = reference.BLOCKS.get(kind, (1, {"F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1}.get(kind)))
    return count // n * bytes_


def matrices(shape):
    """The configuration, and (GGUF's name, that of transformers, rows or 0, columns) of each tensor."""
    c = dict(SHAPES[shape], context=8192, eps=1e-5)
    sizes = dict(c, q=c["heads"] * c["head_dim"], kv=c["kv_heads"] * c["head_dim"])
    names = [(f"blk.{i}.{g}", f"model.layers.{i}.{s}", r, k) for i in range(c["layers"]) for g, s, r, k in reference.LAYER]
    names += [t for t in reference.OUTSIDE if t[0] != "output" or not c["tied"]]
    return c, [(g, s, sizes[r] if r else 0, sizes[k]) for g, s, r, k in names]


def read_by_token(shape, kind):
    """Bytes of weights that one token reads: all matrices but the embedding, and their scales."""
    _, names = matrices(shape)
    return sum(size_of(kind, r * k) + 4 * r * (kind == "F8_E4M3") for g, _, r, k in names if r and (g != "token_embd" or SHAPES[shape]["tied"]))


def write_tensors(f, kind, names):
    rng = np.random.default_rng(1)
    if kind == "F8_E4M3":
        piece = (rng.integers(0, 0x50, PIECE, np.uint8) | rng.integers(0, 2, PIECE, np.uint8) << 7).tobytes()
    else:
        piece, _ = reference.random_tensor(rng, kind, PIECE // 256, 256, 0.3)
    align = 32 if kind != "F8_E4M3" else 1
    for _, _, rows, cols in names:
        left = size_of(kind, rows * cols) if rows else 4 * cols
        if not rows:
            f.write(np.ones(cols, "<f4").tobytes())
        else:
            for _ in range(left // len(piece)):
                f.write(piece)
            f.write(piece[:left % len(piece)])
        f.write(bytes(-left % align))


def write_gguf(path, shape, kind):
    c, names = matrices(shape)
    text = lambda s: struct.pack("<Q", len(s)) + s.encode()
    values = [("block_count", c["layers"]), ("embedding_length", c["dim"]), ("feed_forward_length", c["hidden"]), ("attention.head_count", c["heads"]),
              ("attention.head_count_kv", c["kv_heads"]), ("rope.dimension_count", c["head_dim"]), ("context_length", c["context"]),
              ("attention.layer_norm_rms_epsilon", c["eps"]), ("rope.freq_base", c["theta"])]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(names), len(values) + 1) + text("general.architecture") + struct.pack("<I", 8) + text("llama")
    for key, v in values:
        head += text("llama." + key) + (struct.pack("<If", 6, v) if isinstance(v, float) else struct.pack("<II", 4, v))
    at = 0
    for name, _, rows, cols in names:
        k, extents = (kind, (cols, rows)) if rows else ("F32", (cols,))
        head += text(name + ".weight") + struct.pack(f"<I{len(extents)}QIQ", len(extents), *extents, reference.GGUF_TYPES[k], at)
        at += -(-size_of(k, int(np.prod(extents))) // 32) * 32
    with open(path, "wb") as f:
        f.write(head + bytes(-len(head) % 32))
        write_tensors(f, kind, names)


def write_safetensors(folder, shape, kind):
    """The scales of all rows lie behind the weights."""
    c, names = matrices(shape)
    head, at = {}, 0

    def entry(name, type_, extents, bytes_):
        nonlocal at
        head[name] = {"dtype": type_, "shape": extents, "data_offsets": [at, at + bytes_]}
        at += bytes_
    for _, name, rows, cols in names:
        entry(name + ".weight", *((kind, [rows, cols], rows * cols) if rows else ("F32", [cols], 4 * cols)))
    for _, name, rows, _ in names:
        if rows:
            entry(name + ".weight_scale", "F32", [rows, 1], 4 * rows)
    text = json.dumps(head).encode()
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        write_tensors(f, kind, names)
        f.write(np.full(sum(rows for _, _, rows, _ in names), 2e-3, "<f4").tobytes())
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(reference.json_config(c), f)


def main():
    path, shape, kind = (sys.argv[1:] + ["8b", "Q4_1"][len(sys.argv) - 2:])[:3]
    (write_safetensors if kind == "F8_E4M3" else write_gguf)(path, shape, kind)


if __name__ == "__main__":
    main()
