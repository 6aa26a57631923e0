// SPDX-License-Identifier: Apache-2.0
#include "acc/config/former_keys.hpp"

#include "support/catch.hpp"

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

TEST_CASE("former_keys: fp16 becomes mixed_precision unless the file says that itself", "[config]") {
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

TEST_CASE("former_keys: keys that accelerate gave up are taken out with a note", "[config]") {
  const Translated result = translate("debug: true\nipex_config: {ipex: false}\nuse_xpu: true\n");
  CHECK(result.value == Value{{"debug", true}});
  CHECK(result.gone ==
        std::vector<acc::launcher::FormerKey>{{"ipex_config", {2, 1}, "PyTorch does itself what IPEX did"},
                                              {"use_xpu", {3, 1}, "XPUs are chosen by distributed_type"}});
}
