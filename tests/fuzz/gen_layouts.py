"""Linear layouts of register tiles, drawn: bits of registers, lanes and warps in any order, with copies."""


def log2(n):
    return (n - 1).bit_length()


def drawn_columns(r, shape, warps, sums):
    """Elements that the bits of registers, lanes and warps stand for: every element once or more, its bits anywhere. Not `sums`: each bit
    is one of an index along an axis, or none, as folds need it."""
    columns = [tuple(1 << k if d == at else 0 for d in range(len(shape))) for at, e in enumerate(shape) for k in range(log2(e))]
    add = lambda a, b: tuple(x ^ y for x, y in zip(a, b))
    for _ in range(r.choice([0, 0, 2, 5]) if sums and len(columns) > 1 else 0):     # an invertible map: sums of columns
        i, j = r.sample(range(len(columns)), 2)
        columns[i] = add(columns[i], columns[j])
    r.shuffle(columns)
    nothing, used, ways = (0,) * len(shape), 0, {"lane": [], "warp": []}
    slots = ["lane"] * 5 + ["warp"] * log2(warps)
    r.shuffle(slots)
    for way in slots:
        kind = r.randrange(10)
        if kind == 0 or used == len(columns):
            ways[way].append(nothing)
        elif kind == 1 and used > 1 and sums:
            ways[way].append(add(columns[r.randrange(used)], columns[r.randrange(used)]))
        else:
            ways[way].append(columns[used])
            used += 1
    reg = columns[used:]
    if r.random() < 0.4:                                                    # copies in registers
        reg.insert(r.randrange(len(reg) + 1), r.choice(columns + [nothing] if sums else [nothing]))
    return {"reg": reg, **ways}


def asked_for(columns):
    """As the language says it."""
    return "linear(" + ", ".join(f"{way}={[list(c) for c in cols]}" for way, cols in columns.items() if cols) + ")"


def written(columns):
    """As .tir text says it."""
    return "; ".join(way + "".join(f" ({','.join(map(str, c))})" for c in cols) for way, cols in columns.items() if cols)
