"""manuals.py BIN [--check]: the manual pages and completions under packaging/, from what `BIN/tilec --help` and `BIN/tilerun --help`
say. --check: say which are out of date, and fail if any is."""
import os, re, subprocess, sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "packaging")
WHAT = {"tilec": "compile tile kernels to PTX", "tilerun": "run a tile kernel on files or generated arrays"}
FILES = {"tilec": ("tile", "tir", "ll"), "tilerun": ("tile", "tir", "ptx")}
QUOTE, CLOSED = "'", "'\\''"                          # a quote within a quoted word of a shell
SEE = {"tilec": "tilerun", "tilerun": "tilec"}
# Options whose values are words: rows of a table, which the shell asks for, or words that the help lists.
TABLES = {"--target": "targets", "--passes": "passes", "--dump-after": "passes"}
LISTS = ("--emit", "--tensors", "--diagnostics", "--device")


def said(command, *options):
    return subprocess.run([command, *options], capture_output=True, text=True, check=True).stdout


class Help:
    """A --help taken apart: usage, (option as written, its words) and the paragraphs behind them."""

    def __init__(self, name, text):
        self.name, blocks = name, text.rstrip("\n").split("\n\n")
        head = blocks[0].split("\n")
        self.usage = re.sub(r"^usage: |  .*$", "", head[0])
        self.options, self.rest = [], []
        for block in blocks[1:]:
            if not block.startswith("  -"):
                self.rest.append(block)
                continue
            for line in block.split("\n"):
                m = re.match(r"  (-\S.*?)(?:  +(.*))?$", line)
                if m and line[:3] == "  -":
                    self.options.append([m[1], m[2] or ""])
                else:
                    self.options[-1][1] += " " + line.strip()

    def flags(self):
        """(option, what its value is called or "", words) of each option, one by one: --a, --b and --x=A --y=B are two each."""
        found = {}
        for written, words in self.options:
            for part in re.split(r", (?=-)| (?=--)", written):
                m = re.match(r"(--?[\w-]+)(?:[= ]?(\S.*))?$", part)
                found.setdefault(m[1], (m[1], m[2] or "", words))
        return list(found.values())


def roff(s):
    return re.sub(r"^([.'])", r"\\&\1", s.replace("\\", "\\e").replace("-", "\\-"))


def page(h, version):
    """The manual page. What is given is bold, what stands for something is italic."""
    def written(s):
        return re.sub(r"(?<![\w\\])([A-Z][A-Z:]*[A-Z]|X|ID|MS|N)(?!\w)", r"\\fI\1\\fB", roff(s))
    out = [f'.TH {h.name.upper()} 1 "" "tilec {version}" "User Commands"', ".SH NAME", f"{h.name} \\- {WHAT[h.name]}", ".SH SYNOPSIS",
           f".B {roff(h.usage.split()[0])}", roff(h.usage.split(" ", 1)[1]), ".SH OPTIONS"]
    for option, words in h.options:
        out += [".TP", f"\\fB{written(option)}\\fR", roff(words) or "\\&"]
    for block in h.rest:
        title, _, body = block.partition(":")
        if not body.startswith("\n") and "\n" not in block:
            out += [".SH " + title.upper(), roff(body.strip())]
        else:
            out += [".SH " + title.upper(), ".nf", *map(roff, body.strip("\n").strip().split("\n")), ".fi"]
    out += [".SH ENVIRONMENT", ".TP", "\\fBTILEC_CACHE=0\\fR", "Keep no compiled kernels on disk.", ".TP", "\\fBTILEC_CACHE_DIR\\fR",
            "Where they are kept; otherwise in \\fI$XDG_CACHE_HOME/tilec\\fR or \\fI~/.cache/tilec\\fR.", ".TP", "\\fBTILEC_CACHE_SIZE\\fR",
            "How much: bytes, or with K, M or G."] if h.name == "tilerun" else []
    out += [".SH SEE ALSO", f"\\fB{SEE[h.name]}\\fR(1), and the manual in \\fI/usr/share/doc/tilec\\fR."]
    return "\n".join(out) + "\n"


def words_of(flag, value, words):
    """What may stand behind an option, as the shell's words or as a command that prints them."""
    if flag in TABLES:
        return f"$(tilec --print-{TABLES[flag]} 2>/dev/null | sed -n '3,$s/^| `*\\([a-z_0-9]*\\).*/\\1/p')"
    if flag not in LISTS:
        return ""
    listed = re.sub(r"\([^)]*\)", "", value if "|" in value else words.rpartition(": ")[2] if ": " in words.split("(")[0] else words)
    return " ".join(w for w in re.split(r"\s*,\s*|\s+or\s+|\|", listed.strip()) if re.fullmatch(r"[a-z]+", w.strip()))


def bash(h):
    flags = h.flags()
    cases = "".join(f'    {f}=*) COMPREPLY=($(compgen -W "{words}" -- "${{word#*=}}")); return ;;\n'
                    for f, value, said in flags if (words := words_of(f, value, said)))
    names = " ".join(f + ("=" if v and f.startswith("--") and not v.startswith("NAME=SHAPE") else "") for f, v, _ in flags)
    return f"""# Completions of {h.name} for bash, made by scripts/manuals.py.
_{h.name}() {{
  local line=${{COMP_LINE:0:COMP_POINT}} word
  word=${{line##*[[:space:]]}}
  COMPREPLY=()
  case $word in
{cases}    -*)
      compopt -o nospace
      COMPREPLY=($(compgen -W '{names}' -- "$word"))
      ;;
    *)
      compopt -o filenames
      COMPREPLY=($(compgen -d -- "$word") $(compgen -f -X '!*.@({"|".join(FILES[h.name])})' -- "$word"))
      ;;
  esac
}}
complete -F _{h.name} {h.name}
"""


def zsh(h):
    lines = []
    for flag, value, words in h.flags():
        text = re.sub(r"([\[\]:'\\])", lambda m: "" if m[0] == "'" else "\\" + m[0], words)
        choices = words_of(flag, value, words)
        kind = f":value:{{compadd -- {choices.replace(QUOTE, CLOSED)}}}" if choices else ":value:" if value else ""
        many = "*" if flag in ("-D", "-I", "--assume", "--save", "--check", "--part") else ""
        apart = flag in ("--save", "--check", "--part")              # their value is a word of its own
        name = flag + ("=" if value and flag.startswith("--") and not apart else "")
        lines.append(f"  '{many}{name}[{text}]{kind}'")
    files = f"  '*:file:_files -g \"*.({'|'.join(FILES[h.name])})\"'"
    return f"#compdef {h.name}\n# Made by scripts/manuals.py.\n_arguments \\\n" + " \\\n".join(lines + [files]) + "\n"


def fish(h):
    out = [f"# Completions of {h.name} for fish, made by scripts/manuals.py."]
    for flag, value, words in h.flags():
        dash = "-l" if flag.startswith("--") else "-s" if len(flag) == 2 else "-o"
        choices = words_of(flag, value, words)
        listed = choices.removeprefix("$").replace(QUOTE, "\\'")
        more = f" -x -a '{listed}'" if choices else " -r" if value else ""
        quoted = words.replace("\\", "\\\\").replace("'", "\\'")
        out.append(f"complete -c {h.name} {dash} {flag.lstrip('-')}{more} -d '{quoted}'")
    return "\n".join(out) + "\n"


def made(folder):
    """{path under packaging: text}"""
    version, out = said(f"{folder}/tilec", "--version").split()[1], {}
    for name in WHAT:
        h = Help(name, said(f"{folder}/{name}", "--help"))
        out[f"man/{name}.1"] = page(h, version)
        out[f"completions/{name}.bash"], out[f"completions/_{name}"] = bash(h), zsh(h)
        out[f"completions/{name}.fish"] = fish(h)
    return out


def main():
    old = []
    for name, text in made(sys.argv[1]).items():
        path = os.path.join(ROOT, name)
        if (open(path).read() if os.path.exists(path) else None) == text:
            continue
        old.append(name)
        if "--check" not in sys.argv:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            open(path, "w").write(text)
    for name in old:
        print(f"packaging/{name}: {'out of date; scripts/manuals.py BIN writes it' if '--check' in sys.argv else 'written'}")
    sys.exit(1 if old and "--check" in sys.argv else 0)


if __name__ == "__main__":
    main()
