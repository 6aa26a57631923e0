// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/tracking/appended_file.hpp"

#include <sys/resource.h>

#include <csignal>

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/in_child.hpp"
#include "support/temporary_folder.hpp"

namespace appended_file_test {

TEST_CASE("appended file: appended records are written at once, and survive a kill", "[runtime]") {
  const acc::test::TemporaryFolder folder;
  acc::test::in_child([&] {
    acc::detail::AppendedFile file(folder.path() / "new/file");
    file.append("one\n");
    file.append("two\n");
    return std::raise(SIGKILL);
  });
  CHECK(folder.read("new/file") == "one\ntwo\n");
}

TEST_CASE("appended file: it continues an earlier file, without its incomplete last line", "[runtime]") {
  const acc::test::TemporaryFolder folder;
  const auto [before, kept] = GENERATE(table<std::string, std::string>(
      {{"", ""}, {"one\n", "one\n"}, {"one\ntw", "one\n"}, {"on", ""}, {"\n\n", "\n\n"}}));
  acc::detail::AppendedFile file(folder.write("file", before));
  file.cut_unfinished_line();
  file.append("next\n");
  CHECK(folder.read("file") == kept + "next\n");
}

TEST_CASE("appended file: a record that does not fit leaves nothing in the file", "[runtime]") {
  const acc::test::TemporaryFolder folder;
  const std::string error = acc::test::error_of([&] { acc::detail::AppendedFile("/proc/no/file"); });
  CHECK(error.starts_with("/proc/no: cannot be created: "));
  CHECK(acc::test::in_child([&] {
          std::signal(SIGXFSZ, SIG_IGN);
          const rlimit limit{.rlim_cur = 10, .rlim_max = 10};
          ::setrlimit(RLIMIT_FSIZE, &limit);
          acc::detail::AppendedFile file(folder.path() / "file");
          file.append("12345\n");
          const std::string full = acc::test::error_of([&] { file.append("67890\n"); });
          return full.ends_with("file: cannot be written: File too large") ? 0 : 1;
        }) == 0);
  CHECK(folder.read("file") == "12345\n");
}

}  // namespace appended_file_test
