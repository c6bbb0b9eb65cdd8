"""Shrinking: while `fails(kernel)` stays true, make the kernel smaller: statements go, blocks take the place of what holds
them, expressions become one of their parts or a constant, extents, warps and programs become fewer."""
import copy

from gen_tree import E, FLOATS


def blocks(kernel):
    """Every list of statements, outermost first."""
    todo = [kernel.body]
    while todo:
        b = todo.pop(0)
        yield b
        for s in b:
            todo += s.blocks


def places(kernel):
    """Every (list of expressions, index)."""
    todo = [s.kids for b in blocks(kernel) for s in b]
    while todo:
        kids = todo.pop(0)
        for i in range(len(kids)):
            yield kids, i
            todo.append(kids[i].kids)


def plain(e, shape):
    """The dullest value of e's type."""
    one = {"i1": "true"}.get(e.dt, f"{e.dt}(1.0)" if e.dt in FLOATS else f"{e.dt}(1)")
    return E(e.dt, e.shape, f"full([{', '.join(shape)}], {one}, {e.dt})" if shape else one, known=e.known)


def smaller_statements(kernel):
    for n, b in enumerate(list(blocks(kernel))):
        for i in range(len(b)):
            for way in range(1 + len(b[i].blocks)):
                k = copy.deepcopy(kernel)
                mine = list(blocks(k))[n]
                mine[i:i + 1] = [] if way == 0 else mine[i].blocks[way - 1]
                yield k


def smaller_expressions(kernel):
    for n, (kids, i) in enumerate(list(places(kernel))):
        e = kids[i]
        others = [plain(e, e.shape)] if not e.text.startswith("full(") and e.text != plain(e, e.shape).text else []
        others = [x for x in e.kids if x.dt == e.dt and x.shape == e.shape] + others
        for x in others:
            k = copy.deepcopy(kernel)
            list(places(k))[n][0][i] = copy.deepcopy(x)
            yield k


def smaller_numbers(kernel):
    for d, v in kernel.dims.items():
        for to in (1, 2, 4, 8, 16, v // 2):
            if 0 < to < v:
                k = copy.deepcopy(kernel)
                k.dims[d] = to
                yield k
    for field, least in (("warps", 1), ("warps", kernel.warps // 2), ("grid", 1)):
        if 0 < least < getattr(kernel, field):
            k = copy.deepcopy(kernel)
            setattr(k, field, least)
            yield k
    for i, p in enumerate(kernel.params):
        if p.promise and not p.needed:
            k = copy.deepcopy(kernel)
            k.params[i].promise = 0
            yield k
        if p.name not in ("n", "m", "t") and not any(p.name in str(s) for b in blocks(kernel) for st in b for s in st.lines(0)):
            k = copy.deepcopy(kernel)
            del k.params[i]
            yield k


def shrink(kernel, fails, tries=400):
    """The smallest kernel found that still fails."""
    progress = True
    while progress and tries > 0:
        progress = False
        for way in (smaller_statements, smaller_numbers, smaller_expressions):
            again = True
            while again and tries > 0:
                again = False
                for k in way(kernel):
                    tries -= 1
                    if tries <= 0:
                        break
                    if fails(k):
                        kernel, again, progress = k, True, True
                        break
    return kernel
