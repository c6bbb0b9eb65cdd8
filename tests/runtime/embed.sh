#!/bin/sh
# embed.sh BUILD SOURCE COMMAND...: install into a scratch prefix, build examples/embed against it through pkg-config, run it under the
# command.
set -e
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
command -v pkg-config >/dev/null || { echo "skipped: no pkg-config"; exit 77; }
[ -z "$3" ] || command -v "$3" >/dev/null || { echo "skipped: no $3"; exit 77; }
cmake --install "$1" --prefix "$work/usr" >"$work/log" || { cat "$work/log"; exit 1; }
cp "$2"/examples/embed/* "$work"
PKG_CONFIG_PATH=$(dirname "$(find "$work/usr" -name tilec.pc)")
export PKG_CONFIG_PATH
make -s -C "$work" embed
shift 2
"$@" "$work/embed" sim
