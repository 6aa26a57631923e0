# SPDX-License-Identifier: Apache-2.0
# A project with acc inside is configured, and compiles a source that includes acc's headers. What else it would build is
# read from Ninja: libacc with the program that links it, the launcher when it is asked for, and neither by itself.
#   cmake -DACC=<source of acc> -DWORK=<scratch folder> -DCOMPILER=<c++> -DLAUNCHER=<ccache> -DHOW=<add_subdirectory or
#         FetchContent> -DRUNTIME=<bool> -DLIBTORCH=<folder torch> -P this

include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)

set(commit "")
if(HOW STREQUAL "FetchContent")
  execute_process(COMMAND git -C ${ACC} rev-parse HEAD OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE
                  RESULT_VARIABLE status ERROR_QUIET)
  if(NOT status EQUAL 0)
    message("skipped: no git, or the source is not a clone")
    return()
  endif()
endif()

file(REMOVE_RECURSE ${WORK})
set(build ${WORK}/build)
run(OUTPUT configured COMMAND ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/subproject -B ${build} -G Ninja
    -DACC=${ACC} -DCOMMIT=${commit} -DACC_RUNTIME=${RUNTIME} -DLibTorch_ROOT=${LIBTORCH} -DCMAKE_CXX_COMPILER=${COMPILER}
    -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER})

function(expect target pattern)
  run(OUTPUT steps COMMAND ${CMAKE_COMMAND} --build ${build} --target ${target} -- -n)
  if(NOT steps MATCHES "${pattern}")
    message(SEND_ERROR "building ${target} makes no ${pattern}:\n${steps}")
  endif()
endfunction()

expect(mnist "bin/acc\n")
if(RUNTIME)
  run(OUTPUT compiled COMMAND ${CMAKE_COMMAND} --build ${build} --target objects)
  expect(trainer "libacc[.]so")
  expect(trainer "cmake_pch")
endif()
run(OUTPUT steps COMMAND ${CMAKE_COMMAND} --build ${build} -- -n)
if(steps MATCHES "bin/acc\n|selftest|catch")
  message(SEND_ERROR "the launcher or a test of acc is built without being asked for:\n${steps}")
endif()
file(REMOVE_RECURSE ${WORK})
