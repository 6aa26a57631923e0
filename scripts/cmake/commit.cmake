# SPDX-License-Identifier: Apache-2.0
# Writes a header that defines ACC_COMMIT, the commit of the source: by git; in an archive that git made, by commit.txt;
# otherwise "unknown".
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
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#define ACC_COMMIT \"@commit@\"\n" @ONLY)
