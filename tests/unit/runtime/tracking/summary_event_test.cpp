// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/tracking/summary_event.hpp"

#include "support/catch.hpp"

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

// The bytes are those of tensorboard 2.21's protobuf classes, filled by torch 2.11's torch.utils.tensorboard.

TEST_CASE("summary event: the first of a file tells the version", "[runtime]") {
  CHECK(hex(acc::version_event(1.5)) == "09000000000000f83f1a0d627261696e2e4576656e743a32");
}

TEST_CASE("summary event: numbers and truth values are scalars, with a step or without", "[runtime]") {
  CHECK(hex(acc::value_event({1.5, 300}, "loss", 0.25)) ==
        "09000000000000f83f10ac022a0d0a0b0a046c6f7373150000803e");
  CHECK(hex(acc::value_event({1.5}, "a/b", 3)) == "09000000000000f83f2a0c0a0a0a03612f621500004040");
  CHECK(hex(acc::value_event({1.5, -1}, "loss", true)) ==
        "09000000000000f83f10ffffffffffffffffff012a0d0a0b0a046c6f7373150000803f");
}

TEST_CASE("summary event: text is a tensor of the text plugin", "[runtime]") {
  CHECK(hex(acc::value_event({1.5, 2}, "note", "gr\u00fcn")) ==
        "09000000000000f83f10022a300a2e0a116e6f74652f746578745f73756d6d617279420f0807120412020801"
        "42056772c3bc6e4a080a060a0474657874");
}

TEST_CASE("summary event: hyper-parameters are three events", "[runtime]") {
  const std::vector<std::string> events = acc::hyper_parameter_events(1.5, {{"lr", 0.5}, {"name", "big"}});
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
