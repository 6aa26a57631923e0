// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/tracking/event_file.hpp"

#include <unistd.h>

#include "event_records.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace fs = std::filesystem;

TEST_CASE("event file: the checksum is CRC-32C", "[runtime]") {
  CHECK(acc::crc32c("123456789") == 0xe3069283U);  // the catalogues' check value
  CHECK(acc::crc32c("") == 0);
}

TEST_CASE("event file: a record is what tensorboard's RecordWriter writes", "[runtime]") {
  using namespace std::string_literals;
  CHECK(acc::framed_record("123456789") ==
        "\x09\0\0\0\0\0\0\0\x37\xf9\x71\x39"s
        "123456789"
        "\xe5\xb0\x8a\xc7"s);
}

TEST_CASE("event file: begins with the version, and holds each event when append returns", "[runtime]") {
  const acc::test::TemporaryFolder folder;
  acc::EventFile first(folder.path());
  acc::EventFile second(folder.path());
  first.append("an event");
  first.append(std::string(300, 'x'));
  const std::vector<fs::path> files = acc::test::event_files(folder.path());
  REQUIRE(files.size() == 2);
  CHECK(files.at(0).filename().string().find("." + std::to_string(::getpid()) + ".") != std::string::npos);
  const std::vector<std::string> records = acc::test::event_records(files.at(0));
  REQUIRE(records.size() == 3);
  CHECK(records.at(0).ends_with("brain.Event:2"));
  CHECK(records.at(1) == "an event");
  CHECK(records.at(2) == std::string(300, 'x'));
  CHECK(acc::test::event_records(files.at(1)).size() == 1);
}
