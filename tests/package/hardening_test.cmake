# SPDX-License-Identifier: Apache-2.0
# Installs the build into an empty folder and reads each program and library there with readelf:
# position-independent, all symbols bound and their tables read-only before main, stacks protected, no search
# path that others can write to, and no symbol of the libraries that are compiled in (spdlog, fmt, Boost) for
# others to find. What is linked to LibTorch binds its symbols while it runs: another LibTorch than the
# compiled one is refused in a line of ours. cmake -DBUILD=<build tree> -DWORK=<scratch folder>
# -DREADELF=<readelf> -DOPTIMIZED=<bool> -P this

file(REMOVE_RECURSE ${WORK})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)

function(expect file told pattern what)
  if(NOT told MATCHES "${pattern}")
    message(SEND_ERROR "${file}: ${what}")
  endif()
endfunction()

function(check_search_path file told)
  if(NOT told MATCHES "\\((RUNPATH|RPATH)\\)[^[]*\\[([^]]*)\\]")
    return()
  endif()
  set(path ":${CMAKE_MATCH_2}:")
  if(path MATCHES "::")
    message(SEND_ERROR "${file}: an empty element in ${path} is the current folder")
  endif()
  string(FIND "${path}" "${BUILD}" position)
  if(NOT position EQUAL -1)
    message(SEND_ERROR "${file}: ${path} names the build folder")
  endif()
endfunction()

set(checked 0)
file(GLOB_RECURSE files ${WORK}/bin/* ${WORK}/*.so ${WORK}/*.so.*)
foreach(file IN LISTS files)
  execute_process(COMMAND ${READELF} --wide --file-header --program-headers --dynamic --dyn-syms ${file}
                  OUTPUT_VARIABLE told ERROR_QUIET)
  if(IS_SYMLINK ${file} OR NOT told MATCHES "ELF Header")
    continue()
  endif()
  math(EXPR checked "${checked} + 1")
  expect(${file} "${told}" "Type: +DYN" "is not position-independent")
  expect(${file} "${told}" "GNU_RELRO" "its tables stay writable (no RELRO)")
  if(NOT told MATCHES "NEEDED[^\n]*(libtorch|libacc[.]so)")
    expect(${file} "${told}" "BIND_NOW|Flags: [^\n]*NOW" "binds symbols while it runs (no BIND_NOW)")
  endif()
  expect(${file} "${told}" "__stack_chk_fail" "its stacks are not protected")
  if(OPTIMIZED AND file MATCHES "/bin/acc$")
    expect(${file} "${told}" "__[a-z]*(mem|str|print|poll|read)[a-z]*_chk" "the C library checks no sizes (_FORTIFY_SOURCE)")
  endif()
  check_search_path(${file} "${told}")
  if(told MATCHES "(GLOBAL|WEAK) +DEFAULT +[0-9]+ [^ \n]*(6spdlog|3fmt|5boost)[^ \n]*")
    message(SEND_ERROR "${file} exports what is another library's: ${CMAKE_MATCH_0}")
  endif()
endforeach()
if(checked EQUAL 0)
  message(SEND_ERROR "nothing was installed")
endif()
file(REMOVE_RECURSE ${WORK})
