// SPDX-License-Identifier: Apache-2.0
#include "acc/store/file_log.hpp"

#include "acc/base/error.hpp"
#include "support/catch.hpp"

namespace file_log_test {

using namespace std::string_literals;
using acc::launcher::FileLog;

namespace {

// The file of torch 2.11 and 2.15 after set("a", "1"), add("n", 2), set("a", "2"), delete_key("n").
const std::string kByTorch =
    "\x09\0\0\0refcount/\x01\0\0\0"
    "1"
    "\x02\0\0\0/a\x01\0\0\0"
    "1"
    "\x02\0\0\0/n\x01\0\0\0"
    "2"
    "\x02\0\0\0/a\x01\0\0\0"
    "2"
    "\x03\0\0\0-/n\0\0\0\0"s;

std::string value(const FileLog& log, const std::string& key) {
  const std::string* found = log.find(key);
  return found == nullptr ? "(none)" : *found;
}

}  // namespace

TEST_CASE("file_log: what torch wrote is read, the last entry of a key counts", "[store]") {
  FileLog log;
  CHECK(log.read(kByTorch) == kByTorch.size());
  CHECK(value(log, "/a") == "2");
  CHECK(value(log, "/n") == "(none)");
  CHECK(value(log, "refcount/") == "1");
  CHECK(acc::launcher::file_log_entry("/a", "1") == "\x02\0\0\0/a\x01\0\0\0"s + "1");
  CHECK(acc::launcher::file_log_deletion("/n") == "\x03\0\0\0-/n\0\0\0\0"s);
}

TEST_CASE("file_log: an incomplete entry is read when the rest has arrived", "[store]") {
  for (std::size_t cut = 0; cut <= kByTorch.size(); ++cut) {
    FileLog log;
    const std::size_t read = log.read(std::string_view(kByTorch).substr(0, cut));
    REQUIRE(read <= cut);
    CHECK(log.read(std::string_view(kByTorch).substr(read)) == kByTorch.size() - read);
    CHECK(value(log, "/a") == "2");
  }
}

TEST_CASE("file_log: another file is refused at once", "[store]") {
  for (const std::string& text :
       {"root:x:0:0:root:/root:/bin/bash\n"s, "\x7f"s + "ELF\x02\x01\x01"s, "\0\0\0\0\0\0\0\0"s,
        "\x02\0\0\0ab\x01\0\0\0x"s, "\x01\0\0\0/\xff\xff\xff\xff"s}) {
    FileLog log;
    CHECK_THROWS_AS(log.read(text), acc::Error);
  }
}

}  // namespace file_log_test
