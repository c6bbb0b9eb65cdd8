# A toolchain file: for aarch64 hosts (Grace), by Debian's gcc-aarch64-linux-gnu, and for the compiler g++-aarch64-linux-gnu; tests run under qemu-user.
#   cmake -S . -B build-aarch64 -G Ninja -DCMAKE_TOOLCHAIN_FILE=packaging/aarch64-linux-gnu.cmake
#     -DTILEC_COMPILER=OFF               the runtime alone, or
#     -DTILEC_AARCH64_ROOT=FOLDER        with LLVM of what scripts/aarch64-root FOLDER has put there
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_STRIP aarch64-linux-gnu-strip)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu ${TILEC_AARCH64_ROOT})
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TILEC_AARCH64_ROOT)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
