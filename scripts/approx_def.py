"""approx_def.py MODEL.json [FILE]: what scripts/approx_fit.py found as runtime/approx.def, the tables of runtime/approx.c (or FILE).

Functions that the model lacks get no rows: runtime/approx.c does not know them, and all that uses it goes on computing them exactly."""
import json
import os
import sys

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FUNCTIONS = {"rcp": ["127"], "rsqrt": ["127", "128"], "sqrt": ["127", "128"], "ex2": ["127"], "lg2": ["127"], "sin": ["quadrant"],
             "cos": ["quadrant"], "tanh": ["binades"]}
HEAD = """// The tables of approx.c, found by scripts/approx_fit.py and written by scripts/approx_def.py.
// ROWS(function, table, {C0, C1, C2}, ...), PARTS(function, ...), UNIT(function, the fields of Unit that are not 0)
"""


def place_kept(name, m):
    """The exponent of the last place that a result may have."""
    own = m["unit"] + m["unit_exponent"]
    return own + m["below"]["place"] if name == "lg2" else max(own, m["grid"]) if "grid" in m else own


def unit(name, m):
    q, argument = m["squarer"], m.get("argument", m)
    fields = [f".m = {m['m']}, .n = {m['n']}",
              f".squarer = {{SQUARE_{q['kind']}, {q['cut']}, {q['shift']}, {int(q['centred'])}, {q['add']}}}",
              f".c0 = {m['c0_shift']}, .c1 = {m['c1_shift']}, .c2 = {m['c2_shift']}, .bias = {m['bias']}",
              f".place = {m['unit'] + m['unit_exponent']}, .grid = {place_kept(name, m)}"]
    if m.get("rounded"):
        fields.append(".rounded = true")
    if "how" in argument:
        fields.append(f".how = FIX_{argument['how']}, .places = {m.get('places', 23)}")
    if "ones" in (argument.get("complement"), m.get("below", {}).get("complement"), m.get("back")):
        fields.append(".ones = true")
    for table, y in m.get("apart", {}).items():
        at = FUNCTIONS[name].index(table)
        fields.append(f".apart[{at}] = true, .first[{at}] = {y:#x}")
    if "parts" in m:
        fields.append(f".binade = {m['binade']}, .binades = {len(m['parts'])}, .parts = parts_{name.upper()}")
    fields.append(".rows = {" + ", ".join(f"rows_{name.upper()}_{i}" for i in range(len(FUNCTIONS[name]))) + "}")
    return f"UNIT({name.upper()}, " + ",\n  ".join(fields) + ")\n"


def text(models):
    out = [HEAD]
    for name, tables in FUNCTIONS.items():
        if not (m := models.get(name)):
            continue
        for i, table in enumerate(tables):
            rows = ["{%d, %d, %d}" % tuple(r or (0, 0, 0)) for r in m["tables"][table]]
            lines = [", ".join(rows[k:k + 4]) for k in range(0, len(rows), 4)]
            out.append(f"ROWS({name.upper()}, {i},\n  " + ",\n  ".join(lines) + ")\n")
        if "parts" in m:
            out.append(f"PARTS({name.upper()}, {', '.join(map(str, m['parts']))})\n")
        out.append(unit(name, m))
    return "".join(out)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    models = json.load(open(sys.argv[1]))
    with open(sys.argv[2] if len(sys.argv) == 3 else os.path.join(root, "runtime", "approx.def"), "w") as f:
        f.write(text(models))
