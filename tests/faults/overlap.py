"""Planted faults of loops whose products overlap, and of rings that two loops share, in what the compiler makes of a kernel of
tests/diff/overlap.py. overlap.py BUILD [--verbose]

As it was the schedule must run silently; edited it must be reported by the reference interpreter and by the simulator on its PTX, with the
kind of fault, the words and the op at its place that are expected."""
import os, re, sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(here), "diff"))
from overlap import BODIES, ONE, TWO, kernel
from planted import DEADLOCK, RACE, check, cut, put

one = kernel(BODIES["weights"][1], ONE, 6, 768)
two = kernel(BODIES["weights"][1], TWO, 8, 1024)
UNDER_WAY = "a buffer that a product under way still reads|another team read"
UNSEEN = "a copy wrote: this team has not waited for the phase of its mbarrier"
NEWEST = "the accumulator's product is one of the newest"
FILL = "tma_load|wgmma"


def in_loop(text, edit):
    """Edits the first loop of the team that multiplies."""
    at = re.search(r"^ +%\d+.* = for .*pending|^ +%\d+.* = for .*f16\[", text, re.M).start()
    return text[:at] + edit(text[at:])


def in_second_loop(text, edit):
    def behind_head(loop):
        head = loop.index("\n") + 1
        return loop[:head] + in_loop(loop[head:], edit)
    return in_loop(text, behind_head)


def move_up(text, line, before):
    """The first line that matches, with the view of its mbarrier, in front of the first that matches `before`."""
    found = re.search(rf"^ *%\d+ = shared_index .*\n *{line} .*\n", text, re.M)
    rest = text[:found.start()] + text[found.end():]
    at = re.search(rf"^ *.*{before}.*\n", rest, re.M).start()
    return rest[:at] + found.group(0) + rest[at:]


def second(text, edit, mark):
    """Edits what stands from the first line with `mark` on."""
    at = re.search(rf"^.*{mark}.*\n", text, re.M).start()
    return text[:at] + edit(text[at:])


SCHEDULED = [
    # (In the loop the copy that follows waits for values of that iteration, too, and those are handed back behind this wait.)
    ("first slot of the scores handed back before their wait", one, lambda t: second(t, lambda u: move_up(u, "mbarrier_arrive", "wgmma_wait"), "if %"), UNDER_WAY,
     RACE, FILL),
    ("slot of the values handed back before their wait", one,
     lambda t: in_loop(t, lambda u: second(u, lambda w: move_up(w, "mbarrier_arrive", "wgmma_wait"), r"fast_exp2 .*f32\[128, #\d+\]")), UNDER_WAY, RACE, FILL),
    ("scores used while they are under way", one, lambda t: in_loop(t, lambda u: put(u, "pending = 1 ", "pending = 2 ")), NEWEST, RACE + "|async",
     "reduce|wgmma_wait|sub|fast_exp2|max"),
    ("sums used while they are under way", one, lambda t: in_loop(t, lambda u: put(u, "pending = 0 ", "pending = 1 ")), NEWEST, RACE + "|async",
     "mul|wgmma_wait|yield|for|pending"),
    ("values not waited for", one, lambda t: in_loop(t, lambda u: cut(u, "mbarrier_wait", 1)), UNSEEN, RACE, "wgmma"),
    ("scores not waited for to be full", one, lambda t: in_loop(t, lambda u: cut(u, "mbarrier_wait")), UNSEEN, RACE, "wgmma"),
    ("a slot of the values is never handed back", one, lambda t: in_loop(t, lambda u: cut(u, "mbarrier_arrive", 1)), DEADLOCK, "deadlock", "mbarrier_wait"),
    ("the second loop begins with the ring anew", two, lambda t: in_second_loop(t, lambda u: put(u, r"(mbarrier_wait %\d+), %\w+", r"\1, %ZERO").replace(
        "%ZERO", re.search(r"(%\d+) = const value = 0 : i32", t[t.index("warp_specialize"):]).group(1))),
     "deadlock|still writing|nothing has written|another team wrote|phases behind", RACE + "|barrier|deadlock", "wgmma|mbarrier_wait|tma_load|mbarrier_arrive"),
]

if __name__ == "__main__":
    sys.exit(check([], SCHEDULED, ["sm_90a:1"], source="tile"))
