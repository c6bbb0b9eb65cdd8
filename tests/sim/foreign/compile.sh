#!/bin/sh
# Make the .ptx files beside the .cu files again: optimised for two targets, and for a debugger, which leaves everything in memory.
# Sections of debug information are cut off, and the compiler's build is not named.
set -e
cd "$(dirname "$0")"
for f in *.cu; do
  b=${f%.cu}
  nvcc -ptx -arch=sm_80 -O3 "$f" -o "$b.sm_80.ptx"
  nvcc -ptx -arch=sm_90 -O3 -lineinfo "$f" -o "$b.sm_90.ptx"
  nvcc -ptx -arch=sm_80 -G "$f" -o "$b.debug.ptx"
done
for f in *.sm_80.ptx *.sm_90.ptx *.debug.ptx; do
  sed -i -E 's#^(\s*\.file\s+[0-9]+ )"([^"]*/)?([^"/]+)".*#\1"\3"#; /^\/\/ (Compiler Build|Cuda compilation|Based on)/d' "$f"
  case $f in
    *.debug.ptx) sed -i '/^[[:space:]]*\.section[[:space:]]*\.debug_/,/^[[:space:]]*}/d; /^[[:space:]]*\/\//d' "$f" ;;
  esac
done
