// SPDX-License-Identifier: Apache-2.0
#include "acc/config/migration.hpp"

#include <algorithm>

#include "acc/config/document.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/recordings.hpp"

namespace migration_test {

using acc::launcher::to_fsdp2;
using acc::launcher::Value;

namespace {

struct Translated {
  Value value = {};
  std::vector<acc::launcher::FormerKey> gone = {};
};

Translated translate(const std::string& yaml) {
  acc::launcher::DocumentNode root = acc::launcher::parse_document(yaml, "c.yaml");
  Translated result;
  result.gone = translate_former_keys(root);
  result.value = to_value(root);
  return result;
}

}  // namespace

TEST_CASE("former_keys: fp16 becomes mixed_precision, unless the file sets that", "[config]") {
  CHECK(translate("fp16: true").value == Value{{"mixed_precision", "fp16"}});
  CHECK(translate("fp16: 'yes'").value == Value{{"mixed_precision", "fp16"}});
  CHECK(translate("{fp16: false, debug: true}").value == Value{{"debug", true}});
  CHECK(translate("{fp16: true, mixed_precision: bf16}").value == Value{{"mixed_precision", "bf16"}});
}

TEST_CASE("former_keys: dynamo_backend replaces the section", "[config]") {
  CHECK(translate("{dynamo_backend: INDUCTOR, dynamo_config: {dynamo_mode: default}}").value ==
        Value{{"dynamo_config", {{"dynamo_backend", "INDUCTOR"}}}});
  CHECK(translate("dynamo_backend: 'NO'").value == Value{{"dynamo_config", Value::object()}});
  CHECK(translate("dynamo_backend: NO").value == Value{{"dynamo_config", Value::object()}});
}

TEST_CASE("former_keys: num_processes -1 leaves the number to the command line", "[config]") {
  CHECK(translate("{num_processes: -1, debug: true}").value == Value{{"debug", true}});
  CHECK(translate("num_processes: 2").value == Value{{"num_processes", 2}});
}

TEST_CASE("former_keys: keys that accelerate dropped are removed with a note", "[config]") {
  const Translated result = translate("debug: true\nipex_config: {ipex: false}\nuse_xpu: true\n");
  CHECK(result.value == Value{{"debug", true}});
  CHECK(result.gone ==
        std::vector<acc::launcher::FormerKey>{{"ipex_config", {2, 1}, "PyTorch does itself what IPEX did"},
                                              {"use_xpu", {3, 1}, "XPUs are chosen by distributed_type"}});
}

namespace {

acc::launcher::Value meaning(const std::string& text) {
  return to_value(acc::launcher::parse_document(text, "c.yaml"));
}

}  // namespace

TEST_CASE("to_fsdp2: files are converted as by accelerate", "[config]") {
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

TEST_CASE("to_fsdp2: other files than config files are refused", "[config]") {
  CHECK(acc::test::error_of([] { to_fsdp2("", "c.yaml"); }) == "c.yaml: is empty");
}

}  // namespace migration_test
