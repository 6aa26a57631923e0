# SPDX-License-Identifier: Apache-2.0
# What libacc_notebook.so shows to a program is what its public headers declare: the launcher inside is hidden.
#   cmake -DNM=<nm> -DLIBRARY=<libacc_notebook.so> -P this

execute_process(COMMAND ${NM} --dynamic --defined-only --demangle --format=posix ${LIBRARY} OUTPUT_VARIABLE told
                COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+" symbols "${told}")
set(launches 0)
foreach(symbol IN LISTS symbols)
  if(NOT symbol MATCHES "^acc::(write_basic_config|detail::(launch_workers|launch_debug_workers|ResultText<))")
    message(SEND_ERROR "${LIBRARY} exports ${symbol}")
  elseif(symbol MATCHES "launch_workers")
    math(EXPR launches "${launches} + 1")
  endif()
endforeach()
if(NOT launches EQUAL 1)
  message(SEND_ERROR "${LIBRARY} does not export launch_workers")
endif()
