"""roles.py BUILD [--seeds A..B] [--print]: random kernels whose warps have roles. One or several teams fill the slots of a ring, by tensor
copies, asynchronous copies that land or are waited for, or stores; others take the slots, all of each or by turns, add up, multiply by
products of warpgroups, or hand their results through a second ring to a team that stores boxes. Programs may form clusters, of which one
copies for all, or hand tiles round. Sizes, depths, numbers of warps and the order of teams are random, as is where a slot is released.

Each kernel goes through check_kernel twice: copies land as late as they may, and as early. The interpreter, after every pass and with teams
that take turns in several orders, and the simulator must agree, and none may report a fault."""
import argparse, os, random, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "diff"))
import made

WIDTH = {"f16": 2, "bf16": 2, "f32": 4, "i32": 4, "i8": 1}


class Kernel:
    def __init__(self, seed):
        self.r = r = random.Random(seed)
        self.product = r.random() < 0.35
        self.dtype = r.choice(("f16", "bf16")) if self.product else r.choice(list(WIDTH))
        self.fill = r.choice(("tma", "tma", "async", "landing", "store")) if not self.product else r.choice(("tma", "async", "store"))
        self.cluster = r.choice((1, 1, 2, 2, 3)) if self.fill == "tma" else 1
        self.multicast = self.cluster > 1 and r.random() < 0.8
        self.slots = r.randint(1, 4)
        self.steps = r.choice((0, 1, 2, 3, 5, self.slots, 2 * self.slots))
        self.groups = r.choice((1, 1, 2)) if self.product else 1
        self.rows = 64 * self.groups if self.product else r.choice((1, 4, 8, 16))
        self.cols = 16 if self.product else r.choice((16, 32, 64, 128)) if WIDTH[self.dtype] > 1 else r.choice((32, 64))
        self.wide = r.choice((8, 24, 64))                    # columns of a product
        self.clusters = r.randint(1, 2)
        self.storer = not self.product and r.random() < 0.3
        self.round = self.cluster > 1 and not self.product and not self.storer and r.random() < 0.4
        self.takers = 1 if self.product or self.round else r.randint(1, 3)
        self.by_turns = self.takers > 1 and not self.storer and self.slots % self.takers == 0   # each has slots of its own
        self.fillers = 1 if self.fill == "tma" else r.randint(1, 2)
        self.early = r.random() < 0.5                        # release before the value is used
        self.out = "i32" if self.dtype in ("i32", "i8") else "f32"

    # ---- what all teams see ----

    def head(self):
        boxes = self.clusters * (1 if self.multicast else self.cluster) * self.steps
        rows = max(1, boxes * self.rows - self.r.choice((0, 0, 3)))
        programs = self.clusters * self.cluster
        yield f"// grid {programs}"
        if self.fill == "tma":
            yield f"// tensor {self.dtype} {rows} {self.cols}"
        else:
            yield f"// buffer {self.dtype} {rows * self.cols}"
        if self.product:
            yield f"// buffer {self.dtype} {self.cols * self.wide}"
        cells = programs * (self.rows * self.wide if self.product else max(1, self.steps) * self.rows * self.cols)
        yield f"// tensor f32 {max(1, programs * self.steps * self.rows)} {self.cols}" if self.storer else f"// buffer {self.out} {cells}"
        yield f"// int {self.steps}"
        yield "// tolerance 1e-5"
        self.limit = rows

    def params(self):
        yield f"x: tensor<{self.dtype}, 2>" if self.fill == "tma" else f"x: *{self.dtype} multiple_of(16)"
        if self.product:
            yield f"w: *{self.dtype} multiple_of(16)"
        yield "y: tensor<f32, 2>" if self.storer else f"y: *{self.out}"
        yield "n: i32"

    def body(self):
        readers = (1 if self.by_turns else self.takers) * (self.cluster if self.multicast else 1)
        yield f"let s = shared({self.dtype}, [{self.rows}, {self.cols}], count={self.slots});"
        yield f"let r = ring({self.slots}, readers={readers}, writers={self.fillers});"
        yield f"let first = program_id(0){f' / {self.cluster}' if self.multicast else ''} * n;"
        if self.product:
            yield f"let b = shared({self.dtype}, [{self.cols}, {self.wide}]);"
        if self.storer:
            self.outs = self.r.randint(1, 2)
            yield f"let o = shared(f32, [{self.rows}, {self.cols}], count={self.outs});"
            yield f"let q = ring({self.outs}, writers=1, readers=1);"
        if self.round:
            yield f"let h = shared({self.dtype}, [{self.rows}, {self.cols}]);"
            yield "let given = mbarrier(1);"
            yield "let free = mbarrier(1);"
        teams = [self.filler(i) for i in range(self.fillers)] + [self.taker(i) for i in range(self.takers)]
        if self.storer:
            teams.append(self.store_team())
        self.r.shuffle(teams)
        yield "specialize {"
        for team in teams:
            yield from ("  " + line for line in team)
        yield "}"

    # ---- teams ----

    def team(self, warps, lines):
        return [f"warps({warps}) {{"] + ["  " + line for line in lines] + ["}"]

    def filler(self, i):
        part = self.rows // self.fillers if self.fillers > 1 and self.rows % 2 == 0 else self.rows
        mine = range(self.rows)[i * part:(i + 1) * part]
        if self.fillers > 1 and part == self.rows:           # nothing to share out: one has it all, the other only arrives
            mine = mine if i == 0 else range(0)
        view = "s[t.slot]" if len(mine) == self.rows else f"s[t.slot][{mine.start}:{mine.stop}, :]" if mine else ""
        lines = ["var t = Turn();", "for k in range(n) {"]
        if self.fill == "tma":
            lines += ["  let full = acquire(r, t, bytes=bytes(s));"]
            at = f"((first + k) * {self.rows}, 0)"
            if self.multicast:
                lines += [f"  if k % {self.cluster} == cluster_rank() {{ tma_load(s[t.slot], x, full, {at}, multicast=0); }}"]
            else:
                lines += [f"  tma_load(s[t.slot], x, full, {at});"]
            return self.team(self.r.choice((1, 4)) if not self.product else 4, lines + ["  t = following(r, t);", "}"])
        lines += ["  acquire(r, t);"]
        if mine:
            lines += [f"  let row = (first + k) * {self.rows} + {mine.start} + arange(0, {len(mine)});",
                      f"  let p = x + row[:, None] * {self.cols} + arange(0, {self.cols})[None, :];", f"  let inside = (row < {self.limit})[:, None];"]
            if self.fill == "store":
                lines += [f"  shared_store({view}, load(p, mask=inside));"]
            else:
                lines += [f"  async_copy({view}, p, mask=inside);"]
                lines += ["  async_wait_all();"] if self.fill == "async" else []
        lines += ["  commit(r, t, copies=true);" if self.fill == "landing" and mine else "  commit(r, t);", "  t = following(r, t);", "}"]
        if self.fill == "landing":                           # what landed with an arrival is waited for by others
            lines += ["async_wait_all();"]
        return self.team(4 if self.product else self.r.choice((1, 2, 4)), lines)

    def release(self):
        if not self.multicast:
            return ["release(r, t);"]
        return [f"for p in static_range({self.cluster}) {{ mbarrier_arrive(remote(r.empty[t.slot], p)); }}"]

    def taker(self, i):
        if self.product:
            return self.multiplier()
        step = ["let raw = shared_load(s[t.slot]);"] + self.release() * self.early
        step += self.hand_round() if self.round else []
        step += [f"let v = {self.out}({'other' if self.round else 'raw'}) * 2 + {self.out}(k + {i});"]
        if self.storer:
            step += ["acquire(q, u);", "shared_store(o[u.slot], f32(v));", "commit(q, u);", "u = following(q, u);"] if i == 0 else []
        else:
            where = f"y + ((program_id(0) * n + k) * {self.rows} + arange(0, {self.rows}))[:, None] * {self.cols} + arange(0, {self.cols})[None, :]"
            step += [f"store({where}, v);"] if i == 0 or self.by_turns else [f"assert(max(max(v, axis=1), axis=0) >= {self.out}(-1e4));"]
        step += [] if self.early else self.release()
        step = ["await(r, t);"] + step
        if self.by_turns:
            step = [f"if k % {self.takers} == {i} {{"] + ["  " + line for line in step] + ["}"]
        u = ["var u = Turn();"] if self.storer and i == 0 else []
        return self.team(self.r.choice((1, 2, 4)),
                         ["var t = Turn();", *u, "for k in range(n) {", *("  " + line for line in step), "  t = following(r, t);", "}"])

    def hand_round(self):
        return [f"let next = (cluster_rank() + 1) % {self.cluster};", "mbarrier_wait(free, (k + 1) % 2);", "shared_store(remote(h, next), raw);",
                "mbarrier_arrive(remote(given, next));", "mbarrier_wait(given, k % 2);", "let other = shared_load(h);",
                f"mbarrier_arrive(remote(free, (cluster_rank() + {self.cluster - 1}) % {self.cluster}));"]

    def multiplier(self):
        behind = self.r.randint(0, 1) if self.slots > 1 else 0
        last = "preceding(r, t)" if behind else "t"
        release = [line.replace("release(r, t)", f"release(r, {last})").replace("t.slot", f"{last}.slot") for line in self.release()]
        release = [f"if k >= {behind} {{ {' '.join(release)} }}"]
        at = f"y + program_id(0) * {self.rows * self.wide} + arange(0, {self.rows})[:, None] * {self.wide} + arange(0, {self.wide})[None, :]"
        return self.team(4 * self.groups, [
            f"shared_store(b, load(w + arange(0, {self.cols})[:, None] * {self.wide} + arange(0, {self.wide})[None, :]));",
            "var t = Turn();", f"var acc = pending(zeros([{self.rows}, {self.wide}], f32));", "for k in range(n) {", "  await(r, t);",
            "  acc = wgmma(s[t.slot], b, acc);", f"  wgmma_wait(pending={behind});", *("  " + line for line in release), "  t = following(r, t);", "}",
            f"store({at}, wgmma_wait(acc));"])

    def store_team(self):
        wait = self.r.choice(("tma_wait(0, read=true);", "tma_wait(0);"))
        return self.team(1, ["var u = Turn();", "for k in range(n) {", "  await(q, u);",
                             f"  tma_store(y, o[u.slot], ((program_id(0) * n + k) * {self.rows}, 0));", "  tma_commit();", f"  {wait}",
                             "  release(q, u);", "  u = following(q, u);", "}", "tma_wait(0);"])

    def text(self):
        head = list(self.head())
        cluster = f" cluster({self.cluster})" if self.cluster > 1 else ""
        return "\n".join([*head, f"kernel roles({', '.join(self.params())}){cluster} {{", *("  " + line for line in self.body()), "}", ""])


a = argparse.ArgumentParser()
a.add_argument("build")
a.add_argument("--seeds", default="0..40")
a.add_argument("--print", action="store_true")
o = a.parse_args()
lo, hi = map(int, o.seeds.split(".."))
texts = [("tile", f"// seed {seed}\n" + Kernel(seed).text()) for seed in range(lo, hi)]
if o.print:
    print(*(t for _, t in texts), sep="\n")
    sys.exit()
sys.exit(made.check(o.build, texts, "--passes", "--way=sm_90a:1") | made.check(o.build, texts, "--early", "--way=sm_90a:1"))
