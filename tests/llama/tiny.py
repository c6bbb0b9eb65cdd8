"""tiny.py PROGRAM [DEVICE]: small random Llamas, written as GGUF and as safetensors, run by examples/llama (on the simulator); its logits beside numpy's.

A text is filled in and then gone on with, so that what is compared went through prefill in one piece or two, through decode and through
several pages. LLAMA_FEW=1 takes few of the cases, those that differ in what the program does rather than its kernels: for sanitizers, under
which the simulator is five times as slow. Products take f16, so logits agree to about 2^-9 of their spread; a wrong head, page, angle or block is off by the spread."""
import json, os, shutil, subprocess, sys, tempfile
import numpy as np

import reference

PROGRAM, DEVICE = (sys.argv[1:] + ["sim"])[:2]
SHAPE = dict(layers=2, dim=64, hidden=96, heads=4, kv_heads=2, head_dim=16, vocabulary=300, context=200, eps=1e-5, theta=10000.0, tied=True)
WIDE = dict(SHAPE, layers=1, dim=256, hidden=512, heads=4, kv_heads=1, head_dim=72, tied=False, vocabulary=4200)
FEW = ["quantised, tied", "f16, bf16, f32", "8-bit floats in three files, tied", "8-bit floats in blocks, rows and none"] if os.environ.get("LLAMA_FEW") else []
CLOSE = 0.006       # of the logits' standard deviation, at most, in the mean square

# (name, shape, kinds, prompt's tokens, decoded tokens, files: gguf, both, or in how many parts safetensors are)
CASES = [
    ("quantised, tied", SHAPE, {"": "Q4_1", "token_embd": "Q8_0", "attn_v": "Q4_0"}, 20, 3, "gguf"),
    ("two pieces", SHAPE, {"": "Q8_0"}, 70, 2, "gguf"),
    ("one token", dict(SHAPE, kv_heads=4), {"": "Q4_0"}, 1, 18, "gguf"),
    ("K blocks, heads of 72, a head of its own", dict(WIDE, heads=32, head_dim=72, kv_heads=2), {"": "Q4_K", "ffn_down": "Q6_K", "attn_output": "Q4_1",
                                                                                      "attn_v": "Q6_K"}, 5, 3, "gguf"),
    ("heads of 136", dict(SHAPE, head_dim=136), {"": "Q8_0"}, 18, 2, "gguf"),
    ("f16, bf16, f32", dict(SHAPE, heads=2, kv_heads=1, head_dim=128, tied=False), {"": "BF16", "ffn_up": "F16", "attn_q": "F32"}, 18, 3, "both"),
    ("8-bit floats", dict(WIDE, head_dim=64), {"": "F8_E4M3", "token_embd": "BF16"}, 19, 3, 1),
    ("8-bit floats in three files, tied", SHAPE, {"": "F8_E4M3", "ffn_up": "F16"}, 1, 2, 3),
    ("8-bit floats in blocks", dict(WIDE, heads=8, kv_heads=2, head_dim=56, hidden=416, vocabulary=301), {"": "F8_BLOCKS"}, 19, 3, 1),
    ("8-bit floats in blocks, rows and none", dict(SHAPE, kv_heads=1, heads=4, dim=160, head_dim=24),
     {"": "F8_E4M3", "ffn_up": "F8_BLOCKS", "attn_k": "F8_BLOCKS", "attn_v": "BF16", "ffn_down": "F8_BLOCKS"}, 80, 2, 1),
    # All layers of a decoded token in one launch, where a GPU is, as their matrices are of one form; a page ends.
    ("layers at once, 4 bits", dict(WIDE, layers=2, kv_heads=2, head_dim=64), {"": "Q4_1"}, 14, 4, "gguf"),
    ("layers at once, 8 bits", dict(WIDE, layers=2, heads=8, kv_heads=1, head_dim=32), {"": "Q8_0"}, 2, 2, "gguf"),
    ("layers at once, f16, two heads of 128", dict(WIDE, layers=3, heads=2, kv_heads=2, head_dim=128), {"": "BF16"}, 5, 2, 1),
    # Pieces of many tokens, whose products and attention a GPU does by tiles of 128 rows.
    ("many tokens, 4 bits", dict(WIDE, heads=4, kv_heads=2, head_dim=64), {"": "Q4_1", "attn_v": "Q6_K"}, 90, 2, "gguf"),
    ("many tokens, 8 bits", dict(WIDE, heads=4, kv_heads=2, head_dim=64), {"": "Q8_0", "ffn_gate": "Q6_K", "ffn_up": "Q6_K"}, 70, 1, "gguf"),
    ("many tokens, f16, groups of three", dict(SHAPE, heads=6, kv_heads=2, head_dim=128, dim=96), {"": "F16"}, 77, 2, "gguf"),
    ("many tokens, heads of 136", dict(SHAPE, heads=4, kv_heads=4, head_dim=136), {"": "BF16", "ffn_up": "Q8_0"}, 66, 1, "gguf"),
    ("many tokens, 8-bit floats", dict(SHAPE, heads=4, kv_heads=1, head_dim=64), {"": "F8_E4M3", "token_embd": "F16"}, 98, 1, 1),
]


def run(model, path, neighbours, prompt, steps, folder, *more):
    logits = os.path.join(folder, "logits")
    r = subprocess.run([PROGRAM, path, "--device=" + DEVICE, "--ids=" + ",".join(map(str, prompt)), f"--tokens={steps + 1}", "--logits=" + logits,
                        "--context=100", *more], capture_output=True, text=True)
    if r.returncode:
        return r.stderr
    tokens = [int(t) for t in r.stdout.split()]
    ours, theirs = np.fromfile(logits, "<f4").astype(np.float64), model.logits(prompt + tokens[:steps], neighbours)
    error = np.sqrt(((ours - theirs) ** 2).mean()) / theirs.std()
    if not error < CLOSE or len(tokens) != steps + 1 or tokens[-1] != ours.argmax():
        return f"error {error:.4f}, tokens {tokens}, the best is {theirs.argmax()}"
    print(f"  error {error:.5f}")


failed = 0
for name, shape, kinds, prompt, steps, files in [c for c in CASES if not FEW or c[0] in FEW]:
    with tempfile.TemporaryDirectory() as folder:
        model = reference.Model(shape, kinds, seed=len(name))
        text = [int(t) for t in np.random.default_rng(7).integers(0, shape["vocabulary"], prompt)]
        ways = [(os.path.join(folder, "m.gguf"), True)] * (files in ("gguf", "both")) + [(os.path.join(folder, "m"), False)] * (files != "gguf")
        if files in ("gguf", "both"):
            model.write_gguf(ways[0][0])
        if files != "gguf":
            model.write_safetensors(os.path.join(folder, "m"), 1 if files == "both" else files)
        for path, neighbours in ways:
            print(f"{name}, {'GGUF' if neighbours else 'safetensors'}", flush=True)
            wrong = run(model, path, neighbours, text, steps, folder) or (not FEW and run(model, path, neighbours, text, steps, folder, "--wide"))
            if wrong:
                failed += 1
                print("  FAILED:", wrong)


# Pieces that begin in the middle of a page and of a block of keys.
if not FEW:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m.gguf")
        model = reference.Model(dict(SHAPE, heads=6, kv_heads=2, head_dim=64, dim=96), {"": "Q4_1"})
        model.write_gguf(path)
        for args in (["--piece=70", "--wide"], ["--piece=17", "--wide"], ["--piece=50"]):
            print(f"pieces, {' '.join(args)}", flush=True)
            if wrong := run(model, path, True, [int(t) for t in np.random.default_rng(8).integers(0, 300, 180)], 1, folder, "--context=200", *args):
                failed += 1
                print("  FAILED:", wrong)


# GGUF in parts.
with tempfile.TemporaryDirectory() as folder:
    model = reference.Model(SHAPE, {"": "Q8_0", "ffn_up": "Q4_0"})
    model.write_gguf(os.path.join(folder, "m.gguf"), parts=3)
    part = lambda i: os.path.join(folder, f"m-{i:05}-of-00003.gguf")
    print("three parts, GGUF", flush=True)
    if wrong := run(model, part(1), True, [5, 6, 7], 1, folder):
        failed += 1
        print("  FAILED:", wrong)


def refused(expected, *args):
    global failed
    r = subprocess.run([PROGRAM, *args], capture_output=True, text=True)
    if r.returncode != 1 or expected not in r.stderr or r.stdout:
        failed += 1
        print(f"FAILED: {args}: status {r.returncode}, {r.stderr!r}, expected {expected!r}")


with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "m.gguf")
    device = "--device=" + DEVICE
    model = reference.Model(SHAPE, {"": "Q4_1"})
    model.write_gguf(path)
    whole = open(path, "rb").read()
    open(path + ".cut", "wb").write(whole[:len(whole) // 2])
    refused("lie outside", path + ".cut", "--ids=1", device)
    refused("m.gguf: metadata tokenizer.ggml.model", path, "Hello", device)
    refused("--ids=1,300", path, "--ids=1,300", device)
    refused("the text is full: 4 places", path, "--ids=1,2,3,4,5", "--context=4", device)
    refused("no such option", path, "--idle=1")
    refused("from 0 to 1", path, "--top-p=2", "--ids=1")
    refused("a model and a prompt", path)
    refused("No such file", path + ".not", "--ids=1")
    del model.tensors["blk.1.ffn_up"]
    model.write_gguf(path)
    refused("tensor blk.1.ffn_up.weight: the file has none", path, "--ids=1", device)
    model = reference.Model(dict(SHAPE, hidden=128), {"": "Q8_0"})
    model.config["hidden"] = 96
    model.write_gguf(path)
    refused("blk.0.ffn_gate.weight: it is 128 x 64, the model takes 96 x 64", path, "--ids=1", device)
    model = reference.Model(SHAPE, {"": "F32"})
    name, kind, data, values = model.tensors["blk.0.attn_k"]
    model.tensors["blk.0.attn_k"] = (name, kind, np.full(values.shape, 1e6, "<f4").tobytes(), values)
    model.write_gguf(path)
    refused("tensor blk.0.attn_k.weight: row 0 has 1e+06, which f16 does not", path, "--ids=1", device)
    model = reference.Model(SHAPE, {"": "F8_E4M3", "token_embd": "BF16"})
    parts = os.path.join(folder, "parts")
    model.scales["model.layers.1.mlp.up_proj"] = model.scales["model.layers.1.mlp.up_proj"][:5]
    model.write_safetensors(parts)
    refused("tensor model.layers.1.mlp.up_proj.weight_scale: one number, or one for each of 96 rows, is expected", parts, "--ids=1", device)
    model = reference.Model(SHAPE, {"": "F8_BLOCKS"})
    model.blocks["model.layers.0.mlp.up_proj"] = model.blocks["model.layers.0.mlp.up_proj"].repeat(2, 0)
    model.write_safetensors(parts)
    refused("up_proj.weight_scale_inv: 1 x 1 numbers, one for each block of 128 x 128, are expected", parts, "--ids=1", device)
    model = reference.Model(SHAPE, {"": "F8_E4M3", "token_embd": "BF16"})
    name, kind, data, values = model.tensors["blk.0.ffn_down"]
    model.tensors["blk.0.ffn_down"] = (name, kind, data[:200] + bytes([0x7f]) + data[201:], values)
    model.write_safetensors(parts)
    refused("tensor model.layers.0.mlp.down_proj.weight: row 2 has no number at 8", parts, "--ids=1", device)
    model.write_safetensors(parts, 2)
    listed = os.path.join(parts, "model.safetensors.index.json")
    text = open(listed).read()
    for wrong, expected in (("../model.safetensors", "is no name of a file in the folder"), ("none.safetensors", "No such file")):
        open(listed, "w").write(text.replace("model-00002-of-00002.safetensors", wrong))
        refused(expected, parts, "--ids=1", device)
    part = lambda i, n=2: os.path.join(folder, f"g-{i:05}-of-{n:05}.gguf")
    model = reference.Model(SHAPE, {"": "Q8_0"})
    model.write_gguf(os.path.join(folder, "g.gguf"), parts=2)
    refused("part 2 of 2; the first one is to be given", part(2), "--ids=1", device)
    os.rename(part(2), part(3))
    refused("g-00002-of-00002.gguf: No such file", part(1), "--ids=1", device)
    os.symlink(part(1), part(2))
    refused("g-00002-of-00002.gguf: it says that it is part 1 of 2", part(1), "--ids=1", device)
    os.symlink(part(1), path + ".first")
    refused("has a name that ends in -00001-of-00002.gguf", path + ".first", "--ids=1", device)
    os.remove(part(2))
    model.write_part(part(2), dict(list(model.tensors.items())[3::2]), [("split.no", 1), ("split.count", 2)], False)
    refused("tensors in all parts, there are", part(1), "--ids=1", device)
    model.write_part(part(2), model.tensors, [("split.no", 1), ("split.count", 2)], False)
    refused("there are two of that name", part(1), "--ids=1", device)
    model.write_part(part(2), {}, [("split.no", 7), ("split.count", 2)], False)
    refused("part 8 of 2", part(1), "--ids=1", device)
    open(listed, "w").write("{}")
    refused("it has no weight_map", parts, "--ids=1", device)

# Rounds: as many answers as questions, of texts that take all pages again.
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "m.gguf")
    reference.Model(SHAPE, {"": "Q4_1"}).write_gguf(path)
    for lines, answers, expected in (("40 9\n49 0\n1 48\n", 3, ""), ("40 9\n0 1\n", 1, "a round is two numbers"), ("45 9\n", 0, "together up to 50")):
        r = subprocess.run([PROGRAM, path, "--rounds", "--context=50", "--device=" + DEVICE], input=lines, capture_output=True, text=True)
        if len(r.stdout.splitlines()) != answers or (r.returncode != 0) != bool(expected) or expected not in r.stderr:
            failed += 1
            print(f"FAILED: rounds {lines!r}: {r.stdout!r} {r.stderr!r}")

# From text to text: tokenizers of both kinds, frames of a chat.
with tempfile.TemporaryDirectory() as folder:
    model = reference.Model(dict(SHAPE, vocabulary=720), {"": "BF16"})
    model.write_safetensors(folder)
    tokenizers = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tokenizers")

    def chat(*args):
        r = subprocess.run([PROGRAM, folder, "Why?", "--tokens=2", "--time", "--device=" + DEVICE, *args], capture_output=True, text=True, errors="replace")
        return r.stderr if r.returncode else int(r.stderr.split("prompt: ")[1].split()[0])

    for name in ("gpt2.json", "merged_pieces.json"):
        shutil.copy(os.path.join(tokenizers, name), os.path.join(folder, "tokenizer.json"))
        counts = [chat("--raw")]
        for template in ("{{ '<|im_start|>' }} {{ '<|im_end|>' }}", [{"name": "default", "template": "[INST] [/INST]"}], "{{ messages }}"):
            with open(os.path.join(folder, "tokenizer_config.json"), "w") as f:
                json.dump({"chat_template": template}, f)
            counts.append(chat("--system=Be kind."))
        with open(os.path.join(folder, "chat_template.jinja"), "w") as f:
            f.write("USER: ASSISTANT:")
        counts.append(chat())
        os.remove(os.path.join(folder, "chat_template.jinja"))
        os.remove(os.path.join(folder, "tokenizer_config.json"))
        print(f"{name}: prompts of {counts}")
        unknown = counts.pop(3)
        if not all(isinstance(n, int) for n in counts) or not counts[0] < min(counts[1:]) or "is none of those that are known" not in str(unknown):
            failed += 1
            print("  FAILED")

# Draws: the same for the same seed, others for others, and only tokens among the most probable ones.
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "m.gguf")
    model = reference.Model(SHAPE, {"": "Q4_1"})
    model.write_gguf(path)
    order = np.argsort(-model.logits([1, 2, 3], True))

    def draw(*args):
        r = subprocess.run([PROGRAM, path, "--ids=1,2,3", "--tokens=1", "--device=" + DEVICE, *args], capture_output=True, text=True)
        return int(r.stdout) if not r.returncode else -1

    drawn = [draw("--temperature=1", "--top-k=4", f"--seed={i}") for i in range(12)]
    wrong = [draw("--temperature=1", "--top-k=4", f"--seed={i}") for i in range(3)] != drawn[:3] or len(set(drawn)) < 2 or not set(drawn) <= set(order[:4])
    if wrong or draw("--temperature=2", "--top-p=0.001", "--seed=5") != order[0] or draw("--temperature=0", "--top-k=1") != order[0]:
        failed += 1
        print(f"FAILED: draws {drawn}, the best are {order[:4]}")
sys.exit(failed > 0)
