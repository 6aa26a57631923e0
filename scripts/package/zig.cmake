# SPDX-License-Identifier: Apache-2.0
# Compiles with zig's Clang for the processor ACC_WHEEL_ARCH and glibc 2.28, whatever this machine has. libc++ is linked
# into the program. ACC_ZIG is the program `zig` of the package ziglang.
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ACC_WHEEL_ARCH ACC_ZIG)
set(target ${ACC_WHEEL_ARCH}-linux-gnu.2.28)
if(NOT ACC_WHEEL_ARCH STREQUAL CMAKE_HOST_SYSTEM_PROCESSOR)
  set(CMAKE_SYSTEM_NAME Linux)
  set(CMAKE_SYSTEM_PROCESSOR ${ACC_WHEEL_ARCH})
endif()
set(CMAKE_C_COMPILER ${ACC_ZIG} cc -target ${target})
set(CMAKE_CXX_COMPILER ${ACC_ZIG} c++ -target ${target})
set(CMAKE_ASM_COMPILER ${ACC_ZIG} cc -target ${target})
# The system calls are in zig's Linux headers, but not in glibc 2.28.
set(CMAKE_CXX_FLAGS_INIT "-include ${CMAKE_CURRENT_LIST_DIR}/glibc_2_28.hpp")
# zig's archiver is a word of the same program.
foreach(language IN ITEMS C CXX)
  set(CMAKE_${language}_ARCHIVE_CREATE "${ACC_ZIG} ar qc <TARGET> <OBJECTS>")
  set(CMAKE_${language}_ARCHIVE_FINISH "${ACC_ZIG} ranlib <TARGET>")
endforeach()
set(CMAKE_EXE_LINKER_FLAGS_INIT "-s")
