// SPDX-License-Identifier: Apache-2.0
#include "acc/formats/zip_archive.hpp"

#include <filesystem>
#include <string>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

namespace zip_archive_test {

namespace {

// Written by tests/parity/record_zips.py.
std::string recorded(const std::string& name) {
  return acc::read_file(std::filesystem::path(ACC_TEST_DATA) / "zip" / (name + ".zip"));
}

std::string error_of(const std::string& archive) {
  return acc::test::error_of([&] { acc::read_zip(archive); });
}

}  // namespace

TEST_CASE("zip archive: files are found where Python put them, with 32-bit numbers and with 64-bit ones",
          "[formats]") {
  const std::string archive = recorded(GENERATE("plain", "wide"));
  const acc::ZipEntries entries = acc::read_zip(archive);
  REQUIRE(entries.size() == 2);
  CHECK(entries.at("a/data.pkl") == "\x80\x02N.");
  CHECK(entries.at("a/data/0") == "12345678");
}

TEST_CASE("zip archive: a compressed file is listed without bytes", "[formats]") {
  const std::string archive = recorded("deflated");
  CHECK(acc::read_zip(archive).at("a/data.pkl").data() == nullptr);
}

TEST_CASE("zip archive: other and truncated files are refused", "[formats]") {
  CHECK(error_of("") == "is not a zip archive, or is truncated");
  CHECK(error_of(std::string(1000, 'x')) == "is not a zip archive, or is truncated");
  const std::string whole = recorded(GENERATE("plain", "wide"));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    INFO(size);
    CHECK_THROWS_AS(acc::read_zip(std::string_view(whole).substr(0, size)), acc::Error);
  }
}

TEST_CASE("zip archive: a damaged one is never read out of bounds", "[formats]") {
  const std::string whole = recorded(GENERATE("plain", "wide"));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const char byte : {'\0', '\x01', '\x7f', '\xff'}) {
      std::string damaged = whole;
      damaged[at] = byte;
      try {
        for (const auto& [name, data] : acc::read_zip(damaged)) {
          if (data.data() == nullptr) continue;
          CHECK(data.data() >= damaged.data());
          CHECK(data.data() + data.size() <= damaged.data() + damaged.size());
        }
      } catch (const acc::Error&) {
        SUCCEED("refused");
      }
    }
  }
}

}  // namespace zip_archive_test
