// SPDX-License-Identifier: Apache-2.0
#include "acc/base/files.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace files_folders_test {

namespace fs = std::filesystem;
using acc::test::error_of;
using acc::test::TemporaryFolder;

TEST_CASE("folders: a path is absolute from the current folder, and TMPDIR has to be a folder", "[base]") {
  CHECK(acc::absolute_path("x") == fs::current_path() / "x");
  CHECK(acc::absolute_path("/x") == "/x");
  const TemporaryFolder folder;
  CHECK(acc::temporary_folder({{"TMPDIR", folder.path().string()}}) == folder.path());
  CHECK(acc::temporary_folder({}) == "/tmp");
  for (const std::string& unusable :
       {(folder.path() / "missing").string(), folder.write("file", "").string(), std::string("/proc")}) {
    CHECK(acc::temporary_folder({{"TMPDIR", unusable}}) == "/tmp");
    CHECK(acc::temporary_folder({{"TMPDIR", unusable}, {"TMP", folder.path().string()}}) == folder.path());
  }
}

TEST_CASE("folders: a slash or dot at the end of a path is not a part of its name", "[base]") {
  for (const char* path : {"/a/b", "/a/b/", "/a/b//", "/a/b/.", "/a/b/./"})
    CHECK(acc::without_trailing_slash(path).native() == "/a/b");
  for (const char* path : {"b", "b/", "b/."}) CHECK(acc::without_trailing_slash(path).native() == "b");
  for (const char* path : {"/", ".", "..", "/a/..", ""})
    CHECK(acc::without_trailing_slash(path).native() == path);
}

TEST_CASE("folders: a current folder that was removed is one clear error", "[base]") {
  const TemporaryFolder folder;
  const fs::path before = fs::current_path();
  const fs::path gone = folder.path() / "gone";
  fs::create_directory(gone);
  fs::current_path(gone);
  fs::remove(gone);
  const std::string error = error_of([] { acc::absolute_path("x"); });
  fs::current_path(before);
  CHECK(error == "the current folder was removed (change to another folder)");
}

TEST_CASE("folders: the program's path is that by which it was called", "[base]") {
  CHECK(fs::equivalent(acc::program_path(), "/proc/self/exe"));
}

}  // namespace files_folders_test
