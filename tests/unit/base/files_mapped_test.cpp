// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <string_view>

#include "acc/base/files.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace files_mapped_test {

TEST_CASE("mapped file: has the file's bytes, and writes do not change the file", "[base]") {
  const acc::test::TemporaryFolder folder;
  const auto file = folder.path() / "f";
  acc::replace_file(file, std::string_view("some bytes"));
  const acc::MappedFile mapped(file);
  REQUIRE(std::string_view(mapped.data(), mapped.size()) == "some bytes");
  mapped.data()[0] = 'S';
  CHECK(acc::read_file(file) == "some bytes");
}

TEST_CASE("mapped file: an empty file has no bytes", "[base]") {
  const acc::test::TemporaryFolder folder;
  acc::replace_file(folder.path() / "f", std::string_view());
  CHECK(acc::MappedFile(folder.path() / "f").size() == 0);
}

TEST_CASE("mapped file: an unreadable file is an error that names it", "[base]") {
  const acc::test::TemporaryFolder folder;
  const std::string missing = (folder.path() / "none").string();
  CHECK(acc::test::error_of([&] { acc::MappedFile{missing}; }) ==
        missing + ": cannot be read: No such file or directory");
  CHECK(acc::test::error_of([&] { acc::MappedFile{folder.path()}; }) ==
        folder.path().string() + ": cannot be read: Is a directory");
}

TEST_CASE("mapped_file: a pipe is refused without waiting", "[base]") {
  const acc::test::TemporaryFolder folder;
  const auto pipe = folder.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(acc::test::error_of([&] { acc::MappedFile{pipe}; }) ==
        pipe.string() + ": cannot be read: No such device");
}

}  // namespace files_mapped_test
