// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "acc/config/read.hpp"
#include "acc/config/schema.hpp"

namespace acc::launcher {

/// The input of a `secret` is not echoed.
enum class QuestionKind { yes_no, menu, text, integer, number, list, path, secret };

/// A choice of a menu or of a yes/no question.
struct Choice {
  std::string label = {};
  Value value = {};
  /// Other keys that this choice sets.
  ConfigValues other_values = {};
};

/// The answers so far.
class Answers {
 public:
  /// The number of visible GPUs.
  int gpus = 0;
  /// Answers by the name of their question.
  ConfigValues by_question = {};
  /// The values of the config file.
  ConfigValues values = {};

  bool yes(std::string_view question) const { return is(question, true); }
  bool is(std::string_view question, const Value& answer) const;
  /// The answer as a number; 0 if the question was not asked.
  std::int64_t number(std::string_view question) const;

  /// The kind of the config file.
  ConfigKind kind() const;
  /// The distributed_type that follows from the answers.
  DistributedType type() const;
  bool is_multi() const { return launcher::is_multi(type()); }
  bool is_multi_accelerator() const { return is_multi() && type() != DistributedType::multi_cpu; }
  bool on_cpu() const;
  std::int64_t machines() const;
};

/// A question of `acc config`. Empty members do not apply.
struct Question {
  /// The name used in conditions, answer files and messages.
  std::string_view name;
  std::string_view prompt;
  QuestionKind kind = QuestionKind::yes_no;
  /// The answer that an empty line stands for; empty: an answer is required, unless `optional`.
  std::string_view default_answer = {};
  bool optional = false;
  /// An answer of the form that is expected, for a question that requires one.
  std::string_view example = {};
  /// The help text; for a question with a key that of the schema is used.
  std::string_view help = {};
  /// The key that the answer is written to: `key` or `section.key`.
  std::string_view key = {};
  /// The answer is appended to the list under the key.
  bool appends = false;
  std::vector<Choice> choices = {};
  /// Whether the question is asked, given the earlier answers.
  bool (*condition)(const Answers&) = nullptr;
  std::vector<Choice> (*choices_for)(const Answers&) = nullptr;
  std::string (*default_answer_for)(const Answers&) = nullptr;
  /// The reason if this answer contradicts earlier ones; the question is then asked again.
  std::optional<std::string> (*refuse)(const Answers&, const Value&) = nullptr;
  /// The question to return to after a yes.
  std::string_view back_to = {};
  /// The kind of config file that the question belongs to; absent: both.
  std::optional<ConfigKind> file_kind = ConfigKind::cluster;
};

/// All questions, in the order of accelerate 1.15.
std::span<const Question> questions();

/// Choices whose value is their label.
std::vector<Choice> words(std::initializer_list<std::string_view> labels);
/// The values that the schema allows for a setting, without `but`.
std::vector<Choice> allowed_words(SettingId setting, std::string_view but = {});
/// The choices yes and no, where yes also sets another key.
std::vector<Choice> yes_makes(std::string_view key, const Value& value);

/// The questions of each family of settings.
std::vector<Question> place_questions();
std::vector<Question> training_questions();
std::vector<Question> sagemaker_questions();
std::vector<Question> sagemaker_machine_questions();
std::vector<Question> dynamo_questions();
std::vector<Question> deepspeed_questions();
std::vector<Question> fsdp_questions();
std::vector<Question> megatron_questions();
std::vector<Question> device_questions();
std::vector<Question> tpu_questions();
std::vector<Question> precision_questions();

}  // namespace acc::launcher
