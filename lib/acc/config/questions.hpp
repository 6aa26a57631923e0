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

/// The answer to a `secret` is not shown while it is typed.
enum class QuestionKind { yes_no, menu, text, integer, number, list, path, secret };

/// One answer of a menu, or of a question for yes and no.
struct Choice {
  std::string label = {};
  Value value = {};
  /// Keys that this answer decides as well.
  ConfigValues also = {};
};

/// What was answered so far.
class Answers {
 public:
  /// GPUs that this machine shows.
  int gpus = 0;
  /// Answers by the name of their question.
  ConfigValues given = {};
  /// The file that they make.
  ConfigValues values = {};

  bool yes(std::string_view question) const { return is(question, true); }
  bool is(std::string_view question, const Value& answer) const;
  /// The number, or 0 when it was not asked for.
  std::int64_t number(std::string_view question) const;

  /// The kind of file that the answers make.
  ConfigKind kind() const;
  /// The distributed_type that the answers add up to.
  std::string type() const;
  bool is_multi() const { return type().starts_with("MULTI_"); }
  bool is_multi_accelerator() const { return is_multi() && type() != "MULTI_CPU"; }
  bool on_cpu() const;
  std::int64_t machines() const;
};

/// A question as data. What is empty does not apply.
struct Question {
  /// How conditions and messages call it.
  std::string_view name;
  std::string_view prompt;
  QuestionKind kind = QuestionKind::yes_no;
  /// What an empty line means, as it would be typed; empty: an answer is needed, unless it is `optional`.
  std::string_view otherwise = {};
  bool optional = false;
  /// What it is about; of a question with a key the schema tells.
  std::string_view help = {};
  /// Where the answer is written: a key, or `section.key`.
  std::string_view key = {};
  /// The answers of all questions with this key make a list.
  bool appends = false;
  std::vector<Choice> choices = {};
  /// Whether it is asked at all.
  bool (*asked)(const Answers&) = nullptr;
  std::vector<Choice> (*choices_for)(const Answers&) = nullptr;
  std::string (*otherwise_for)(const Answers&) = nullptr;
  /// Why this answer cannot stand beside the earlier ones; it is then asked again.
  std::optional<std::string> (*refuse)(const Answers&, const Value&) = nullptr;
  /// After a yes, the question to go back to.
  std::string_view back_to = {};
  /// The kind of file that it is asked for; absent: both kinds.
  std::optional<ConfigKind> of = ConfigKind::cluster;
};

/// All questions in the order in which accelerate 1.15 asks them.
std::span<const Question> questions();

/// Choices that are written as they are shown.
std::vector<Choice> words(std::initializer_list<std::string_view> labels);
/// The values that the schema allows for a setting, without those in `but`.
std::vector<Choice> allowed_words(std::string_view setting, std::string_view but = {});
/// The two answers of a question for yes or no, of which a yes decides a key as well.
std::vector<Choice> yes_makes(std::string_view key, const Value& value);

/// The parts of the list, one for each family of settings.
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
