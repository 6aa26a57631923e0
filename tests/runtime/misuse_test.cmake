# SPDX-License-Identifier: Apache-2.0
# cmake -DCOMMANDS=compile_commands.json -DLIKE=drift_test.cpp -DLIB=lib -P misuse_test.cmake: checks that the compiler
# reports each wrong call in one line, and an older language or a missing library first. LIKE is a source of tests:
# misuse.cpp is compiled by its command, for its precompiled header.

# One for each call of misuse.cpp.
set(sentences
  "static assertion failed: prepare takes models"
  "ignoring return value of .* acc::Accelerator::accumulate"
  "ignoring return value of .* acc::Accelerator::no_sync"
  "ignoring return value of .* acc::Model<Module>::no_sync"
  "static assertion failed: the module has no forward that takes these arguments"
  "static assertion failed: prepare a model as the class that has its forward"
  "static assertion failed: a data set has size"
  "static assertion failed: gather_for_metrics takes tensors"
  "static assertion failed: gather_for_metrics takes tensors"
  "static assertion failed: inputs are kept: pass what has the elements")

file(STRINGS ${COMMANDS} entry REGEX "\"command\": .*/${LIKE}\"")
string(REGEX REPLACE ",$" "" entry "${entry}")
string(JSON command GET "{${entry}}" command)
string(REGEX REPLACE " -o .*" "" command "${command}")
separate_arguments(command UNIX_COMMAND "${command}")
execute_process(COMMAND ${command} -Werror=unused-result -fsyntax-only ${CMAKE_CURRENT_LIST_DIR}/misuse.cpp
                RESULT_VARIABLE ended ERROR_VARIABLE said OUTPUT_VARIABLE ignored)
string(REPLACE ";" "," lines "${said}")
string(REGEX MATCHALL "[^\n]*error: [^\n]*" errors "${lines}")
set(missing "")
foreach(sentence IN LISTS sentences)
  set(others "${errors}")
  list(FILTER others INCLUDE REGEX "error: ${sentence}")
  list(POP_FRONT others first)
  list(FIND errors "${first}" index)
  if(index EQUAL -1)
    list(APPEND missing "${sentence}")
  else()
    list(REMOVE_AT errors ${index})
  endif()
endforeach()
if(ended EQUAL 0 OR missing OR errors)
  message(FATAL_ERROR "ended with ${ended}; not reported: ${missing}; reported beside: ${errors}:\n${said}")
endif()

# The compiler ends at its first error, before it reads LibTorch.
file(GLOB headers ${LIB}/acc/*.hpp)
if(NOT headers)
  message(FATAL_ERROR "no headers in ${LIB}/acc")
endif()
list(GET command 0 compiler)
foreach(header IN LISTS headers)
  execute_process(COMMAND ${compiler} -std=c++17 -I${LIB} -Wfatal-errors -fsyntax-only -x c++ ${header}
                  RESULT_VARIABLE ended ERROR_VARIABLE said OUTPUT_VARIABLE ignored)
  if(ended EQUAL 0 OR NOT said MATCHES "error: #error \"acc needs C\\+\\+20")
    message(FATAL_ERROR "${header} in C++17: ended with ${ended}:\n${said}")
  endif()
endforeach()

execute_process(COMMAND ${compiler} -std=c++20 -nostdinc -I${LIB} -Wfatal-errors -fsyntax-only -x c++ ${LIB}/acc/objects.hpp
                RESULT_VARIABLE ended ERROR_VARIABLE said OUTPUT_VARIABLE ignored)
if(ended EQUAL 0 OR NOT said MATCHES "error: #error \"acc/objects.hpp needs nlohmann/json")
  message(FATAL_ERROR "acc/objects.hpp without nlohmann/json: ended with ${ended}:\n${said}")
endif()
