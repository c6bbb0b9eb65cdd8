"""smollm.py PROGRAM FOLDER: SmolLM2-135M-Instruct, whole, on the simulator: the logits of a prompt beside numpy's, and text that is English.
The file is read here by a reader of its own. Exit status 77: the model cannot be had."""
import os, struct, subprocess, sys, tempfile
import numpy as np

import fetch, reference

PROGRAM, FOLDER = sys.argv[1:3]
KINDS = {v: k for k, v in reference.GGUF_TYPES.items()}
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
CLOSE = 0.02        # of the logits' standard deviation, in the mean square: f16 in thirty layers
PROMPT, CONTINUED = "The capital of France is", " Paris"


class File:
    def __init__(self, path):
        self.bytes, self.at, self.values, self.tensors = np.memmap(path, np.uint8, "r"), 4, {}, {}
        _, ntensors, nvalues = self.take("I"), self.take("Q"), self.take("Q")
        for _ in range(nvalues):
            key, type_ = self.text(), self.take("I")
            if type_ == 9:
                type_, n = self.take("I"), self.take("Q")
                self.values[key] = [self.value(type_) for _ in range(n)]
            else:
                self.values[key] = self.value(type_)
        table = []
        for _ in range(ntensors):
            name, rank = self.text(), self.take("I")
            table.append((name, [self.take("Q") for _ in range(rank)], KINDS[self.take("I")], self.take("Q")))
        start = -(-self.at // 32) * 32
        for name, shape, kind, offset in table:
            self.tensors[name] = (shape[::-1], kind, start + offset)

    def take(self, kind):
        (v,) = struct.unpack_from("<" + kind, self.bytes, self.at)
        self.at += struct.calcsize("<" + kind)
        return v

    def text(self):
        n = self.take("Q")
        self.at += n
        return self.bytes[self.at - n:self.at].tobytes().decode()

    def value(self, type_):
        return self.text() if type_ == 8 else self.take(NUMBERS[type_])

    def __call__(self, name):
        shape, kind, at = self.tensors[name + ".weight"]
        if kind == "F32":
            return self.bytes[at:at + 4 * shape[-1]].view("<f4").astype(np.float64)
        n, size = reference.BLOCKS[kind]
        count = shape[0] * shape[1] // n
        return reference.decode_blocks(kind, np.array(self.bytes[at:at + count * size]).reshape(count, size)).reshape(shape)


def run(*args):
    r = subprocess.run([PROGRAM, path, "--device=sim", *args], capture_output=True, text=True)
    if r.returncode:
        sys.exit(r.stderr)
    return r.stdout


path = fetch.fetch(FOLDER)
if not path:
    sys.exit(77)
f = File(path)
key = lambda name: f.values["llama." + name]
config = dict(layers=key("block_count"), heads=key("attention.head_count"), kv_heads=key("attention.head_count_kv"),
              head_dim=key("rope.dimension_count"), eps=key("attention.layer_norm_rms_epsilon"), theta=key("rope.freq_base"), tied=True)
words = {t: i for i, t in enumerate(f.values["tokenizer.ggml.tokens"])}
prompt = [words[w.replace(" ", "Ġ")] for w in ["The", " capital", " of", " France", " is"]]
with tempfile.TemporaryDirectory() as scratch:
    out = os.path.join(scratch, "logits")
    tokens = [int(t) for t in run("--ids=" + ",".join(map(str, prompt)), "--tokens=2", "--logits=" + out).split()]
    ours = np.fromfile(out, "<f4").astype(np.float64)
theirs = reference.forward(config, f, prompt + tokens[:1], True)
error = np.sqrt(((ours - theirs) ** 2).mean()) / theirs.std()
text = run("--raw", PROMPT, "--tokens=4")
print(f"logits: error {error:.5f}, best {ours.argmax()} and {theirs.argmax()}; text: {text!r}")
sys.exit(not (error < CLOSE and ours.argmax() == theirs.argmax() and text.startswith(CONTINUED)))
