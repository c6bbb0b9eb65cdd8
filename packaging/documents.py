"""documents.py FOLDER: what is installed of the manual leads nowhere else. A link of a page to a file that is not installed becomes that file's
path among the sources; licences come with other components."""
import glob, os, re, sys

ELSEWHERE = ("LICENSE", "NOTICE")
root = sys.argv[1]


def plain(page, text, path):
    at = os.path.normpath(os.path.join(os.path.dirname(page), path))
    if "://" in path or os.path.exists(at) or os.path.relpath(at, root) in ELSEWHERE:
        return None
    name = os.path.relpath(at, root)
    return f"`{name}`" if text in (name, os.path.basename(name)) else f"{text} (`{name}`)"


for page in glob.glob(f"{root}/**/*.md", recursive=True):
    with open(page, encoding="utf-8") as f:
        before = f.read()
    # Code stays as it is.
    parts = re.split(r"(^```.*?^```$|`[^`\n]*`)", before, flags=re.M | re.S)
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"\[([^][]+)\]\(([^()#\s]+)(#[^()\s]*)?\)", lambda m: plain(page, m[1], m[2]) or m[0], parts[i])
    if (after := "".join(parts)) != before:
        with open(page, "w", encoding="utf-8") as f:
            f.write(after)
