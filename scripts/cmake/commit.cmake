# SPDX-License-Identifier: Apache-2.0
# Writes a header that defines ACC_COMMIT, the commit of the source: by git; in an archive that git made, by commit.txt;
# otherwise "unknown". And ACC_REPOSITORY, the address from which the source was cloned; empty unless it begins with https.
#   cmake -DSOURCE=<root of acc> -DHEADER=<file> -P this
cmake_minimum_required(VERSION 3.25)

# Inside the repository of another project (FetchContent, a subdirectory) HEAD would be that one's.
execute_process(COMMAND git -C ${SOURCE} rev-parse --show-cdup --verify HEAD
  OUTPUT_VARIABLE output RESULT_VARIABLE status ERROR_QUIET)
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/commit.txt archived LIMIT_COUNT 1)
set(commit unknown)
if(status EQUAL 0 AND output MATCHES "^\n([0-9a-f]+)\n$")
  set(commit ${CMAKE_MATCH_1})
elseif(archived MATCHES "^[0-9a-f]+$")
  set(commit ${archived})
endif()
# Not one with a name or a password in it.
set(repository "")
if(NOT commit STREQUAL "unknown")
  execute_process(COMMAND git -C ${SOURCE} config --get remote.origin.url OUTPUT_VARIABLE output ERROR_QUIET)
  if(output MATCHES "^(https://[-A-Za-z0-9._~/:]+)\n$")
    set(repository ${CMAKE_MATCH_1})
  endif()
endif()
file(CONFIGURE OUTPUT ${HEADER} @ONLY
     CONTENT "#define ACC_COMMIT \"@commit@\"\n#define ACC_REPOSITORY \"@repository@\"\n")
