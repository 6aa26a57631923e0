# SPDX-License-Identifier: Apache-2.0
# Run by `cmake --install`: warns where others can use the prefix, but not the LibTorch in libtorch_folder, as that of
# root's cache. Who installs below the own home installs for oneself.
set(home "$ENV{HOME}")
cmake_path(IS_PREFIX home "${CMAKE_INSTALL_PREFIX}" NORMALIZE is_own)
set(folder "${libtorch_folder}")
while(NOT is_own AND NOT folder STREQUAL "/")
  execute_process(COMMAND find "${folder}" -maxdepth 0 -perm -001 OUTPUT_VARIABLE is_open)
  if(is_open STREQUAL "")
    message(WARNING "other users cannot enter ${folder}, where LibTorch is: libacc, acc-selftest and acc test will start for "
      "you alone. Build with a LibTorch that all can read: -DLibTorch_ROOT=<folder>")
    break()
  endif()
  cmake_path(GET folder PARENT_PATH folder)
endwhile()
