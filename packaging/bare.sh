#!/bin/sh
# In a Debian that has nothing (scripts/package-test): the packages in /packages are installed, kernels run, clients of every kind are built and run, the
# packages are removed.
set -e
dpkg -i /packages/*.deb >/dev/null
tilec --version
tilerun /packages/vector_add.tile add --device=sim x=ones:f32:1000 y=ones:f32:1000 out=empty:f32:1000 n=1000 --check out=full:f32:2:1000
export DEBIAN_FRONTEND=noninteractive
unset CMAKE_C_COMPILER_LAUNCHER CMAKE_CXX_COMPILER_LAUNCHER       # which are of the machine outside
apt-get update -qq
apt-get install -y -qq --no-install-recommends gcc g++ cmake ninja-build make pkg-config meson python3 >/dev/null
python3 /packages/clients.py /nowhere /nowhere /usr
dpkg -r tilec-tools tilec-compiler tilec-simulator tilec-runtime tilec-doc >/dev/null
if [ -e /usr/bin/tilec ]; then
  echo "tilec is still there" >&2
  exit 1
fi
