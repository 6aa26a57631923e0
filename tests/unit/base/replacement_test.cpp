// SPDX-License-Identifier: Apache-2.0
#include "acc/base/replacement.hpp"

#include <stdexcept>
#include <string>

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace replacement_test {

namespace fs = std::filesystem;

using acc::ReplacementCheck;
using acc::test::TemporaryFolder;

TEST_CASE("replacement: a folder is replaced by another, not by what comes and goes in it", "[base]") {
  const TemporaryFolder folder;
  folder.write("saved/part", "old");
  folder.write("next/part", "new");
  const ReplacementCheck check({folder.path() / "saved"});
  folder.write("saved/log", "more");
  CHECK_FALSE(check.replaced());
  fs::remove_all(folder.path() / "saved");
  fs::rename(folder.path() / "next", folder.path() / "saved");
  CHECK(check.replaced());
}

TEST_CASE("replacement: a file is replaced when it is written to, removed or created", "[base]") {
  const TemporaryFolder folder;
  const fs::path file = folder.write("index", "old");
  const ReplacementCheck check({folder.path(), file});
  const ReplacementCheck of_missing({folder.path() / "none"});
  CHECK_FALSE(check.replaced());
  CHECK_FALSE(of_missing.replaced());
  SECTION("written to") {
    folder.write("index", "newer");
  }
  SECTION("removed") {
    fs::remove(file);
  }
  CHECK(check.replaced());
  folder.write("none", "");
  CHECK(of_missing.replaced());
}

TEST_CASE("replacement: what was replaced while it was read is read again, also after an error", "[base]") {
  const TemporaryFolder folder;
  const fs::path file = folder.write("file", "1");
  int reads = 0;
  const std::string text = acc::read_unreplaced({file}, [&] {
    std::string read = folder.read("file");
    if (++reads < 3) folder.write("file", read + "2");
    if (reads == 2) throw acc::Error({.what = "half of it was gone", .where = "file"});
    return read;
  });
  CHECK(text == "122");
  CHECK(reads == 3);
}

TEST_CASE("replacement: an error of what stayed is thrown, and reading ends", "[base]") {
  const TemporaryFolder folder;
  const fs::path file = folder.write("file", "");
  int reads = 0;
  CHECK(acc::test::error_of([&] {
          acc::read_unreplaced({file}, [&]() -> int {
            ++reads;
            throw acc::Error({.what = "is damaged", .where = "file"});
          });
        }) == "file: is damaged");
  CHECK(reads == 1);
  CHECK(acc::test::error_of([&] {
          acc::read_unreplaced({file}, [&] { return folder.write("file", std::string(++reads, 'x')); });
        }).starts_with(file.string() + ": is replaced again and again while it is read"));
}

TEST_CASE("replacement: processes agree also when one throws something else than an Error", "[base]") {
  const TemporaryFolder folder;
  int agreements = 0;
  const auto agree = [&](bool replaced) {
    ++agreements;
    return replaced;
  };
  const auto read = []() -> int { throw std::runtime_error("of a hook"); };
  CHECK_THROWS_AS(acc::read_unreplaced({folder.path()}, read, agree), std::runtime_error);
  CHECK(agreements == 1);
}

}  // namespace replacement_test
