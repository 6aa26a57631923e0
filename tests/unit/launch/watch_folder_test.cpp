// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/watch_folder.hpp"

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace watch_folder_test {

using namespace acc;
using namespace acc::launcher;
namespace fs = std::filesystem;

TEST_CASE("watch_folder: what Python looks for at its start, for the user alone", "[launch]") {
  const test::TemporaryFolder parent;
  const fs::path folder = parent.path() / "job.watch";
  make_watch_folder(folder);
  CHECK(fs::status(folder).permissions() == fs::perms::owner_all);
  CHECK(fs::file_size(folder / "sitecustomize.py") > 0);
  CHECK(fs::file_size(folder / "acc_watch.py") > 0);
  CHECK(fs::file_size(folder / "acc_progress.py") > 0);
}

TEST_CASE("watch_folder: one that exists belongs to somebody else", "[launch]") {
  const test::TemporaryFolder parent;
  CHECK(test::error_of([&] { make_watch_folder(parent.path()); }).find("cannot be created: File exists") !=
        std::string::npos);
}

TEST_CASE("watch_folder: a path that PYTHONPATH cannot hold is refused", "[launch]") {
  const test::TemporaryFolder parent;
  CHECK(test::error_of([&] { make_watch_folder(parent.path() / "a:b"); }).find("has a ':' in its path") !=
        std::string::npos);
  CHECK(fs::is_empty(parent.path()));
}

}  // namespace watch_folder_test
