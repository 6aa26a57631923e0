// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/tracking/event_file.hpp"

#include <unistd.h>

#include "event_records.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace event_file_test {

namespace {

std::string hex(const std::string& bytes) {
  std::string text;
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    text += {kDigits[value >> 4U], kDigits[value & 15U]};
  }
  return text;
}

}  // namespace

// The expected bytes were written by torch 2.11's torch.utils.tensorboard with the protobuf classes of
// tensorboard 2.21.

TEST_CASE("summary event: the first event of a file has the version", "[runtime]") {
  CHECK(hex(acc::detail::version_event(1.5)) == "09000000000000f83f1a0d627261696e2e4576656e743a32");
}

TEST_CASE("summary event: numbers and truth values are scalars, with a step or without", "[runtime]") {
  CHECK(hex(acc::detail::value_event({1.5, 300}, "loss", 0.25)) ==
        "09000000000000f83f10ac022a0d0a0b0a046c6f7373150000803e");
  CHECK(hex(acc::detail::value_event({1.5}, "a/b", 3)) == "09000000000000f83f2a0c0a0a0a03612f621500004040");
  CHECK(hex(acc::detail::value_event({1.5, -1}, "loss", true)) ==
        "09000000000000f83f10ffffffffffffffffff012a0d0a0b0a046c6f7373150000803f");
}

TEST_CASE("summary event: text is a tensor of the text plugin", "[runtime]") {
  CHECK(hex(acc::detail::value_event({1.5, 2}, "note", "gr\u00fcn")) ==
        "09000000000000f83f10022a300a2e0a116e6f74652f746578745f73756d6d617279420f0807120412020801"
        "42056772c3bc6e4a080a060a0474657874");
}

TEST_CASE("summary event: hyper-parameters are three events", "[runtime]") {
  const std::vector<std::string> events =
      acc::detail::hyper_parameter_events(1.5, {{"lr", 0.5}, {"name", "big"}});
  REQUIRE(events.size() == 3);
  CHECK(hex(events.at(0)) ==
        "09000000000000f83f2a3b0a390a145f68706172616d735f2f6578706572696d656e744a210a1f0a0768706172616d73"
        "1214121222060a026c72200322080a046e616d652001");
  CHECK(hex(events.at(1)) ==
        "09000000000000f83f2a510a4f0a1c5f68706172616d735f2f73657373696f6e5f73746172745f696e666f4a2f0a2d0a"
        "0768706172616d7312221a200a0f0a026c72120911000000000000e03f0a0d0a046e616d6512051a03626967");
  CHECK(hex(events.at(2)) ==
        "09000000000000f83f2a310a2f0a1a5f68706172616d735f2f73657373696f6e5f656e645f696e666f4a110a0f0a0768"
        "706172616d73120422020801");
}

namespace fs = std::filesystem;

TEST_CASE("event file: the checksum is CRC-32C", "[runtime]") {
  CHECK(acc::detail::crc32c("123456789") == 0xe3069283U);  // the published check value of CRC-32C
  CHECK(acc::detail::crc32c("") == 0);
}

TEST_CASE("event file: a record equals that of TensorBoard's RecordWriter", "[runtime]") {
  using namespace std::string_literals;
  CHECK(acc::detail::framed_record("123456789") ==
        "\x09\0\0\0\0\0\0\0\x37\xf9\x71\x39"s
        "123456789"
        "\xe5\xb0\x8a\xc7"s);
}

TEST_CASE("event file: it begins with the version, and contains each event when append returns",
          "[runtime]") {
  const acc::test::TemporaryFolder folder;
  acc::detail::EventFile first(folder.path());
  acc::detail::EventFile second(folder.path());
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

}  // namespace event_file_test
