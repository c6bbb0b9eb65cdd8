"""The table of mutants, tests/mutation/*.txt, and the results on record. A row of the table is

    ID FILE
      what the mistake is
    - text that is found exactly once in FILE
    + what stands there instead
    = equivalent: why no test can tell

`-` lines that follow each other are one text of several lines, whose indentation is of no account; so are `+` lines. A row may have
several such pairs. `=` is for a row that need not be killed: `equivalent` (the compiler means the same), or `by contract` (what differs
is promised nowhere). Rows have an empty line between them; `#` begins a comment."""
import glob, hashlib, json, os, re

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(here))
RESULTS = os.path.join(here, "results.tsv")
COLUMNS = ("id", "result", "by", "seconds", "commit", "text")


class Row:
    def __init__(self, where, name, path):
        self.where, self.name, self.path = where, name, path
        self.says, self.excuse, self.edits = [], "", []      # edits: [(lines before, lines after)]

    def text(self):
        """A name for the change itself: a result is the row's only as long as the row says the same."""
        return hashlib.sha256(json.dumps([self.path, self.edits]).encode()).hexdigest()[:8]

    def apply(self, source):
        """(the changed source, None), or (None, what is wrong)."""
        for before, after in self.edits:
            found = list(re.finditer(r"\n[ \t]*".join(re.escape(line) for line in before), source))
            if len(found) != 1:
                return None, f"found {len(found)} times in {self.path}: {before[0]}"
            source = source[:found[0].start()] + "\n".join(after) + source[found[0].end():]
        return source, None

    def wrong(self):
        """What is wrong with the row, None if nothing is."""
        if not self.says:
            return "does not say what the mistake is"
        if not self.edits or any(before == after for before, after in self.edits):
            return "changes nothing"
        if self.excuse and not re.match(r"(equivalent|by contract): \w", self.excuse):
            return "an excuse begins with `equivalent:` or `by contract:`"
        if not os.path.isfile(os.path.join(root, self.path)):
            return f"there is no {self.path}"
        return self.apply(open(os.path.join(root, self.path)).read())[1]


def read_file(path):
    """(rows, lines that are not of a row)."""
    rows, bad, row, last = [], [], None, ""
    for number, line in enumerate(open(path), 1):
        where, kind, rest = f"{os.path.relpath(path, root)}:{number}", line[:2], line[2:].strip()
        if line.startswith("#"):
            continue
        if not line.strip():
            row = None
        elif not row and (m := re.fullmatch(r"([\w.]+) ([\w./]+)\n", line)):
            row = Row(where, *m.groups())
            rows.append(row)
        elif row and kind == "- ":
            if last != "- ":
                row.edits.append(([], []))
            row.edits[-1][0].append(rest)
        elif row and kind == "+ " and row.edits:
            row.edits[-1][1].append(rest)
        elif row and kind == "= ":
            row.excuse += (" " if row.excuse else "") + rest
        elif row and kind == "  ":
            row.says.append(rest)
        else:
            bad.append(f"{where}: not a line of a row: {line.strip()}")
        last = kind
    return rows, bad


def read():
    """(all rows, all that is wrong with them)."""
    files = [read_file(path) for path in sorted(glob.glob(f"{here}/*.txt"))]
    rows, bad = [r for f in files for r in f[0]], [b for f in files for b in f[1]]
    seen = {}
    for row in rows:
        wrong = f"is also at {seen[row.name].where}" if row.name in seen else row.wrong()
        seen[row.name] = row
        if wrong:
            bad.append(f"{row.where}: {row.name}: {wrong}")
    return rows, bad


def results():
    """{id: {column: text}}, as recorded."""
    if not os.path.exists(RESULTS):
        return {}
    return {line[0]: dict(zip(COLUMNS, line)) for line in (l.rstrip("\n").split("\t") for l in list(open(RESULTS))[1:])}


def record(found, rows):
    """Write the results, in the order of the table."""
    with open(RESULTS + ".new", "w") as f:
        f.write("\t".join(COLUMNS) + "\n")
        f.writelines("\t".join(found[row.name][c] for c in COLUMNS) + "\n" for row in rows if row.name in found)
    os.replace(RESULTS + ".new", RESULTS)


def check():
    """All that is wrong with the table, or between it and the results."""
    rows, bad = read()
    found = results()
    for row in rows:
        r = found.get(row.name)
        if r and r["text"] == row.text() and (r["result"] == "killed") == bool(row.excuse):
            wrong = "was killed, and has an excuse" if row.excuse else "survived, and nothing says why it may"
            bad.append(f"{row.where}: {row.name}: {wrong}")
    names = {row.name for row in rows}
    bad += [f"{os.path.relpath(RESULTS, root)}: {name} is not in the table" for name in found if name not in names]
    return rows, bad
