"""exit.py STATUS COMMAND...: run the command; succeed when it exits with STATUS. Its output passes through."""
import subprocess, sys
status = subprocess.run(sys.argv[2:]).returncode
if status != int(sys.argv[1]):
    sys.exit(f"exit status {status}, expected {sys.argv[1]}")
