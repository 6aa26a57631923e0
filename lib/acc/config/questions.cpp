// SPDX-License-Identifier: Apache-2.0
#include "acc/config/questions.hpp"

namespace acc::launcher {

bool Answers::is(std::string_view question, const Value& answer) const {
  const auto found = by_question.find(question);
  return found != by_question.end() && found->second == answer;
}

std::int64_t Answers::number(std::string_view question) const {
  const auto found = by_question.find(question);
  return found != by_question.end() && found->second.is_number() ? found->second.get<std::int64_t>() : 0;
}

ConfigKind Answers::kind() const {
  const bool sagemaker = is("compute_environment", word_of(ComputeEnvironment::amazon_sagemaker));
  return sagemaker ? ConfigKind::sagemaker : ConfigKind::cluster;
}

DistributedType Answers::type() const {
  if (kind() == ConfigKind::sagemaker) return DistributedType::no;
  return value_in(values, key::distributed_type).value_or(DistributedType::no);
}

bool Answers::on_cpu() const {
  return value_in(values, key::use_cpu).value_or(false);
}

std::int64_t Answers::machines() const {
  return value_in(values, key::num_machines).value_or(1);
}

std::vector<Choice> words(std::initializer_list<std::string_view> labels) {
  std::vector<Choice> choices;
  for (const std::string_view label : labels) choices.push_back({std::string(label), label, {}});
  return choices;
}

std::vector<Choice> allowed_words(SettingId setting, std::string_view but) {
  std::vector<Choice> choices;
  for (const std::string_view word : row_of(setting).allowed) {
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
