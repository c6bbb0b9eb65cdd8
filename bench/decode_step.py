"""The launches of a decoded token of examples/llama, Llama 3's 8B shape, kind by kind: each in a chain of its own, with weights of several layers in turn,
which come from memory, as dependents in a graph; and all launches of a layer in order. In microseconds of a launch; a product's also in TB/s of its
weights and scales. The figure to compare with is that of `layer`: what its launches take alone does not add up to it, as they overlap."""
import torch
from measure import D, case_begins, data, empty_cache, full, graph_of, kernel, kernels_of, record, times

DIM, HIDDEN, HEADS, KV, HEAD, VOCABULARY, PAGE, SPLITS = full((4096, 14336, 32, 8, 128, 128256, 16, 16), (256, 512, 4, 2, 64, 512, 16, 4))
LAYERS, PLACES = full(6, 1), full(522, 20)
FILE = "llama/kernels.tile"
# What is measured of all layers in one launch.
ALL_LAYERS = full({"f16": [{}, dict(SLOTS=8)], "f8": [{}, dict(SLOTS=8)], "u4": [{}, dict(SLOTS=6)]}, {form: [dict(SLOTS=3)] for form in ("f16", "f8", "u4")})
QKV = (HEADS + 2 * KV) * HEAD


def zeros(*shape, dtype=torch.float32):
    return torch.zeros(*shape, device=D, dtype=dtype)


class Matrix:
    """Weights of a form: f16, f8 or u4."""

    def __init__(self, form, rows, cols):
        self.form, self.rows, self.cols = form, rows, cols
        self.defines = dict(W="u32", Q="u4", S="f16", GROUP=32, MIN="true") if form == "u4" else dict(W="f8e4m3" if form == "f8" else "f16")
        if form == "u4":
            self.w = torch.randint(-2**31, 2**31, (rows, cols // 8), device=D, dtype=torch.int64).to(torch.int32).view(torch.uint32)
            self.more = [torch.full((rows, cols // 32), x, device=D, dtype=torch.float16) for x in (0.01, -0.08)]
        else:
            w = torch.randn(rows, cols, device=D, dtype=torch.float16) / cols**0.5
            self.w = w if form == "f16" else w.to(torch.float8_e4m3fn)
            self.more = [] if form == "f16" else [torch.ones(rows, device=D)]
        self.bytes = self.w.nbytes + sum(x.nbytes for x in self.more)


class Step:
    """What launches work on, and the launches. tune: settings of matvec_runs, by which dense weights are multiplied, too, if there are some."""

    def __init__(self, **tune):
        self.tune = tune
        half = torch.float16
        self.x, self.gain, self.h, self.qkv, self.y = zeros(DIM), torch.ones(DIM, device=D), zeros(DIM, dtype=half), zeros(QKV), zeros(VOCABULARY)
        self.q, self.a = zeros(HEADS * HEAD, dtype=half), zeros(max(HIDDEN, HEADS * HEAD), dtype=half)
        pages = PLACES // PAGE + 2
        self.cos, self.sin = (zeros(pages * PAGE, HEAD // 2) for _ in range(2))
        self.position, self.table = torch.full((1,), PLACES, device=D, dtype=torch.int32), torch.arange(pages, device=D, dtype=torch.int32)
        self.caches = [[zeros(pages, PAGE, KV, HEAD, dtype=half) for _ in range(2)] for _ in range(LAYERS)]
        self.part, self.lse, self.ended = zeros(HEADS, SPLITS, HEAD), zeros(HEADS, SPLITS), zeros(KV, dtype=torch.int32)

    def norm(self, layer, m=None):
        return kernel(FILE, "norm", BLOCK=4096).bind(None, self.x, self.gain, self.h, 1, DIM, 1e-5, pdl="auto")

    def product(self, m, h, y, norm=False, gates=False, add=False):
        rows, flag = m.rows // 2 if gates else m.rows, lambda b: str(b).lower()
        what = dict(NORM=flag(norm), GATED=flag(gates)) | m.defines
        scales, mins = (m.more + [None, None])[:2]
        if m.form != "u4" and not self.tune:
            return kernel(FILE, "matvec_dense", WIDE="true", **what).bind(None, h, self.x, self.gain, m.w, scales, y, self.a, rows, m.cols, int(add), 1e-5, pdl="auto")
        what |= self.tune
        return kernel(FILE, "matvec_runs", **what).bind(None, h, self.x, self.gain, m.w, scales, mins, y, self.a, rows, m.cols, int(add), 1e-5, pdl="auto")

    def attend(self, layer, o=None):
        size = 0 if o is None else min(o.w.nbytes, 32 << 20)
        return kernel(FILE, "attend_one", HEAD=HEAD).bind(None, self.qkv, self.cos, self.sin, *self.caches[layer],
                                                          self.position, self.table, self.part, self.lse, self.ended, self.a, HEADS, KV, HEAD, HEAD**-0.5, 1,
                                                          HEAD // 2, SPLITS, (o.w if size else self.q).view(torch.uint8), size, pdl="auto")

    def layers(self, layers, **tune):
        """All layers in one launch; layers: of each its matrices by name."""
        rows = [[x for m in layer.values() for x in (m.w, *(m.more + [None, None])[:2])] + [self.gain, self.gain, *cache] for layer, cache in zip(layers, self.caches)]
        self.places = torch.tensor([[0 if x is None else x.data_ptr() for x in row] for row in rows], device=D, dtype=torch.int64)
        self.count = zeros(1, dtype=torch.int32)
        return kernel("llama/layers.tile", "layers_one", HEAD=HEAD, **layers[0]["qkv"].defines, **tune).bind(
            None, self.x, self.qkv, self.q, self.a, self.places, self.cos, self.sin, self.position, self.table, self.part, self.lse, self.ended, self.count,
            LAYERS, DIM, HIDDEN, HEADS, KV, HEAD, HEAD**-0.5, 1, HEAD // 2, SPLITS, 1e-5, pdl="auto")

    def layer(self, i, qkv, o, gate_up, down):
        return [self.product(qkv, self.h, self.qkv, norm=True), self.attend(i, o), self.product(o, self.a, self.x, add=True),
                self.product(gate_up, self.h, self.y, norm=True, gates=True), self.product(down, self.a, self.x, add=True)]


def timed(case, calls, bytes_=0):
    """A row of a chain of such launches."""
    kernels = kernels_of(calls)
    case_begins("decode_step", case)
    run = graph_of(lambda: [call() for call in calls])
    low, mid, high = (t * 1e3 / LAYERS for t in times(run))
    record("decode_step", case, "us", {"tilec": data.of_times((low, mid, high))}, better="less", kernels=kernels, **({"tb_s": round(bytes_ / mid / 1e6, 3)} if bytes_ else {}))


def decode_step():
    shapes = {"qkv": (QKV, DIM), "o": (DIM, HEADS * HEAD), "gate_up": (2 * HIDDEN, DIM), "down": (DIM, HIDDEN)}
    s = Step()
    for name in ("norm", "attend"):
        timed(name, [getattr(s, name)(i) for i in range(LAYERS)])
    for form in ("f16", "f8", "u4"):
        layers = [{name: Matrix(form, *shape) for name, shape in shapes.items()} for _ in range(LAYERS)]
        of = {"qkv": lambda m: s.product(m, s.h, s.qkv, norm=True), "o": lambda m: s.product(m, s.a, s.x, add=True),
              "gate_up": lambda m: s.product(m, s.h, s.y, norm=True, gates=True), "down": lambda m: s.product(m, s.a, s.x, add=True)}
        for name, launch in of.items():
            timed(f"{form} {name}", [launch(layer[name]) for layer in layers], layers[0][name].bytes)
        all_bytes = sum(m.bytes for m in layers[0].values())
        timed(f"{form} layer", [call for i, layer in enumerate(layers) for call in s.layer(i, **layer)], all_bytes)
        for tune in full([dict(AT_ONCE=n, EACH=each, warps=w) for n in (2, 4) for each, w in ((2, 8), (3, 8), (4, 4), (6, 4))], [dict(AT_ONCE=4)]):
            other = Step(**tune)
            timed(f"{form} layer {tune}", [call for i, layer in enumerate(layers) for call in other.layer(i, **layer)], all_bytes)
        for tune in ALL_LAYERS[form]:
            timed(f"{form} layers in one launch" + (f" {tune}" if tune else ""), [s.layers(layers, **tune)], all_bytes)
        del layers
        empty_cache()
