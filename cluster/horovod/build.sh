#!/usr/bin/env bash
# Builds Horovod's wheel into the folder DEST, for the `python` that comes first in PATH: the suite's .venv, where
# cluster/setup.py calls this, or an activated conda environment. It needs the packages of requirements.lock there.
# Gloo is always built in, MPI where an mpicxx is found, NCCL when HOROVOD_GPU_OPERATIONS asks for it.
set -euo pipefail

dest=${1:?usage: build.sh DEST}
recipe=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

stop() {
  echo "error: $1" >&2
  exit 1
}

export CXX=${CXX:-g++}
for tool in "${CXX%% *}" make; do
  command -v "$tool" >/dev/null || stop "$tool was not found"
done
# Asked before the minutes-long build: torch's headers need C++20, which older clusters' g++ lacks.
if ! complaint=$($CXX -std=c++20 -x c++ -c -o /dev/null - <<<'#include <concepts>' 2>&1); then
  stop "$CXX cannot compile C++20: ${complaint%%$'\n'*}"
fi

export HOROVOD_WITH_PYTORCH=1 HOROVOD_WITHOUT_TENSORFLOW=1 HOROVOD_WITHOUT_MXNET=1 HOROVOD_WITH_GLOO=1
if command -v mpicxx >/dev/null; then
  export HOROVOD_WITH_MPI=1
else
  export HOROVOD_WITHOUT_MPI=1
fi
# Horovod's bundled CMake files ask for a policy version that CMake 4 refuses.
export CMAKE_POLICY_VERSION_MINIMUM=3.5
export CMAKE_TOOLCHAIN_FILE=$recipe/toolchain.cmake
# Also replaces the flags of a make that called us, whose job server does not reach this far.
MAKEFLAGS=-j$(nproc)
export MAKEFLAGS

# No pip cache: it would hand out a wheel that was built against another torch or with other flags.
exec python -u -m pip wheel --verbose --no-cache-dir --no-deps --no-build-isolation \
  --require-hashes -r "$recipe/requirements.txt" -w "$dest"
