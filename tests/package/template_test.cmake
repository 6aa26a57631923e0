# SPDX-License-Identifier: Apache-2.0
# What `acc new training` writes, against an installed acc: builds, passes its tests, one of which trains on two
# processes, trains on one, and builds again with a Trainer's program.
#   cmake -DBUILD=<build tree> -DWORK=<scratch folder> -DLIBTORCH=<folder torch> -DCOMPILER=<c++> [-DLAUNCHER=<ccache>]
#         [-DREPOSITORY=<folder>] -P this
# With REPOSITORY nothing is installed: libacc is fetched from there, and compiled.

include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
set(ENV{OMP_NUM_THREADS} 1)
set(ENV{CCACHE_BASEDIR} ${WORK})
set(ENV{CCACHE_SLOPPINESS} pch_defines,time_macros)

function(expect said pattern)
  if(NOT said MATCHES "${pattern}")
    message(FATAL_ERROR "no '${pattern}' in what is said:\n${said}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
set(project "${WORK}/two words/spirals")
if(REPOSITORY)
  set(acc ${BUILD}/bin/acc)
  set(libacc -DACC_REPOSITORY=${REPOSITORY} -DCMAKE_DISABLE_FIND_PACKAGE_acc=ON)
else()
  run(OUTPUT installed COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
  set(acc ${WORK}/prefix/bin/acc)
  set(libacc -DCMAKE_PREFIX_PATH=${WORK}/prefix)
endif()
run(OUTPUT said COMMAND ${acc} new training ${project})
expect("${said}" "acc launch build/spirals\n")
# ccache wants its flag for precompiled headers.
set(flags "")
if(LAUNCHER)
  set(flags -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -DCMAKE_CXX_FLAGS=-fpch-preprocess)
endif()
run(OUTPUT configured COMMAND ${CMAKE_COMMAND} -S ${project} -B ${project}/build -G Ninja ${libacc} ${flags}
    -DCMAKE_CXX_COMPILER=${COMPILER} -DLibTorch_ROOT=${LIBTORCH} -DACC_PROGRAM=${acc})
run(OUTPUT built COMMAND ${CMAKE_COMMAND} --build ${project}/build)
expect("${built}" "cmake_pch")
run(OUTPUT tested COMMAND ${CMAKE_CTEST_COMMAND} --test-dir ${project}/build --output-on-failure)
expect("${tested}" "100% tests passed, 0 tests failed out of 2")

run(OUTPUT said COMMAND ${CMAKE_COMMAND} -E chdir ${WORK} ${project}/build/spirals)
expect("${said}" "epoch 20: (9[0-9]|100)[.][0-9]% of 500 right\n$")
if(NOT EXISTS ${WORK}/spirals.safetensors)
  message(FATAL_ERROR "the training left no weights")
endif()

run(OUTPUT said COMMAND ${acc} new training ${WORK}/spirals --trainer)
file(COPY_FILE ${WORK}/spirals/main.cpp ${project}/main.cpp)
run(OUTPUT built COMMAND ${CMAKE_COMMAND} --build ${project}/build)
if(built MATCHES "cmake_pch|model_test")
  message(FATAL_ERROR "a changed main.cpp compiles other sources again:\n${built}")
endif()
expect("${built}" "main.cpp")
run(OUTPUT said COMMAND ${CMAKE_COMMAND} -E chdir ${WORK} ${acc} launch --cpu --num_processes 2 ${project}/build/spirals)
expect("${said}" "9[0-9][.][0-9]% of 500 right\n$")
file(REMOVE_RECURSE ${WORK})
