"""A whole model: examples/llama with random weights of Llama 3's 8B shape, beside transformers' LlamaForCausalLM of that shape on the same GPU, in turns.

transformers has bf16, a static cache, its step compiled and captured as one graph, and picks its next token on the device; of two ways
to compile the faster one counts. With weights of 8 bits (e4m3, a scale for each row) and of 4 (groups of 32, torch's own product for them) its
linear layers are replaced, which is a peer of its own. Prompts: without a cache, as they come or compiled, whichever is faster."""
import contextlib
import os
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import data
import measure
import roofs
import torch
from measure import case_begins, D, failures, full, record, REHEARSE, root, SHARE, sync

sys.path.insert(0, os.path.join(root, "tests", "llama"))
import make

SECONDS = float(os.environ.get("LLAMA_SECONDS", 350))   # of the whole section: what is left then is left out
SHAPE, CONTEXT, STEPS = full("8b", "tiny"), full(512, 20), full(128, 3)
PROMPTS = full((512, 4096), (20, 70))
KINDS = {"bf16": "BF16", "f8": "F8_E4M3", "u4": "Q4_1"}
begun = time.perf_counter()


def note(words):
    print(f"  {time.perf_counter() - begun:5.0f} s: {words}", flush=True)


def left():
    return SECONDS - (time.perf_counter() - begun)


class Files:
    """Files of weights, written beside each other while a model is built; in memory where there is room."""

    def __init__(self):
        room = shutil.disk_usage("/dev/shm").free if os.path.isdir("/dev/shm") else 0
        self.folder = tempfile.mkdtemp(dir="/dev/shm" if room > full(40e9, 1e9) else None)
        self.path = lambda kind: os.path.join(self.folder, kind)
        self.writers = {kind: subprocess.Popen([sys.executable, os.path.join(root, "tests", "llama", "make.py"), self.path(kind), SHAPE, name])
                        for kind, name in KINDS.items()}

    def take(self, kind):
        if self.writers[kind].wait(timeout=120):
            raise RuntimeError(f"make.py of {kind} failed")
        return self.path(kind)

    def drop(self, kind):
        """What is mapped stays."""
        path = self.path(kind)
        shutil.rmtree(path, ignore_errors=True) if os.path.isdir(path) else os.path.exists(path) and os.remove(path)

    def close(self):
        for w in self.writers.values():
            w.kill()
            w.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Ours:
    """examples/llama with a model, which answers rounds."""

    def __init__(self, path):
        program = os.path.join(os.environ.get("TILEC_BIN", os.path.join(root, "build", "bin")), "llama")
        self.process = subprocess.Popen([program, path, "--rounds", f"--device={measure.dev.spec}", f"--context={max(PROMPTS) + STEPS + 8}"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def round(self, prompt, steps, timeout=60):
        """Seconds to fill in the prompt, and of the steps."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(f"{prompt} {steps}\n".encode())
            self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], timeout)
        line = self.process.stdout.readline() if ready else b""
        if not line:
            self.process.kill()
            raise RuntimeError(f"llama: {self.process.communicate()[1].decode().strip() or f'no answer in {timeout} s'}")
        return tuple(map(float, line.split()))

    def close(self):
        self.process.kill()
        self.process.communicate()


# ---- transformers ----

def peer_model():
    from transformers import LlamaConfig, LlamaForCausalLM
    c = make.SHAPES[SHAPE]
    config = LlamaConfig(hidden_size=c["dim"], intermediate_size=c["hidden"], num_hidden_layers=c["layers"], num_attention_heads=c["heads"],
                         num_key_value_heads=c["kv_heads"], head_dim=c["head_dim"], vocab_size=c["vocabulary"], rope_theta=c["theta"],
                         max_position_embeddings=8192, tie_word_embeddings=c["tied"], attn_implementation="sdpa")
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device(D):
            model = LlamaForCausalLM(config)
    finally:
        torch.set_default_dtype(before)
    return model.to(torch.bfloat16).eval().requires_grad_(False)


def static_cache(model, places):
    from transformers import StaticCache
    try:
        return StaticCache(config=model.config, max_cache_len=places)
    except TypeError:                                    # as it was once called
        return StaticCache(config=model.config, max_batch_size=1, max_cache_len=places, device=D, dtype=torch.bfloat16)


def forward(model, tokens, position, cache):
    return model(input_ids=tokens, position_ids=position[None], cache_position=position, past_key_values=cache, use_cache=True).logits[:, -1]


class Decoder:
    """A step of a model behind CONTEXT tokens, compiled, as a graph; called, it makes STEPS of them."""

    def __init__(self, model, tuned):
        import torch._dynamo as dynamo
        dynamo.reset()
        self.cache = static_cache(model, CONTEXT + STEPS + 8)
        self.token = torch.zeros(1, 1, dtype=torch.long, device=D)
        self.position = torch.full((1,), CONTEXT, device=D)
        step = torch.compile(forward, options={"coordinate_descent_tuning": tuned}, dynamic=False) if not REHEARSE else forward
        with torch.no_grad():
            forward(model, torch.randint(0, model.config.vocab_size, (1, CONTEXT), device=D), torch.arange(CONTEXT, device=D), self.cache)

        def once():
            with torch.no_grad():
                logits = step(model, self.token, self.position, self.cache)
                self.token.copy_(logits.argmax(-1, keepdim=True))
                self.position.add_(1)
        once()                                           # compiles
        self.step = measure.graph_of(once)
        self()

    def __call__(self):
        """Seconds of all steps."""
        self.position.fill_(CONTEXT)
        for layer in getattr(self.cache, "layers", ()):
            if isinstance(getattr(layer, "cumulative_length", None), torch.Tensor):      # the place of the next token, where caches count themselves
                layer.cumulative_length.fill_(CONTEXT)
        sync()
        t = time.perf_counter()
        for _ in range(STEPS):
            self.step()
        sync()
        return time.perf_counter() - t


def prompt_of(model, n, compiled):
    """A function that fills in n tokens, and says how many seconds it took."""
    tokens = torch.randint(0, model.config.vocab_size, (1, n), device=D)
    call = lambda: model(input_ids=tokens, use_cache=False, logits_to_keep=1).logits[:, -1].argmax(-1)
    fn = torch.compile(call, dynamic=False) if compiled and not REHEARSE else call

    def run():
        sync()
        t = time.perf_counter()
        with torch.no_grad():
            fn()
        sync()
        return time.perf_counter() - t
    run()
    run()
    return run


class F8Linear(torch.nn.Module):
    """Weights of 8 bits with a scale for each row, widened where they are multiplied."""

    def __init__(self, linear):
        super().__init__()
        w = linear.weight
        self.scale = (w.abs().amax(1).float() / 448).clamp(min=1e-12)
        self.weight = (w / self.scale[:, None].to(w.dtype)).to(torch.float8_e4m3fn)
        self.scale = self.scale.to(w.dtype)

    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight.to(x.dtype)) * self.scale


class U4Linear(torch.nn.Module):
    """torch's product for weights of 4 bits in groups of 32. The weights are any."""

    def __init__(self, linear):
        super().__init__()
        N, K = linear.weight.shape
        self.weight = torch.ops.aten._convert_weight_to_int4pack(torch.randint(0, 256, (N, K // 2), dtype=torch.uint8, device=D), 8)
        self.scales = torch.full((K // 32, N, 2), 0.002, dtype=torch.bfloat16, device=D)

    def forward(self, x):
        flat = torch.ops.aten._weight_int4pack_mm(x.reshape(-1, x.shape[-1]), self.weight, 32, self.scales)
        return flat.view(*x.shape[:-1], -1)


def replace(module, kind):
    """Its linear layers, one after the other, so that few of both kinds are there at once."""
    for name, child in module.named_children():
        if isinstance(child, torch.nn.Linear):
            setattr(module, name, kind(child))
        else:
            replace(child, kind)


# ---- rows ----

def said(thing, make_, *args):
    """What make_ makes, in seconds that are said; None where it fails, which is a note: peers differ from one version to the next."""
    t = time.perf_counter()
    try:
        made = make_(*args)
    except Exception as e:
        note(f"{thing}: {type(e).__name__}: {str(e).strip().splitlines()[0][:200] if str(e).strip() else ''}")
        return None
    note(f"{thing}: {time.perf_counter() - t:.0f} s")
    return made


def in_turns(runs, seconds=full(3.0, 0.0), least=full(5, 1)):
    """{name: seconds of each round}, all in turns, for so many seconds."""
    found, end = {name: [] for name in runs}, time.perf_counter() + seconds
    while min(map(len, found.values())) < least or time.perf_counter() < end:
        for name, run in runs.items():
            found[name].append(run())
    return found


def model_row(case, kind, tokens, took, bytes_=None, flops=None):
    """Tokens a second of each side; of ours the share of what memory or products would allow. bytes_ of a token, flops of all."""
    sides = {name: data.of_times([t * 1e3 for t in times], tokens, 1e3) for name, times in took.items()}
    each = data.quantiles(took["tilec"])[1] / tokens
    info = dict(name=measure.dev.name, memory_clock_khz=measure.dev.info.memory_clock_khz, memory_bus_bits=measure.dev.info.memory_bus_bits)
    share = roofs.share(info, each, bytes=bytes_ or 0, flops=(flops or 0) / tokens)
    record("llama", case, "tokens/s", sides, [n for n in sides if n != "tilec"], of="a model", weights=kind, **({"of_roof": round(share, 3)} if share else {}),
           ms=round(each * 1e3, 3))


def decode_bytes(kind):
    """Of weights, and of the cache halfway through."""
    c = make.SHAPES[SHAPE]
    return make.read_by_token(SHAPE, KINDS[kind]) + (CONTEXT + STEPS // 2) * c["layers"] * c["kv_heads"] * c["head_dim"] * 2 * 2


def of_ours(kind, files, decoders, prompts):
    """The rows of a kind of weights, beside whoever is there."""
    ours = said(f"llama, {kind}", lambda: Ours(files.take(kind)))
    if not ours:
        failures.append(f"llama {kind}: no model")
        return
    try:
        note(f"llama, {kind}: first round {ours.round(CONTEXT, STEPS, 120)}")
        files.drop(kind)
        case_begins("llama", f"{kind}, decode")
        runs = decoders | {"tilec": lambda: ours.round(CONTEXT, STEPS)[1]}
        model_row(f"{kind}, decode behind {CONTEXT}", kind, STEPS, in_turns(runs), bytes_=decode_bytes(kind))
        for n in PROMPTS:
            case_begins("llama", f"{kind}, prompt of {n}")
            runs = ({"transformers": prompts[n]} if prompts.get(n) else {}) | {"tilec": lambda: ours.round(n, 0)[0]}
            model_row(f"{kind}, prompt of {n}", kind, n, in_turns(runs), flops=2 * n * matrix_numbers())
    finally:
        ours.close()


def matrix_numbers():
    """Of the matrices that each token of a prompt is multiplied by: not the embedding, and not the head, which the last one alone needs."""
    return sum(r * k for g, _, r, k in make.matrices(SHAPE)[1] if r and g not in ("token_embd", "output"))


def faster(runs):
    """The fastest of some functions that say how long they took; None of none."""
    runs = [r for r in runs if r]
    return min(runs, key=lambda r: min(r(), r())) if runs else None


def peers_of_bf16(model):
    """The faster one of two decoders, and of two ways to fill in each prompt."""
    decoders, prompts = {}, {}
    plain = said("transformers, step compiled", Decoder, model, False)
    tuned = said("transformers, step compiled and tuned", Decoder, model, True) if left() > 200 and not REHEARSE else None
    if plain or tuned:
        decoders["transformers"] = faster([plain, tuned])
        note("transformers: " + ", ".join(f"{name} {STEPS / d():.1f} tokens/s" for name, d in (("compiled", plain), ("tuned", tuned)) if d))
    for n in PROMPTS:
        eager = said(f"transformers, prompt of {n}", prompt_of, model, n, False)
        compiled = said(f"transformers, prompt of {n}, compiled", prompt_of, model, n, True) if left() > 170 and not REHEARSE else None
        prompts[n] = faster([eager, compiled])
    return decoders, prompts


def peer_of_bits(kind, layer):
    """A decoder of a model whose linear layers have few bits; None where there is no time."""
    def made():
        model = peer_model()
        replace(model, layer)
        measure.empty_cache()
        return Decoder(model, True)
    return said(f"transformers, {kind}", made) if left() > 80 and not REHEARSE else None


def llama():
    """examples/llama of 8B shapes in bf16, 8-bit floats and 4 bits: prompts and decoding of one text, beside transformers in bf16 and in the same bits."""
    global begun
    if SHARE:
        return
    begun = time.perf_counter()
    files = Files()
    watch = threading.Timer(SECONDS + 60, lambda: (files.close(), os._exit(3)))         # what hangs is ended
    watch.daemon = True
    watch.start()
    try:
        alone = "transformers" not in os.environ.get("PEERS", "transformers")
        model = None if alone else said("transformers, bf16", peer_model)
        decoders, prompts = peers_of_bf16(model) if model is not None else ({}, {})
        of_ours("bf16", files, decoders, prompts)
        for kind, layer in (("u4", U4Linear), ("f8", F8Linear)):
            decoder = peer_of_bits(kind, layer) if model is not None else None
            of_ours(kind, files, decoders | ({f"transformers, {kind}": decoder} if decoder else {}), prompts)
            del decoder
            measure.empty_cache()
    finally:
        watch.cancel()
        files.close()
