// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/inert_arguments.hpp"

#include <nlohmann/json.hpp>
#include <set>

#include "acc/base/files.hpp"
#include "acc/runtime/trainer/training_arguments.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace inert_arguments_test {

using acc::test::error_of;
using Json = nlohmann::json;

namespace {

constexpr const char* kDefaults = ACC_TEST_DATA "/runtime/training_arguments.json";

std::string refusal(const char* name, const Json& value) {
  return error_of([&] { acc::detail::require_inert(*acc::detail::find_inert_argument(name), value, name); });
}

void parse(const char* flag, const char* text) {
  const std::array words = {"train", flag, text};
  acc::parse_training_arguments(int(words.size()), words.data());
}

}  // namespace

TEST_CASE("inert_arguments: the JSON of transformers' defaults is that of the defaults here", "[runtime]") {
  acc::TrainingArguments defaults;
  defaults.output_dir = "out";
  defaults.disable_tqdm = false;
  CHECK(acc::read_training_arguments(kDefaults) == defaults);
}

TEST_CASE("inert_arguments: each default of transformers is taken as a flag", "[runtime]") {
  const Json defaults = Json::parse(acc::read_file(kDefaults));
  for (const auto& [name, value] : defaults.items()) {
    const auto* argument = acc::detail::find_inert_argument(name);
    if (!argument || value.is_array()) continue;  // a flag has no empty list
    CAPTURE(name);
    const std::string text = value.is_null()      ? "None"
                             : value.is_boolean() ? (value.get<bool>() ? "True" : "False")
                             : value.is_string()  ? value.get<std::string>()
                                                  : value.dump();
    CHECK_NOTHROW(parse(("--" + name).c_str(), text.c_str()));
  }
}

TEST_CASE("inert_arguments: a value that would change the training is refused with what to use instead",
          "[runtime]") {
  CHECK(refusal("neftune_noise_alpha", 5) ==
        "neftune_noise_alpha: 5 is not supported (add the noise in the module's forward)");
  CHECK(refusal("push_to_hub", true) ==
        "push_to_hub: true is not supported (upload output_dir after the training)");
  CHECK(refusal("torch_compile_mode", "max-autotune") ==
        "torch_compile_mode: \"max-autotune\" is not supported (LibTorch does not compile modules: leave it "
        "out)");
  CHECK(error_of([] { parse("--deepspeed", "zero3.json"); }) ==
        "--deepspeed: \"zero3.json\" is not supported (shard the model: fsdp)");

  const acc::test::TemporaryFolder folder;
  const auto file = folder.write("arguments.json", R"({"torch_compile": true})");
  CHECK(error_of([&] { acc::read_training_arguments(file); }) ==
        file.string() +
            ": torch_compile: true is not supported (LibTorch does not compile modules: leave it out)");
}

TEST_CASE("inert_arguments: a key of an object is refused by its name", "[runtime]") {
  const acc::test::TemporaryFolder folder;
  const auto file = folder.write("arguments.json", R"({"fsdp": true, "fsdp_config": {"cpu_offload": true}})");
  CHECK(error_of([&] { acc::read_training_arguments(file); }) ==
        file.string() +
            ": fsdp_config: cpu_offload: true is not supported (parameters stay on their device)");
  CHECK(
      error_of([] { parse("--accelerator_config", R"({"use_seedable_sampler": false})"); }) ==
      "--accelerator_config: use_seedable_sampler: false is not supported (orders are those of the seedable "
      "sampler)");
}

TEST_CASE("inert_arguments: every refusal says what to use, and its values are an array", "[runtime]") {
  std::set<std::string_view> names;
  for (const auto& argument : acc::detail::inert_arguments()) {
    CAPTURE(argument.name);
    CHECK(names.insert(argument.name).second);
    CHECK(argument.values.empty() == argument.hint.empty());
    if (!argument.values.empty()) CHECK(Json::parse(argument.values).is_array());
  }
}

TEST_CASE("inert_arguments: what matters only to others is taken at any value", "[runtime]") {
  CHECK(refusal("hub_token", "<HUB_TOKEN>") == "no error");
  CHECK(refusal("local_rank", 3) == "no error");
  CHECK(refusal("dataloader_persistent_workers", true) == "no error");
}

TEST_CASE("inert_arguments: the guide names each of them, or those that begin alike together", "[runtime]") {
  const std::string page = acc::read_file(ACC_SAMPLE_CONFIGS "/../apps/docs/trainer.md");
  for (const auto& argument : acc::detail::inert_arguments()) {
    if (argument.name.find('.') != std::string_view::npos) continue;
    const std::string name(argument.name);
    CAPTURE(name);
    const std::string family = name.substr(0, name.find('_')) + "_*";
    CHECK((page.find("`" + name + "`") != page.npos || page.find("`" + family + "`") != page.npos));
  }
}

}  // namespace inert_arguments_test
