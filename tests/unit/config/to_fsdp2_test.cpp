// SPDX-License-Identifier: Apache-2.0
#include "acc/config/to_fsdp2.hpp"

#include <algorithm>

#include "acc/config/document.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/recordings.hpp"

using acc::launcher::to_fsdp2;

namespace {

acc::launcher::Value meaning(const std::string& text) {
  return to_value(acc::launcher::parse_document(text, "c.yaml"));
}

}  // namespace

TEST_CASE("to_fsdp2: files come to mean what accelerate makes of them", "[config]") {
  for (const std::string& name : acc::test::recordings("tofsdp2_")) {
    INFO(name);
    const auto recorded = acc::test::recording(name);
    const acc::launcher::Fsdp2Text result = to_fsdp2(recorded.at("before").get<std::string>(), "c.yaml");
    CHECK(meaning(result.text) == meaning(recorded.at("after")));
    for (const auto& key : recorded.at("dropped_keys")) {
      CHECK(std::ranges::any_of(result.notes, [&](const std::string& note) {
        return note.starts_with(key.get<std::string>() + " in line ");
      }));
    }
  }
}

TEST_CASE("to_fsdp2: comments and order stay", "[config]") {
  CHECK(to_fsdp2("# mine\n"
                 "fsdp_config:  # sharding\n"
                 "  fsdp_sharding_strategy: SHARD_GRAD_OP  # like ZeRO 2\n"
                 "  fsdp_use_orig_params: true\n"
                 "  fsdp_offload_params: no  # enough memory\n"
                 "distributed_type: FSDP\n",
                 "c.yaml") ==
        acc::launcher::Fsdp2Text{
            "# mine\n"
            "fsdp_config:  # sharding\n"
            "  fsdp_reshard_after_forward: false  # like ZeRO 2\n"
            "  fsdp_offload_params: no  # enough memory\n"
            "  fsdp_version: 2\n"
            "distributed_type: FSDP\n",
            {"fsdp_use_orig_params in line 4 is left out: version 2 has no such setting"}});
}

TEST_CASE("to_fsdp2: JSON stays JSON", "[config]") {
  CHECK(to_fsdp2(R"({"fsdp_config": {"fsdp_sharding_strategy": 1, "fsdp_version": 1}, "a": 1})", "c.json")
            .text ==
        "{\n  \"fsdp_config\": {\n    \"fsdp_reshard_after_forward\": true,\n    \"fsdp_version\": 2\n  },\n"
        "  \"a\": 1\n}\n");
}

TEST_CASE("to_fsdp2: what is no config file is refused", "[config]") {
  CHECK(acc::test::error_of([] { to_fsdp2("", "c.yaml"); }) == "c.yaml: is empty");
}
