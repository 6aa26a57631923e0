// SPDX-License-Identifier: Apache-2.0
#include "acc/config/questions.hpp"

#include <algorithm>
#include <set>

#include "acc/config/schema.hpp"
#include "support/catch.hpp"

namespace questions_test {

using acc::launcher::Question;
using acc::launcher::QuestionKind;
using acc::launcher::questions;

namespace {

acc::launcher::ConfigKind kind_of(const Question& question) {
  return question.file_kind.value_or(acc::launcher::ConfigKind::cluster);
}

}  // namespace

TEST_CASE("questions: each has a name of its own and a sentence", "[config]") {
  std::set<std::string_view> names;
  for (const Question& question : questions()) {
    INFO(question.name);
    CHECK(names.insert(question.name).second);
    CHECK(question.prompt.ends_with('?'));
  }
}

TEST_CASE("questions: each is explained, by the schema's row of its key or by itself", "[config]") {
  for (const Question& question : questions()) {
    INFO(question.name);
    CHECK(question.key.empty() != question.help.empty());
  }
}

TEST_CASE("questions: every key that is written is one of the schema's", "[config]") {
  for (const Question& question : questions()) {
    if (question.key.empty()) continue;
    INFO(question.name);
    const std::size_t dot = question.key.find('.');
    const acc::launcher::SettingSpec* spec =
        acc::launcher::find_file_key(question.key.substr(0, dot), kind_of(question));
    REQUIRE(spec != nullptr);
    if (!question.file_kind)
      CHECK(acc::launcher::find_file_key(question.key.substr(0, dot), acc::launcher::ConfigKind::sagemaker) ==
            spec);
    CHECK((spec->type == acc::launcher::ValueType::section) == (dot != std::string_view::npos));
  }
}

TEST_CASE("questions: menus offer their default, and only what the schema allows", "[config]") {
  for (const Question& question : questions()) {
    if (question.kind != QuestionKind::menu || question.choices.empty()) continue;
    INFO(question.name);
    CHECK(std::ranges::find(question.choices, question.default_answer, &acc::launcher::Choice::label) !=
          question.choices.end());
    const acc::launcher::SettingSpec* spec = acc::launcher::find_file_key(question.key, kind_of(question));
    if (spec == nullptr || std::empty(spec->allowed)) continue;
    for (const acc::launcher::Choice& choice : question.choices)
      CHECK(std::ranges::find(spec->allowed, choice.value.get<std::string>()) != spec->allowed.end());
  }
}

TEST_CASE("questions: those that repeat name a question", "[config]") {
  for (const Question& question : questions()) {
    if (!question.back_to.empty())
      CHECK(std::ranges::find(questions(), question.back_to, &Question::name) != questions().end());
  }
}

TEST_CASE("questions: answers tell the type of training they add up to", "[config]") {
  acc::launcher::Answers answers;
  CHECK(answers.type() == acc::launcher::DistributedType::no);
  CHECK(answers.machines() == 1);
  CHECK_FALSE(answers.on_cpu());
  answers.values["distributed_type"] = "MULTI_CPU";
  CHECK(answers.is_multi());
  CHECK_FALSE(answers.is_multi_accelerator());
  answers.by_question["x"] = 3;
  CHECK(answers.number("x") == 3);
  CHECK(answers.number("y") == 0);
  CHECK(answers.is("x", 3));
  CHECK_FALSE(answers.yes("x"));
}

}  // namespace questions_test
