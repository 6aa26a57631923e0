// SPDX-License-Identifier: Apache-2.0
#include "acc/config/questions.hpp"

namespace acc::launcher {

bool Answers::is(std::string_view question, const Value& answer) const {
  const auto found = given.find(question);
  return found != given.end() && found->second == answer;
}

std::int64_t Answers::number(std::string_view question) const {
  const auto found = given.find(question);
  return found != given.end() && found->second.is_number() ? found->second.get<std::int64_t>() : 0;
}

ConfigKind Answers::kind() const {
  return is("compute_environment", "AMAZON_SAGEMAKER") ? ConfigKind::sagemaker : ConfigKind::cluster;
}

std::string Answers::type() const {
  const auto found = values.find("distributed_type");
  return found == values.end() ? "NO" : found->second.get<std::string>();
}

bool Answers::on_cpu() const {
  const auto found = values.find("use_cpu");
  return found != values.end() && found->second == true;
}

std::int64_t Answers::machines() const {
  const auto found = values.find("num_machines");
  return found == values.end() ? 1 : found->second.get<std::int64_t>();
}

std::vector<Choice> words(std::initializer_list<std::string_view> labels) {
  std::vector<Choice> choices;
  for (const std::string_view label : labels) choices.push_back({std::string(label), label, {}});
  return choices;
}

std::vector<Choice> allowed_words(std::string_view setting, std::string_view but) {
  std::vector<Choice> choices;
  for (const std::string_view word : find_setting(setting)->allowed) {
    if (word != but) choices.push_back({std::string(word), word, {}});
  }
  return choices;
}

std::vector<Choice> yes_makes(std::string_view key, const Value& value) {
  return {{"yes", true, {{std::string(key), value}}}, {"no", false, {}}};
}

std::span<const Question> questions() {
  static const std::vector<Question> all = [] {
    std::vector<Question> list;
    for (const auto& family : {place_questions, sagemaker_questions, training_questions, dynamo_questions,
                               sagemaker_machine_questions, deepspeed_questions, fsdp_questions,
                               megatron_questions, device_questions, tpu_questions, precision_questions}) {
      for (Question& question : family()) list.push_back(std::move(question));
    }
    return list;
  }();
  return all;
}

}  // namespace acc::launcher
