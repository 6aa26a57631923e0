// SPDX-License-Identifier: Apache-2.0
#include "acc/config/interview.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace interview_answers_test {

using acc::launcher::AnswerSheet;
using acc::launcher::Interview;
using acc::test::error_of;

namespace {

AnswerSheet sheet_of(const std::string& text) {
  const acc::test::TemporaryFolder folder;
  AnswerSheet sheet = acc::launcher::read_answers(folder.write("answers.yaml", text));
  for (auto& [name, position] : sheet.positions) position = position.substr(position.rfind('/') + 1);
  return sheet;
}

acc::launcher::ConfigValues values_of(const std::string& text) {
  Interview interview({.gpus = 8});
  answer_all(interview, sheet_of(text));
  return interview.values();
}

}  // namespace

TEST_CASE("answers: questions are answered by name or by key, the others by their defaults", "[config]") {
  const acc::launcher::ConfigValues values =
      values_of("distributed_type: multi-GPU\nnum_processes: 8\nmixed_precision: no\ngpu_ids: 0\n");
  CHECK(values.at("distributed_type") == "MULTI_GPU");
  CHECK(values.at("num_processes") == 8);
  CHECK(values.at("mixed_precision") == "no");
  CHECK(values.at("gpu_ids") == "0");
  CHECK(values.at("num_machines") == 1);
}

TEST_CASE("answers: the items of a list are one answer, or those to a question that is asked again",
          "[config]") {
  CHECK(values_of("gpu_ids: [0, 2]\n").at("gpu_ids") == "0,2");
  const acc::launcher::ConfigValues pod = values_of(
      "distributed_type: TPU\ntpu_use_cluster: yes\ntpu_name: a\ntpu_zone: b\ntpu_startup: yes\n"
      "commands: [sync a, run b, end]\ntpu_vm: [c, d]\n");
  CHECK(pod.at("commands") == acc::launcher::Value{"sync a", "run b", "end"});
  CHECK(pod.at("tpu_vm") == acc::launcher::Value{"c", "d"});
}

TEST_CASE("answers: an answer without a question is an error with its line", "[config]") {
  CHECK(error_of([] { values_of("num_proceses: 8\n"); }) ==
        "answers.yaml:1: unknown question 'num_proceses' (did you mean 'num_processes'?)");
  CHECK(error_of([] {
          values_of("debug: yes\nmachine_rank: 1\n");
        }).starts_with("answers.yaml:1: 'debug' was not asked: earlier answers rule it out"));
}

TEST_CASE("answers: a refused answer is an error with its reason", "[config]") {
  CHECK(error_of([] {
          values_of("distributed_type: multi-GPU\nnum_processes: many\n");
        }).find("answers.yaml:2: ") != std::string::npos);
}

TEST_CASE("answers: a number that its setting does not allow is refused, in sections too", "[config]") {
  const std::string gpus = "distributed_type: multi-GPU\nnum_processes: 2\n";
  const auto refused = [&](const std::string& answers) {
    const std::string error = error_of([&] { values_of(gpus + answers); });
    return error.find("must be at least 1, not 0") != std::string::npos;
  };
  CHECK(refused("num_machines: 0\n"));
  CHECK(refused("deepspeed: yes\ndeepspeed_gradient_accumulation_steps: 0\n"));
  CHECK(
      refused("fsdp: yes\nfsdp_version: 2\nfsdp_auto_wrap_policy: NO_WRAP\nparallelism: "
              "yes\nparallelism_config_tp_size: 0\n"));
  CHECK(refused("megatron: yes\nmegatron_lm_tp_degree: 0\n"));
  CHECK(refused("mixed_precision: fp8\nfp8_backend: te\nfp8_interval: 0\n"));
  CHECK_FALSE(refused("megatron: yes\nmegatron_lm_tp_degree: 1\n"));
}

TEST_CASE("answers: other files than answer sheets are refused", "[config]") {
  CHECK(error_of([] { sheet_of("- a\n"); }).ends_with("has no `question: answer` lines"));
  CHECK(error_of([] { sheet_of("a: {b: c}\n"); }).ends_with(":1: the answer to 'a' must not be a mapping"));
  CHECK(error_of([] { sheet_of("a: 1\na: 2\n"); }).ends_with(":2: 'a' is answered already"));
}

}  // namespace interview_answers_test
