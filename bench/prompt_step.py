"""The products of a prompt's piece in examples/llama, Llama 3's 8B shape, matrix by matrix: M tokens by weights of few bits, unpacked on the way to the
tensor cores (product_pairs), in several tiles; widened to f16 first, and then multiplied (widen_grouped, product_many); in f16 to begin with; and cuBLAS in
f16, which makes gates and what they are for without putting them together; with 64 tokens also the kernel that is taken for these (product_grouped). In TFLOP/s; weights come from memory, as in a step."""
import torch
from measure import D, case_begins, check, data, empty_cache, full, graph_of, kernel, kernels_of, rate, record, times

DIM, HIDDEN, QKV = full((4096, 14336, 6144), (256, 256, 192))
SHAPES = {"qkv": (QKV, DIM), "o": (DIM, DIM), "gate_up": (HIDDEN, DIM), "down": (DIM, HIDDEN)}      # of gate_up half the rows
TOKENS = full((64, 256, 512, 2048, 4096), (64,))
FILE, PAIRS_FILE = "llama/kernels.tile", "llama/warpgroups.tile"
FORMS = {"u4": (4, torch.uint8, dict(W="u4", GROUP=32, MIN="true")), "i8": (8, torch.uint16, dict(W="i8", GROUP=32, MIN="false")),
         "i8 of 16": (8, torch.uint16, dict(W="i8", GROUP=16, MIN="false"))}
TILES = [dict(BM=64), dict(BM=128), dict(BM=256)]
flag = lambda b: str(b).lower()


class Weights:
    """rows x K numbers of a form, of GATED products N = rows / 2 of gates and as many they are for."""

    def __init__(self, form, name):
        bits, pair, what = FORMS[form]
        self.gated, (self.N, self.K) = name == "gate_up", SHAPES[name]
        self.add = name in ("o", "down")
        rows = 2 * self.N if self.gated else self.N
        random = lambda n: torch.randint(-128, 128, (rows, n), device=D, dtype=torch.int8)
        self.w = random(self.K * bits // 8)
        factors = torch.full((rows, self.K // what["GROUP"]), 0.01 if bits == 4 else 0.001, device=D, dtype=torch.float16)
        self.scales, self.mins, self.pair = factors, -factors if bits == 4 else factors, pair
        self.wide = torch.zeros(rows, self.K, device=D, dtype=torch.float16)
        self.what = what
        self.widen()()

    def widen(self):
        k = kernel(FILE, "widen_grouped", **self.what)
        return k.bind(None, self.w.view(torch.uint32), self.scales, self.mins, self.wide, self.wide.shape[0], self.K, pdl="auto")

    def outputs(self, M):
        return torch.zeros(M, self.N, device=D), torch.zeros(M, self.N, device=D, dtype=torch.float16)

    def many(self, h, y, a):
        up = self.wide[self.N:] if self.gated else None
        return kernel(FILE, "product_many", ADD=flag(self.add), GATED=flag(self.gated)).bind(None, h, self.wide, up, None, y, a, h.shape[0], self.N, self.K, self.N, pdl="auto")

    def few(self, h):
        rows = self.wide.shape[0]
        y = torch.zeros(h.shape[0], rows, device=D)
        return kernel(FILE, "product_grouped", **self.what).bind(None, h, self.w.view(torch.uint32), self.scales, self.mins, y, h.shape[0], rows, self.K, rows, 0, pdl="auto")

    def pairs(self, h, y, a, **tile):
        parts = lambda x: (x, x[self.N:] if self.gated else None)
        words = [x.view(torch.uint64) for x in (self.scales, self.mins)]
        k = kernel(PAIRS_FILE, "product_pairs", ADD=flag(self.add), GATED=flag(self.gated), P="u8" if self.pair == torch.uint8 else "u16", **self.what, **tile)
        return k.bind(None, h, *parts(self.w.view(self.pair)), *parts(words[0]), *parts(words[1]), y, a, h.shape[0], self.N, self.K // 128, self.N, pdl="auto")


def row(form, name, w, M):
    case = f"{form} {name}, {M}"
    case_begins("prompt_step", case)
    h = torch.randn(M, w.K, device=D, dtype=torch.float32).to(torch.float16) / 8
    y, a = w.outputs(M)
    work = 2.0 * M * w.wide.numel()
    both = [w.widen(), w.many(h, y, a)]
    sides = {"cuBLAS": graph_of(lambda: torch.mm(h, w.wide.T)), "in f16": graph_of(both[1]), "widened": graph_of(lambda: [call() for call in both])}
    if M <= 64:
        sides["of few tokens"] = graph_of(w.few(h))
    peers = list(sides)
    both[1]()
    want = (a if w.gated else y).clone()
    tiles, calls = {}, {}
    for tile in TILES[:2 if w.gated else 3]:
        y.zero_()
        call = w.pairs(h, y, a, **tile)
        if w.add:
            both[1]()
            want = y.clone()
            y.zero_()
        call()
        check(f"prompt_step {case} {tile}", a if w.gated else y, want, 2e-3)
        calls[str(tuple(tile.values()))], tiles[str(tuple(tile.values()))] = call, times(graph_of(call), 5, 20)
    for tile, t in tiles.items():
        print(f"prompt_step {case} {tile}: {work / max(t[1], 1e-9) * 1e-9:.1f} TFLOP/s", flush=True)
    best = min(tiles, key=lambda tile: tiles[tile][1])
    of = {side: rate(times(run, 5, 20), work, "TFLOP/s") for side, run in sides.items()}
    record("prompt_step", case, "TFLOP/s", {**of, "tilec": rate(tiles[best], work, "TFLOP/s", best)}, peers, work=work, kernels=kernels_of([calls[best]]))


def prompt_step():
    for form in FORMS:
        for name in SHAPES:
            w = Weights(form, name)
            for M in (TOKENS if form == "u4" else full(TOKENS[2:3], TOKENS)):
                row(form, name, w, M)
            del w
            empty_cache()
