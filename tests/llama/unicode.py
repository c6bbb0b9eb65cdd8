"""unicode.py [FILE]: write examples/llama/unicode.def from this Python's tables of Unicode; with --check, say whether it is as they say."""
import sys, unicodedata


def ranges(category):
    inside = [c for c in range(0x110000) if unicodedata.category(chr(c))[0] == category]
    firsts = [c for c, before in zip(inside, [-2] + inside) if c != before + 1]
    lasts = [c for c, after in zip(inside, inside[1:] + [-2]) if c + 1 != after]
    return list(zip(firsts, lasts))


def rows(macro, category):
    lines, line = [], ""
    for first, last in ranges(category):
        entry = f"{macro}({first:#x}, {last:#x}) "
        if len(line) + len(entry) > 138:
            lines.append(line.rstrip())
            line = ""
        line += entry
    return "\n".join([f"#ifdef {macro}", *lines, line.rstrip(), "#endif\n"])


text = (f"/* LETTERS(first, last), NUMBERS(first, last)   Code points of the general categories L and N of Unicode {unicodedata.unidata_version}, in order. "
        "From\n   tests/llama/unicode.py. */\n" + rows("LETTERS", "L") + rows("NUMBERS", "N"))
path = sys.argv[-1]
if "--check" in sys.argv:
    sys.exit(open(path).read() != text)
open(path, "w").write(text)
