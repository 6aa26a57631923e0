# SPDX-License-Identifier: Apache-2.0
# run(OUTPUT <variable> COMMAND <words>): what a command prints; one that fails ends the test with all that it said.
function(run)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "OUTPUT" "COMMAND")
  execute_process(COMMAND ${arg_COMMAND} OUTPUT_VARIABLE output ERROR_VARIABLE error RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    list(JOIN arg_COMMAND " " command)
    message(FATAL_ERROR "${command}: ${status}\n${output}${error}")
  endif()
  set(${arg_OUTPUT} "${output}" PARENT_SCOPE)
endfunction()
