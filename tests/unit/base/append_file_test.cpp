// SPDX-License-Identifier: Apache-2.0
#include "acc/base/append_file.hpp"

#include <sys/stat.h>

#include <cerrno>

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace append_file_test {

using namespace acc;

TEST_CASE("append_file: text is added at the end, and a pipe without a reader is refused", "[base]") {
  const test::TemporaryFolder folder;
  for (const char* text : {"one\n", "two\n"}) write_all(open_to_append(folder.path() / "log").get(), text);
  CHECK(folder.read("log") == "one\ntwo\n");
  const auto pipe = folder.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_FALSE(open_to_append(pipe));
  CHECK(append_problem(errno, pipe) == "it is a pipe without a reader");
}

TEST_CASE("append_file: problems in words", "[base]") {
  CHECK(append_problem(ENOENT, "/no/folder/log") == "no such folder: /no/folder");
  CHECK(append_problem(EAGAIN, "pipe") == "its reader does not read");
  CHECK(append_problem(ENOSPC, "log") == "No space left on device");
}

}  // namespace append_file_test
