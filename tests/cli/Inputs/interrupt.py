"""interrupt.py WORD COMMAND...: run the command, send it one SIGINT soon after a line that begins with WORD, or when it opens the pipe
WORD for reading; all it says is printed. Exits as a shell would: 130 for a command that the signal ended."""
import os, signal, stat, subprocess, sys, time
word, command = sys.argv[1], sys.argv[2:]
child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
if os.path.exists(word) and stat.S_ISFIFO(os.stat(word).st_mode):
    pipe = open(word, "w")
else:
    for line in child.stdout:
        print(line, end="")
        if line.startswith(word):
            break
    time.sleep(0.3)
child.send_signal(signal.SIGINT)
print(child.communicate(timeout=60)[0], end="")
sys.exit(128 - child.returncode if child.returncode < 0 else child.returncode)
