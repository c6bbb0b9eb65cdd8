"""suite.py BUILD [OPTION OF CTEST...]: run the suite; one line for each failure, then ctest's summary. All output is in
BUILD/Testing/Temporary/LastTest.log."""
import os, re, subprocess, sys, tempfile
import xml.etree.ElementTree as xml

MOST, WIDTH = 20, 240                # lines of one test, characters of a line
TELLING = re.compile(r"^FAIL|\bFAILED\b|ERROR: |runtime error|WARNING: ThreadSanitizer|\berror: |Error: ")


def lines_of(case):
    """What a failed test said of its failures; its last line if nothing looks like one."""
    said = [l.strip() for l in (case.findtext("system-out") or "").splitlines() if l.strip()]
    found = list(dict.fromkeys(l for l in said if TELLING.search(l)))
    more = [f"... {len(found) - MOST} more lines"] if len(found) > MOST else []
    why = case.find("failure")
    return found[:MOST] + more or said[-1:] or [why.get("message") if why is not None else "no output"]


build, options = sys.argv[1], sys.argv[2:]
with tempfile.TemporaryDirectory() as folder:
    report = os.path.join(folder, "report.xml")
    command = ["ctest", "--test-dir", build, "--output-junit", report, "-j2", *options]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    cases = xml.parse(report).getroot().findall("testcase") if os.path.exists(report) else []
for case in cases:
    if case.get("status") not in ("run", "disabled", "notrun") or case.find("failure") is not None:
        for line in lines_of(case):
            print(f"FAILED {case.get('name')}: {line}"[:WIDTH])
    elif case.get("status") != "run":
        print(f"skipped {case.get('name')}: {(case.findtext('system-out') or '').strip()}"[:WIDTH])
at = re.search(r"^\d+% tests passed.*?^Total Test time.*?$", run.stdout, re.M | re.S)
print(at.group() if at else run.stdout.strip()[-2000:])
sys.exit(run.returncode or (0 if at else 1))
