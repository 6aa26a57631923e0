# SPDX-License-Identifier: Apache-2.0
# Whoever builds the target acc, as scripts/quickstart does, has the man pages that `cmake --install` wants.
#   cmake -DBUILD=<build tree of Ninja> -DNINJA=<ninja> -P this

execute_process(COMMAND ${NINJA} -C ${BUILD} -t commands acc OUTPUT_VARIABLE commands COMMAND_ERROR_IS_FATAL ANY)
file(STRINGS ${BUILD}/apps/acc/cmake_install.cmake pages REGEX "/man/[a-z-]+[.]1\"")
if(NOT pages)
  message(FATAL_ERROR "no man page is installed")
endif()
foreach(line IN LISTS pages)
  string(REGEX MATCH "[^\"]+/man/[a-z-]+[.]1" page "${line}")
  string(FIND "${commands}" "> ${page}" place)
  if(place EQUAL -1)
    message(SEND_ERROR "building acc does not make ${page}")
  endif()
endforeach()
