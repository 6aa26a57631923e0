// SPDX-License-Identifier: Apache-2.0
#include "acc/base/file_id.hpp"

#include <fcntl.h>

#include <cerrno>
#include <filesystem>

#include "acc/base/files.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace file_id_test {

namespace fs = std::filesystem;

TEST_CASE("file_id: a file keeps its id under another name, and its name may become another file's",
          "[base]") {
  const acc::test::TemporaryFolder folder;
  const fs::path name = folder.write("log", "first");
  const acc::Descriptor file(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
  const auto opened = acc::file_id(file.get());
  REQUIRE(opened);
  CHECK(opened == acc::file_id(name));
  fs::create_symlink(name, folder.path() / "link");
  CHECK(opened == acc::file_id(folder.path() / "link"));
  fs::rename(name, folder.path() / "log.1");
  CHECK(opened == acc::file_id(folder.path() / "log.1"));
  CHECK_FALSE(acc::file_id(name));
  CHECK(errno == ENOENT);
  folder.write("log", "second");
  CHECK(opened != acc::file_id(name));
  CHECK(opened == acc::file_id(file.get()));
}

TEST_CASE("file_id: what is not open has none", "[base]") {
  CHECK_FALSE(acc::file_id(-1));
  CHECK(errno == EBADF);
}

}  // namespace file_id_test
