// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/zip_writer.hpp"

#include "acc/formats/zip_archive.hpp"
#include "support/catch.hpp"

namespace zip_writer_test {

namespace {

std::string written(acc::detail::ZipWriter& zip) {
  std::string bytes;
  for (const std::string_view part : zip.finish()) bytes += part;
  return bytes;
}

}  // namespace

TEST_CASE("zip writer: files can be read, with 32-bit numbers and with 64-bit ones", "[runtime]") {
  acc::detail::ZipWriter zip(GENERATE(std::uint64_t{0xffffffff}, std::uint64_t{0}));
  const std::string large(5000, 'x');
  zip.add("archive/a", "12345678");
  zip.add("archive/empty", "");
  zip.add("archive/large", large);
  const std::string bytes = written(zip);
  const acc::ZipEntries entries = acc::read_zip(bytes);
  REQUIRE(entries.size() == 3);
  CHECK(entries.at("archive/a") == "12345678");
  CHECK(entries.at("archive/empty").empty());
  CHECK(entries.at("archive/large") == large);
}

TEST_CASE("zip writer: each file begins at a multiple of 64", "[runtime]") {
  acc::detail::ZipWriter zip(GENERATE(std::uint64_t{0xffffffff}, std::uint64_t{0}));
  for (std::size_t length = 1; length < 70; ++length) zip.add(std::string(length, 'n'), "1");
  const std::string bytes = written(zip);
  for (const auto& [name, data] : acc::read_zip(bytes)) CHECK((data.data() - bytes.data()) % 64 == 0);
}

}  // namespace zip_writer_test
