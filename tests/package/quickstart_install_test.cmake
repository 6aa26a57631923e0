# SPDX-License-Identifier: Apache-2.0
# After scripts/quickstart, which builds some targets alone, `cmake --install` finds all files that are not optional, man
# pages among them.
#   cmake -DBUILD=<build tree of Ninja> -DNINJA=<ninja> -DQUICKSTART=<the script> -P this

file(STRINGS ${QUICKSTART} line REGEX "^build release ")
string(REGEX REPLACE "^build release " "" targets "${line}")
separate_arguments(targets)
execute_process(COMMAND ${NINJA} -C ${BUILD} -t commands ${targets} OUTPUT_VARIABLE commands COMMAND_ERROR_IS_FATAL ANY)

file(GLOB_RECURSE scripts ${BUILD}/cmake_install.cmake)
list(FILTER scripts EXCLUDE REGEX "/(package|_deps)/")
set(checked 0)
foreach(script IN LISTS scripts)
  file(READ ${script} text)
  string(REGEX MATCHALL "file\\(INSTALL[^()]*\\)" rules "${text}")
  foreach(rule IN LISTS rules)
    if(rule MATCHES "[ \n]OPTIONAL[ \n]")
      continue()
    endif()
    string(REGEX MATCHALL "\"${BUILD}/[^\"]+\"" files "${rule}")
    foreach(file IN LISTS files)
      string(REGEX REPLACE "^\"${BUILD}/(.*)\"$" "\\1" path "${file}")
      # What CMake itself writes, or downloads, is there.
      if(path MATCHES "[.](cmake|json)$|bin/acc-torchrun$|^_deps/")
        continue()
      endif()
      math(EXPR checked "${checked} + 1")
      string(FIND "${commands}" "${path}" position)
      if(position EQUAL -1)
        message(SEND_ERROR "after scripts/quickstart `cmake --install` misses ${path}")
      endif()
    endforeach()
  endforeach()
endforeach()
if(checked LESS 5)
  message(FATAL_ERROR "${checked} files that are built are installed: the man pages alone are more")
endif()
