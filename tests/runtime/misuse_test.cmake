# SPDX-License-Identifier: Apache-2.0
# cmake -DCOMPILER=c++ -DFLAGS=FILE -P misuse_test.cmake: checks that the compiler reports each wrong call in one line.

execute_process(COMMAND ${COMPILER} @${FLAGS} -fsyntax-only -Werror=unused-result ${CMAKE_CURRENT_LIST_DIR}/misuse.cpp
                RESULT_VARIABLE ended ERROR_VARIABLE said OUTPUT_VARIABLE ignored)
string(REGEX MATCHALL "[^\n]*error: [^\n]*" errors "${said}")
list(LENGTH errors count)
list(FILTER errors EXCLUDE REGEX "error: static assertion failed: prepare takes models")
list(FILTER errors EXCLUDE REGEX "error: ignoring return")
if(ended EQUAL 0 OR NOT count EQUAL 4 OR errors)
  message(FATAL_ERROR "ended with ${ended}, ${count} errors:\n${said}")
endif()
