// SPDX-License-Identifier: Apache-2.0
#include "acc/store/shared_file.hpp"

#include <filesystem>
#include <system_error>

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace shared_file_test {

using acc::launcher::SharedFile;

TEST_CASE("shared file: one process at a time has it locked", "[store]") {
  const acc::test::TemporaryFolder folder;
  std::error_code error;
  SharedFile second(folder.path() / "file", error);
  {
    SharedFile first(folder.path() / "file", error);
    CHECK(first.lock(error));
    CHECK_FALSE(second.lock(error));
    CHECK_FALSE(error);
  }
  CHECK(second.lock(error));
}

TEST_CASE("shared file: is read and written from an offset on", "[store]") {
  const acc::test::TemporaryFolder folder;
  std::error_code error;
  SharedFile file(folder.path() / "file", error);
  file.write(0, "abcdef", error);
  file.write(3, "xyz and more", error);
  CHECK(file.read(1, 4, error) == "bcxy");
  file.truncate(5, error);
  CHECK(file.status(error).size == 5);
  CHECK(file.read(3, 100, error) == "xy");
  CHECK(file.read(5, 100, error).empty());
  CHECK_FALSE(error);
}

TEST_CASE("shared file: what is created anew is another file", "[store]") {
  const acc::test::TemporaryFolder folder;
  std::error_code error;
  const SharedFile first(folder.path() / "file", error);
  const SharedFile same(folder.path() / "file", error);
  CHECK(first.status(error).identity == same.status(error).identity);
  std::filesystem::remove(folder.path() / "file");
  const SharedFile other(folder.path() / "file", error);
  CHECK_FALSE(first.status(error).identity == other.status(error).identity);
  CHECK(other.status(error).is_regular);
  CHECK_FALSE(error);
}

TEST_CASE("shared file: errors are those of the system", "[store]") {
  const acc::test::TemporaryFolder folder;
  std::error_code error;
  const SharedFile nowhere(folder.path() / "missing" / "file", error);
  CHECK(error == std::errc::no_such_file_or_directory);
  const SharedFile a_folder(folder.path(), error);
  CHECK(error == std::errc::is_a_directory);
}

}  // namespace shared_file_test
