"""reference.py - a Llama in numpy, float64, written from the architecture's and the formats' definitions, beside which examples/llama is
held: random models, the files that they are written to, and the logits of a text."""
import json, os, struct
import numpy as np

GGUF_TYPES = {"F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q8_0": 8, "Q4_K": 12, "Q6_K": 14, "BF16": 30}
BLOCKS = {"Q4_0": (32, 18), "Q4_1": (32, 20), "Q8_0": (32, 34), "Q4_K": (256, 144), "Q6_K": (256, 210)}


# ---- formats ----

def f16_at(b, at):
    return np.ascontiguousarray(b[:, at:at + 2]).view("<f2").astype(np.float64)


def nibbles(b):
    return np.concatenate([b & 15, b >> 4], axis=1).astype(np.float64)


def decode_blocks(kind, b):
    """Blocks, a row of bytes each, as rows of numbers."""
    if kind == "Q4_0":
        return (nibbles(b[:, 2:]) - 8) * f16_at(b, 0)
    if kind == "Q4_1":
        return nibbles(b[:, 4:]) * f16_at(b, 0) + f16_at(b, 2)
    if kind == "Q8_0":
        return b[:, 2:].view(np.int8) * f16_at(b, 0)
    if kind == "Q4_K":
        s = b[:, 4:16].astype(int)
        scale = np.concatenate([s[:, :4] & 63, (s[:, 8:] & 15) | (s[:, :4] >> 6 << 4)], axis=1)
        least = np.concatenate([s[:, 4:8] & 63, (s[:, 8:] >> 4) | (s[:, 4:8] >> 6 << 4)], axis=1)
        q = b[:, 16:].reshape(-1, 4, 32)
        q = np.stack([q & 15, q >> 4], axis=2).reshape(-1, 8, 32)
        return ((f16_at(b, 0) * scale)[:, :, None] * q - (f16_at(b, 2) * least)[:, :, None]).reshape(-1, 256)
    low, high = b[:, :128].reshape(-1, 2, 2, 32), b[:, 128:192].reshape(-1, 2, 32)
    q = np.empty((len(b), 2, 4, 32))
    for quarter in range(4):
        q[:, :, quarter] = ((low[:, :, quarter & 1] >> (0 if quarter < 2 else 4)) & 15) | ((high >> 2 * quarter & 3) << 4)
    scale = b[:, 192:208].view(np.int8) * f16_at(b, 208)
    return ((q - 32).reshape(-1, 16, 16) * scale[:, :, None]).reshape(-1, 256)


def bf16_bytes(x):
    return (np.ascontiguousarray(x, "<f4").view("<u4") >> 16).astype("<u2")


def f8_values(b):
    """8-bit floats of 4 bits of exponent."""
    exponent, mantissa = (b >> 3 & 15).astype(int), (b & 7).astype(np.float64)
    return np.where(b & 128, -1.0, 1.0) * np.where(exponent, (8 + mantissa) * 2.0 ** (exponent - 10), mantissa * 2.0**-9)


def random_f8(rng, rows, cols, each):
    """(bytes, their scales in f32, the numbers that they mean): a scale for each row, or one."""
    b = rng.integers(0, 0x78, (rows, cols), np.uint8) | rng.integers(0, 2, (rows, cols), np.uint8) << 7
    scale = rng.uniform(0.0005, 0.001, (rows, 1) if each else (1,)).astype("<f4")
    return b.tobytes(), scale, f8_values(b) * scale


def random_f8_blocks(rng, rows, cols):
    """The same with a scale for each block of 128 x 128."""
    b = rng.integers(0, 0x78, (rows, cols), np.uint8) | rng.integers(0, 2, (rows, cols), np.uint8) << 7
    scale = rng.uniform(0.0002, 0.001, (-(-rows // 128), -(-cols // 128))).astype("<f4")
    return b.tobytes(), scale, f8_values(b) * scale.repeat(128, 0)[:rows].repeat(128, 1)[:, :cols]


def random_tensor(rng, kind, rows, cols, size=1.0):
    """(bytes, the numbers that they mean)."""
    if kind in BLOCKS:
        n, bytes_ = BLOCKS[kind]
        b = rng.integers(0, 256, (rows * cols // n, bytes_), np.uint8)
        scale = rng.uniform(0.02, 0.04, len(b)) * size
        f16 = lambda x: np.asarray(x, "<f2")[:, None].view(np.uint8)
        if kind == "Q6_K":
            b[:, 208:] = f16(scale / 400)
        else:
            b[:, :2] = f16(scale / {"Q4_0": 2, "Q4_1": 2, "Q8_0": 30, "Q4_K": 80}[kind])
        if kind == "Q4_1":
            b[:, 2:4] = f16(-scale * 4)
        if kind == "Q4_K":
            b[:, 2:4] = f16(scale / 10)
        return b.tobytes(), decode_blocks(kind, b).reshape(rows, cols)
    x = rng.standard_normal((rows, cols)) * size * 0.1
    if kind == "BF16":
        b = bf16_bytes(x)
        return b.tobytes(), (b.astype("<u4") << 16).view("<f4").astype(np.float64)
    b = x.astype({"F32": "<f4", "F16": "<f2"}[kind])
    return b.tobytes(), b.astype(np.float64)


# ---- models ----

# What a layer has: GGUF's name, that of transformers, rows and columns by the configuration's names.
LAYER = [("attn_norm", "input_layernorm", None, "dim"), ("attn_q", "self_attn.q_proj", "q", "dim"), ("attn_k", "self_attn.k_proj", "kv", "dim"),
         ("attn_v", "self_attn.v_proj", "kv", "dim"), ("attn_output", "self_attn.o_proj", "dim", "q"),
         ("ffn_norm", "post_attention_layernorm", None, "dim"), ("ffn_gate", "mlp.gate_proj", "hidden", "dim"),
         ("ffn_up", "mlp.up_proj", "hidden", "dim"), ("ffn_down", "mlp.down_proj", "dim", "hidden")]
OUTSIDE = [("token_embd", "model.embed_tokens", "vocabulary", "dim"), ("output_norm", "model.norm", None, "dim"),
           ("output", "lm_head", "vocabulary", "dim")]


def json_config(c):
    """config.json of such a shape."""
    return {"model_type": "llama", "num_hidden_layers": c["layers"], "hidden_size": c["dim"], "intermediate_size": c["hidden"],
            "num_attention_heads": c["heads"], "num_key_value_heads": c["kv_heads"], "head_dim": c["head_dim"],
            "max_position_embeddings": c["context"], "rms_norm_eps": c["eps"], "rope_theta": c["theta"]}


class Model:
    """config: layers, dim, hidden, heads, kv_heads, head_dim, vocabulary, context, eps, theta, tied. kinds: of a tensor by GGUF's name, "" of others."""

    def __init__(self, config, kinds, seed=1):
        self.config, self.tensors, self.scales, self.blocks = config, {}, {}, {}       # scales: by the names of transformers
        rng = np.random.default_rng(seed)
        sizes = dict(config, q=config["heads"] * config["head_dim"], kv=config["kv_heads"] * config["head_dim"])
        names = [(f"blk.{i}.{g}", f"model.layers.{i}.{s}", g, r, c) for i in range(config["layers"]) for g, s, r, c in LAYER]
        names += [(g, s, g, r, c) for g, s, r, c in OUTSIDE if g != "output" or not config["tied"]]
        for gguf, safetensors, part, rows, cols in names:
            kind = kinds.get(part, kinds[""]) if rows else "F32"
            if kind == "F8_BLOCKS":
                kind = "F8_E4M3"
                data, scale, values = random_f8_blocks(rng, sizes[rows], sizes[cols])
                self.blocks[safetensors] = scale
            elif kind.startswith("F8"):                                   # with a scale for each row, but of keys, which have one
                kind = "F8_E4M3"
                data, self.scales[safetensors], values = random_f8(rng, sizes[rows], sizes[cols], part != "attn_k")
            else:
                data, values = random_tensor(rng, kind, sizes[rows] if rows else 1, sizes[cols])
            if not rows:
                values = values * 3 + 1
                data = values.astype("<f4").tobytes()
                values = values.astype("<f4").astype(np.float64)[0]
            self.tensors[gguf] = (safetensors, kind, data, values)

    def __getitem__(self, name):
        return self.tensors[name][3]

    def logits(self, tokens, neighbours):
        """Of the last of the tokens."""
        return forward(self.config, self.__getitem__, tokens, neighbours)

    def write_gguf(self, path, extra=(), parts=1):
        """In one file, or in several, whose names are path's with numbers."""
        if parts > 1:
            all_ = list(self.tensors.items())
            for i in range(parts):
                split = [("split.no", i), ("split.count", parts), ("split.tensors.count", len(all_))]
                self.write_part(f"{path.removesuffix('.gguf')}-{i + 1:05}-of-{parts:05}.gguf", dict(all_[i::parts]), [*(extra if not i else ()), *split], not i)
        else:
            self.write_part(path, self.tensors, extra)

    def write_part(self, path, tensors, extra, shape=True):
        """shape: the configuration, too."""
        c = self.config
        values = [("general.architecture", "llama"), ("llama.block_count", c["layers"]), ("llama.embedding_length", c["dim"]),
                  ("llama.feed_forward_length", c["hidden"]), ("llama.attention.head_count", c["heads"]),
                  ("llama.attention.head_count_kv", c["kv_heads"]), ("llama.rope.dimension_count", c["head_dim"]),
                  ("llama.context_length", c["context"]), ("llama.attention.layer_norm_rms_epsilon", c["eps"]),
                  ("llama.rope.freq_base", c["theta"])]
        values = [*(values if shape else ()), *extra]
        text = lambda s: struct.pack("<Q", len(s.encode())) + s.encode()
        head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(values))
        for key, v in values:
            head += text(key) + (struct.pack("<I", 8) + text(v) if isinstance(v, str) else
                                 struct.pack("<If", 6, v) if isinstance(v, float) else struct.pack("<II", 4, v))
        at, table, data = 0, b"", []
        for name, (_, kind, bytes_, v) in tensors.items():
            shape = v.shape[::-1]
            table += text(name + ".weight") + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, GGUF_TYPES[kind], at)
            data.append(bytes_ + bytes(-len(bytes_) % 32))
            at += len(data[-1])
        head += table
        with open(path, "wb") as f:
            f.writelines([head, bytes(-len(head) % 32), *data])

    def write_safetensors(self, folder, parts=1):
        """In one file, or in several with a list of which holds what."""
        c, all_ = self.config, {}
        for _, (name, kind, data, v) in self.tensors.items():
            all_[name + ".weight"] = (kind, v.shape, data)
        for name, scale in self.scales.items():
            all_[name + ".weight_scale"] = ("F32", scale.shape, scale.tobytes())
        for name, scale in self.blocks.items():
            all_[name + ".weight_scale_inv"] = ("F32", scale.shape, scale.tobytes())
        os.makedirs(folder, exist_ok=True)
        files = ["model.safetensors"] if parts == 1 else [f"model-{i + 1:05}-of-{parts:05}.safetensors" for i in range(parts)]
        for i, file in enumerate(files):
            head, at, own = {"__metadata__": {"format": "pt"}}, 0, list(all_.items())[i::parts]
            for name, (kind, shape, data) in own:
                head[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [at, at + len(data)]}
                at += len(data)
            text = json.dumps(head).encode()
            with open(os.path.join(folder, file), "wb") as f:
                f.writelines([struct.pack("<Q", len(text)), text, *(data for _, (_, _, data) in own)])
        if parts > 1:
            with open(os.path.join(folder, "model.safetensors.index.json"), "w") as f:
                json.dump({"metadata": {}, "weight_map": {name: files[i % parts] for i, name in enumerate(all_)}}, f)
        with open(os.path.join(folder, "config.json"), "w") as f:
            json.dump(json_config(c), f)


# ---- what it computes ----

def norm(x, gain, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * gain


def turn(x, theta, neighbours):
    """x[tokens, heads, d], each pair by its place's angle."""
    half = x.shape[2] // 2
    angle = np.arange(len(x))[:, None] * theta ** (-np.arange(half) / half)
    c, s = np.cos(angle)[:, None], np.sin(angle)[:, None]
    y = np.empty_like(x)
    first, second = (slice(0, None, 2), slice(1, None, 2)) if neighbours else (slice(0, half), slice(half, None))
    y[..., first] = x[..., first] * c - x[..., second] * s
    y[..., second] = x[..., second] * c + x[..., first] * s
    return y


def forward(c, weights, tokens, neighbours):
    x = weights("token_embd")[list(tokens)]
    n, d, group = len(x), c["head_dim"], c["heads"] // c["kv_heads"]
    hidden = np.triu(np.full((n, n), -np.inf), 1)
    for i in range(c["layers"]):
        w = lambda name: weights(f"blk.{i}.{name}")
        h = norm(x, w("attn_norm"), c["eps"])
        q = turn((h @ w("attn_q").T).reshape(n, -1, d), c["theta"], neighbours)
        k = turn((h @ w("attn_k").T).reshape(n, -1, d), c["theta"], neighbours).repeat(group, 1)
        v = (h @ w("attn_v").T).reshape(n, -1, d).repeat(group, 1)
        s = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(d) + hidden
        p = np.exp(s - s.max(-1, keepdims=True))
        x = x + np.einsum("hqk,khd->qhd", p / p.sum(-1, keepdims=True), v).reshape(n, -1) @ w("attn_output").T
        h = norm(x, w("ffn_norm"), c["eps"])
        gate = h @ w("ffn_gate").T
        x = x + (gate / (1 + np.exp(-gate)) * (h @ w("ffn_up").T)) @ w("ffn_down").T
    return norm(x[-1:], weights("output_norm"), c["eps"])[0] @ weights("token_embd" if c["tied"] else "output").T
