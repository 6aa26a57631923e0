// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/unique_folder.hpp"

#include <sys/stat.h>

#include <cerrno>

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace unique_folder_test {

using acc::launcher::make_unique_folder;
namespace fs = std::filesystem;

TEST_CASE("unique_folder: each is another, for its user alone, and announced before", "[launch]") {
  const acc::test::TemporaryFolder parent;
  fs::path announced;
  const auto before = [&](const fs::path& folder) {
    CHECK_FALSE(fs::exists(folder));
    announced = folder;
  };
  const fs::path folder = make_unique_folder(parent.path() / "a_", before);
  CHECK(folder == announced);
  CHECK(folder.filename().string().starts_with("a_"));
  CHECK(fs::status(folder).permissions() == fs::perms::owner_all);
  CHECK(make_unique_folder(parent.path() / "a_", before) != folder);
}

TEST_CASE("unique_folder: none where no folder can be made", "[launch]") {
  CHECK(make_unique_folder("/proc/acc_", [](const fs::path&) {}).empty());
  CHECK(errno == ENOENT);
}

}  // namespace unique_folder_test
