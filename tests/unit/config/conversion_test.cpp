// SPDX-License-Identifier: Apache-2.0
#include "acc/config/conversion.hpp"

#include "support/catch.hpp"
#include "support/setting_called.hpp"

namespace conversion_test {

using acc::launcher::Mismatch;
using acc::launcher::Value;

namespace {

// The value of `key: text` in a YAML file, or the error.
Value in_file(const std::string& key, const std::string& text) {
  const acc::launcher::DocumentNode root = acc::launcher::parse_document(key + ": " + text, "c.yaml");
  const auto result = convert(acc::test::setting_called(key), root.items.at(0));
  if (const auto* mismatch = std::get_if<Mismatch>(&result)) return "wrong: " + mismatch->what;
  return std::get<Value>(result);
}

Value typed(const std::string& key, const std::string& text) {
  const auto result = convert(acc::test::setting_called(key), text);
  if (const auto* mismatch = std::get_if<Mismatch>(&result)) return "wrong: " + mismatch->what;
  return std::get<Value>(result);
}

}  // namespace

TEST_CASE("conversion: text keys keep what YAML 1.1 would turn into something else", "[config]") {
  CHECK(in_file("distributed_type", "NO") == "NO");
  CHECK(in_file("distributed_type", "no") == "NO");
  CHECK(in_file("mixed_precision", "no") == "no");
  CHECK(in_file("mixed_precision", "false") == "no");
  CHECK(in_file("gpu_ids", "0") == "0");
  CHECK(in_file("gpu_ids", "0,1") == "0,1");
  CHECK(in_file("tpu_name", "1:30") == "1:30");
  CHECK(in_file("main_process_ip", "null").is_null());
}

TEST_CASE("conversion: a value that is not allowed names the allowed ones and the nearest", "[config]") {
  const auto result = acc::launcher::convert(acc::test::setting_called("mixed_precision"), "fp61");
  CHECK(std::get<Mismatch>(result) ==
        Mismatch{"mixed_precision must be one of no, fp16, bf16, fp8, not 'fp61'", "did you mean 'fp16'?"});
}

TEST_CASE("conversion: whole numbers may be quoted and have a range", "[config]") {
  CHECK(in_file("num_processes", "8") == 8);
  CHECK(in_file("num_processes", "'8'") == 8);
  CHECK(in_file("num_processes", "two") == "wrong: num_processes must be a whole number, not 'two'");
  CHECK(in_file("num_processes", "8.5") == "wrong: num_processes must be a whole number, not '8.5'");
  CHECK(in_file("num_processes", "[8]") == "wrong: num_processes must be a single value, not a list");
  CHECK(in_file("num_processes", "0") == "wrong: num_processes must be at least 1, not 0");
  CHECK(in_file("main_process_port", "65536") == "wrong: main_process_port must be at most 65535, not 65536");
  CHECK(in_file("main_process_port", "0") == 0);
}

TEST_CASE("conversion: every truth word is a truth value", "[config]") {
  for (const char* text : {"yes", "on", "TRUE", "1", "'true'", "'Y'"}) CHECK(in_file("debug", text) == true);
  for (const char* text : {"no", "off", "False", "0", "'no'"}) CHECK(in_file("debug", text) == false);
  CHECK(in_file("debug", "maybe") == "wrong: debug must be true or false, not 'maybe'");
}

TEST_CASE("conversion: numbers may be written as YAML 1.1 does not know them", "[config]") {
  CHECK(in_file("shutdown_timeout", "1e-1") == 0.1);
  CHECK(in_file("shutdown_timeout", "3") == 3.0);
  CHECK(in_file("shutdown_timeout", "x") == "wrong: shutdown_timeout must be a number, not 'x'");
  for (const char* endless : {".inf", "-.inf", ".nan"})
    CHECK(in_file("gradient_clipping", endless) ==
          "wrong: gradient_clipping must be a number, not '" + std::string(endless) + "'");
}

TEST_CASE("conversion: lists hold texts and sections are mappings", "[config]") {
  CHECK(in_file("commands", "[echo a, 1, no]") == Value::array({"echo a", "1", "no"}));
  CHECK(in_file("commands", "echo") == "wrong: commands must be a list, not 'echo'");
  CHECK(in_file("fsdp_config", "{fsdp_version: 2, x: {y: [1, no]}}") ==
        Value{{"fsdp_version", 2}, {"x", {{"y", {1, false}}}}});
  CHECK(in_file("fsdp_config", "2") == "wrong: fsdp_config must be a mapping, not '2'");
  CHECK(in_file("dynamo_backend", "no") == "NO");
  CHECK(in_file("fsdp_sharding_strategy", "3") == "NO_SHARD");
  CHECK(in_file("fsdp_reshard_after_forward", "hybrid_shard") == "HYBRID_SHARD");
  CHECK(in_file("fsdp_reshard_after_forward", "'no'") == false);
}

TEST_CASE("conversion: text from the command line follows the same rules", "[config]") {
  CHECK(typed("num_processes", "4") == 4);
  CHECK(typed("num_processes", "4x") == "wrong: num_processes must be a whole number, not '4x'");
  CHECK(typed("gpu_ids", "0") == "0");
  CHECK(typed("debug", "on") == true);
  CHECK(typed("tpu_vm", "a,b") == Value::array({"a", "b"}));
  CHECK(typed("mixed_precision", "no") == "no");
}

}  // namespace conversion_test
