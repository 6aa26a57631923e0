# SPDX-License-Identifier: Apache-2.0
# Installs the build into an empty folder, builds what is below consumer/ against it and runs it there.
#   cmake -DBUILD=<build tree> -DWORK=<scratch folder> -DLIBTORCH=<folder torch> [...] -P this

include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)

file(REMOVE_RECURSE ${WORK})
set(prefix ${WORK}/prefix)
run(OUTPUT installed COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
# An empty prefix path: nothing of what acc itself was built with may be needed, LibTorch apart.
run(OUTPUT configured COMMAND ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${WORK}/build -G Ninja
    -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_CXX_COMPILER=${COMPILER} -DLibTorch_ROOT=${LIBTORCH}
    -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -DREADME=${CMAKE_CURRENT_LIST_DIR}/../../README.md)
run(OUTPUT built COMMAND ${CMAKE_COMMAND} --build ${WORK}/build)
run(OUTPUT said COMMAND ${WORK}/build/consumer)
if(NOT said STREQUAL "process 0 of 1\n")
  message(FATAL_ERROR "the consumer said '${said}'")
endif()
run(OUTPUT said COMMAND ${WORK}/build/notebook)
if(NOT said STREQUAL "ranks 0 and 1\n")
  message(FATAL_ERROR "the consumer that launches workers said '${said}'")
endif()
run(OUTPUT said COMMAND ${CMAKE_COMMAND} -E chdir ${WORK} ${WORK}/build/readme)
if(NOT EXISTS ${WORK}/checkpoint)
  message(FATAL_ERROR "the README's program left no checkpoint")
endif()

if(EXISTS ${prefix}/bin/acc)
  run(OUTPUT help COMMAND ${prefix}/bin/acc --help)
  file(READ_SYMLINK ${prefix}/bin/acc-torchrun target)
  if(NOT target STREQUAL acc)
    message(FATAL_ERROR "bin/acc-torchrun leads to ${target}")
  endif()
endif()
if(EXISTS ${prefix}/share/acc/notebook/install.py)
  # Whatever Python lacks, notebooks find what is installed.
  execute_process(COMMAND ${prefix}/bin/acc notebook --check OUTPUT_VARIABLE said ERROR_VARIABLE error)
  if(NOT said MATCHES "ok +libacc: ${prefix}/[^\n]*libacc[.]so\nok +LibTorch: ")
    message(FATAL_ERROR "acc notebook --check said '${said}${error}'")
  endif()
endif()
if(EXISTS ${prefix}/bin/acc-selftest)
  run(OUTPUT tested COMMAND ${prefix}/bin/acc test --cpu --num_processes 2)
endif()
file(REMOVE_RECURSE ${WORK})
