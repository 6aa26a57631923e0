# SPDX-License-Identifier: Apache-2.0
# Writes a source that holds files of a template as text, without their licence lines: what is made from it belongs to
# whoever makes it.
#   cmake -DFOLDER=<folder> -DFILES=<a;b> -DHEADER=<header> -DNAME=<function> -DSOURCE=<file> -P this
cmake_minimum_required(VERSION 3.25)

set(entries "")
foreach(file IN LISTS FILES)
  file(READ ${FOLDER}/${file} text)
  string(REGEX REPLACE "^// SPDX-License-Identifier:[^\n]*\n" "" text "${text}")
  string(APPEND entries "      {.path = \"${file}\", .text = R\"acc(${text})acc\"},\n")
endforeach()
file(WRITE ${SOURCE} "// Made by scripts/cmake/embed.cmake.
#include \"${HEADER}\"

namespace acc::launcher {

std::vector<ProjectFile> ${NAME}() {
  return {
${entries}  };
}

}  // namespace acc::launcher
")
