# SPDX-License-Identifier: Apache-2.0
# Runs the example in an empty folder, twice, and looks at what it says and leaves: the second time the config is there.
#   cmake -DPROGRAM=<launch_failures> -DWORK=<scratch folder> -P this

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
foreach(config IN ITEMS "wrote config.json" "There is a configuration at config.json already; it was kept.")
  execute_process(COMMAND ${PROGRAM} WORKING_DIRECTORY ${WORK} OUTPUT_VARIABLE said ERROR_VARIABLE error
                  RESULT_VARIABLE status)
  set(expected "${config}
Launching training on 2 CPUs.
rank 1: std::runtime_error: no data
Launching training on 2 CPUs.
restarts: 1
sums: 41 41
")
  if(NOT status EQUAL 0 OR NOT said STREQUAL expected)
    message(FATAL_ERROR "status ${status}, said\n${said}${error}instead of\n${expected}")
  endif()
endforeach()
file(READ ${WORK}/config.json config)
if(NOT config MATCHES "\"mixed_precision\": \"bf16\"")
  message(FATAL_ERROR "the config is ${config}")
endif()
file(GLOB logs ${WORK}/logs/*/attempt_1/0/stdout.log)
list(LENGTH logs count)
if(NOT count EQUAL 2)
  message(FATAL_ERROR "two runs left the logs ${logs}")
endif()
