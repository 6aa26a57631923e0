// SPDX-License-Identifier: Apache-2.0
#include "acc/config/assign.hpp"

#include "support/catch.hpp"
#include "support/errors.hpp"

namespace assign_test {

using acc::launcher::assign;
using acc::launcher::ConfigValues;
using acc::launcher::display;
using acc::launcher::find_value;
using acc::launcher::Value;
using acc::test::error_of;

TEST_CASE("assign: values get the types of their settings", "[config]") {
  ConfigValues values = {{"distributed_type", "NO"}, {"gpu_ids", "all"}};
  assign(values,
         {"num_processes=4", "gpu_ids=", "mixed_precision=no", "tpu_vm=a,b", "fsdp_config.fsdp_version=2"});
  CHECK(values == ConfigValues{{"distributed_type", "NO"},
                               {"num_processes", 4},
                               {"mixed_precision", "no"},
                               {"tpu_vm", {"a", "b"}},
                               {"fsdp_config", {{"fsdp_version", 2}}}});
  assign(values, {"fsdp_config.fsdp_version="});
  CHECK(values.at("fsdp_config") == Value::object());
}

TEST_CASE("assign: all errors are reported at once, and nothing is changed", "[config]") {
  ConfigValues values = {{"distributed_type", "NO"}};
  CHECK(error_of([&] {
          assign(values, {"num_processes=2", "num_proceses=2", "debug=maybe", "debug", "debug.x=1",
                          "distributed_type="});
        }) ==
        "num_proceses=2: unknown key 'num_proceses' (did you mean 'num_processes'?)\n"
        "debug=maybe: debug must be true or false, not 'maybe'\n"
        "debug: is not KEY=VALUE (as in num_processes=8; `acc config --help` shows the commands)\n"
        "debug.x=1: debug is not a section\n"
        "distributed_type=: distributed_type cannot be removed");
  CHECK(values == ConfigValues{{"distributed_type", "NO"}});
  CHECK(
      error_of([&] { assign(values, {"zero_stage=2", "fsdp_config.fsdp_versio=2", "fp8_config={}"}); }) ==
      "zero_stage=2: unknown key 'zero_stage' (did you mean 'deepspeed_config.zero_stage'?)\n"
      "fsdp_config.fsdp_versio=2: 'fsdp_versio' is not a key of fsdp_config (did you mean 'fsdp_version'?)\n"
      "fp8_config={}: fp8_config is a section (name a key inside, as in fp8_config.KEY=VALUE)");
}

TEST_CASE("assign: keys inside of sections have types, and names of today", "[config]") {
  ConfigValues values = {{"distributed_type", "DEEPSPEED"}};
  assign(values, {"deepspeed_config.zero_stage=3", "fp8_config.override_linear_precision=true,no,1",
                  "fp8_config.fp8_backend=te", "parallelism_config.tp_size=2"});
  CHECK(values.at("deepspeed_config") == Value{{"zero_stage", 3}});
  CHECK(values.at("fp8_config") ==
        Value{{"override_linear_precision", {true, false, true}}, {"backend", "TE"}});
  CHECK(values.at("parallelism_config") == Value{{"parallelism_config_tp_size", 2}});
}

TEST_CASE("assign: a value is found with its default, and inside of sections", "[config]") {
  const ConfigValues values = {{"distributed_type", "FSDP"}, {"fsdp_config", {{"fsdp_version", 2}}}};
  CHECK(find_value(values, "distributed_type") == "FSDP");
  CHECK(find_value(values, "num_machines") == 1);
  CHECK(find_value(values, "fsdp_config.fsdp_version") == 2);
  CHECK(find_value(values, "fsdp_config.version") == 2);
  CHECK(error_of([&] { find_value(values, "fsdp_config.other"); }) == "'other' is not a key of fsdp_config");
  CHECK(find_value(values, "tpu_name").is_null());
  CHECK(error_of([&] { find_value(values, "num_machine"); }) ==
        "unknown key 'num_machine' (did you mean 'num_machines'?)");
}

TEST_CASE("assign: values are shown as they are written in an assignment", "[config]") {
  CHECK(display("a b") == "a b");
  CHECK(display(true) == "true");
  CHECK(display(1.5) == "1.5");
  CHECK(display(Value{{"a", 1}}) == "{\"a\":1}");
}

}  // namespace assign_test
