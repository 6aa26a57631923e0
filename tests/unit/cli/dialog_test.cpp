// SPDX-License-Identifier: Apache-2.0
#include "acc/cli/dialog.hpp"

#include <deque>
#include <sstream>

#include "acc/base/error.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

namespace dialog_test {

namespace {

// Answers from a list, and records what is shown.
class ScriptedDialog : public acc::launcher::Dialog {
 public:
  explicit ScriptedDialog(std::deque<std::string> answers) : answers_(std::move(answers)) {}

  void show(std::string_view text) override { shown.emplace_back(text); }
  std::string ask(std::string_view prompt, std::string_view default_answer) override {
    prompts.emplace_back(prompt);
    defaults.emplace_back(default_answer);
    return next();
  }
  std::string ask_secret(std::string_view) override {
    defaults.emplace_back("(secret)");
    return next();
  }
  std::string ask_menu(std::string_view, const std::vector<std::string>& choices,
                       std::size_t default_choice) override {
    defaults.push_back(choices.at(default_choice));
    return next();
  }

  std::vector<std::string> shown = {};
  std::vector<std::string> defaults = {};
  std::vector<std::string> prompts = {};

 private:
  std::string next() {
    if (answers_.empty()) throw acc::Error({.what = "the input ended"});
    std::string answer = answers_.front();
    answers_.pop_front();
    return answer;
  }

  std::deque<std::string> answers_;
};

}  // namespace

TEST_CASE("dialog: all questions are asked, with their defaults", "[cli]") {
  acc::launcher::Interview interview({});
  ScriptedDialog dialog({"", "", "", "", "", "", "", "bf16"});
  run_interview(interview, dialog);
  CHECK(interview.values().at("mixed_precision") == "bf16");
  CHECK(dialog.defaults == std::vector<std::string>{"This machine", "No distributed training", "no", "no",
                                                    "no", "all", "no", "no"});
  CHECK(dialog.shown.empty());
}

TEST_CASE("dialog: a refused answer is asked again after its reason", "[cli]") {
  acc::launcher::Interview interview({});
  ScriptedDialog dialog({"", "", "maybe", "yes", "", "", "", "", ""});
  run_interview(interview, dialog);
  CHECK(dialog.shown ==
        std::vector<std::string>{"answer yes or no, not 'maybe' (? explains, Esc goes back)"});
  CHECK(interview.values().at("use_cpu") == true);
}

TEST_CASE("dialog: a question without a default shows an example", "[cli]") {
  acc::launcher::Interview interview({});
  ScriptedDialog dialog({"", "multi-GPU", "2", "0"});
  CHECK_THROWS(run_interview(interview, dialog));
  REQUIRE_FALSE(dialog.prompts.empty());
  CHECK(dialog.prompts.back() == "Address of the machine of rank 0? (such as 10.0.0.1)");
  CHECK(dialog.defaults.back().empty());
}

TEST_CASE("questions: each that needs an answer of the user's own has an example", "[cli]") {
  using acc::launcher::QuestionKind;
  for (const acc::launcher::Question& question : acc::launcher::questions()) {
    const bool typed = question.kind == QuestionKind::text || question.kind == QuestionKind::path ||
                       question.kind == QuestionKind::integer || question.kind == QuestionKind::number;
    const bool has_default = !question.default_answer.empty() || question.default_answer_for != nullptr;
    INFO(question.name);
    CHECK((!typed || has_default || question.optional || !question.example.empty()));
  }
}

TEST_CASE("dialog: going back undoes the answer", "[cli]") {
  acc::launcher::Interview interview({});
  const std::string back(acc::launcher::kGoBack);
  ScriptedDialog dialog({back, "", "", "yes", back, "no", "", "", "", "", ""});
  run_interview(interview, dialog);
  CHECK(dialog.shown == std::vector<std::string>{"this is the first question"});
  CHECK(interview.values().at("use_cpu") == false);
}

TEST_CASE("dialog: undone answers are proposed again", "[cli]") {
  acc::launcher::Interview interview({});
  const std::string back(acc::launcher::kGoBack);
  ScriptedDialog dialog({"", "TPU", "", "8", "train", back, back, back, back, "", "", "", ""});
  CHECK_THROWS_AS(run_interview(interview, dialog), acc::Error);
  const std::vector<std::string> forth(dialog.defaults.end() - 5, dialog.defaults.end() - 1);
  CHECK(forth == std::vector<std::string>{"TPU", "no", "8", "train"});
}

TEST_CASE("dialog: an undone answer that is no longer valid is not proposed", "[cli]") {
  const std::string back(acc::launcher::kGoBack);
  acc::launcher::Interview interview({});
  // Three processes on three machines, then two machines: three is refused, and one for each is the default.
  std::deque<std::string> answers = {"", "multi-CPU", "3", "", "ip", "1", "", "", "", "", "3"};
  answers.insert(answers.end(), 9, back);
  answers.push_back("2");
  answers.insert(answers.end(), 10, "");
  ScriptedDialog dialog(answers);
  run_interview(interview, dialog);
  CHECK(dialog.shown ==
        std::vector<std::string>{
            "3 processes cannot be divided evenly among 2 machines (? explains, Esc goes back)"});
  CHECK(interview.values().at("num_processes") == 2);

  // LOCAL_STATE_DICT is of version 1.
  acc::launcher::Interview fsdp({});
  for (const char* line : {"", "multi-GPU", "", "", "", "", "yes", "1", "", "", "2", "", "LOCAL_STATE_DICT"})
    REQUIRE_FALSE(fsdp.answer(line));
  for (int i = 0; i < 6; ++i) REQUIRE(fsdp.go_back());
  for (const char* line : {"2", "", "", "2"}) REQUIRE_FALSE(fsdp.answer(line));
  CHECK(fsdp.default_answer() == "SHARDED_STATE_DICT");
}

TEST_CASE("dialog: a question mark shows help for the question", "[cli]") {
  acc::launcher::Interview interview({});
  ScriptedDialog dialog({"", "", "?", "", "", "", "", "", ""});
  run_interview(interview, dialog);
  CHECK(dialog.shown ==
        std::vector<std::string>{
            "Train on the CPU, also where there are GPUs. Key in the file: use_cpu. Flag of a "
            "launch: --cpu. Workers see it in ACCELERATE_USE_CPU."});
}

TEST_CASE("dialog: secrets are asked for as such, and may be left out", "[cli]") {
  acc::launcher::Interview interview({});
  ScriptedDialog dialog({"AWS (Amazon SageMaker)", "1", "AKIA", "", "", "", "r", "", "", "", "", "", "", ""});
  run_interview(interview, dialog);
  CHECK(dialog.defaults.at(2) == "(secret)");
  CHECK(dialog.defaults.at(3) == "(secret)");
  for (const auto& [key, value] : interview.values()) CHECK(value != "AKIA");
}

TEST_CASE("dialog: when the input ends, the question without an answer is named", "[cli]") {
  acc::launcher::Interview interview({});
  ScriptedDialog dialog({"", ""});
  CHECK(acc::test::error_of([&] { run_interview(interview, dialog); }) ==
        "the input ended, and this question has no answer: "
        "Train on the CPU only, also where there are GPUs?");
}

TEST_CASE("line_dialog: questions show their default, menus their numbers", "[cli]") {
  std::istringstream in("a\n1\n");
  std::ostringstream out;
  acc::launcher::LineDialog dialog(in, out);
  CHECK(dialog.ask("Name?", "x") == "a");
  CHECK(dialog.ask_menu("Which?", {"p", "q"}, 1) == "1");
  dialog.show("done");
  CHECK(out.str() == "Name? [x] \nWhich?\n  0) p\n  1) q\nNumber or text [q] \ndone\n");
}

TEST_CASE("line_dialog: the last line needs no end, and then the input has ended", "[cli]") {
  std::istringstream in("last");
  std::ostringstream out;
  acc::launcher::LineDialog dialog(in, out);
  CHECK(dialog.ask("A?", "") == "last");
  CHECK(acc::test::error_of([&] { dialog.ask("B?", ""); }) == "the input ended");
}

}  // namespace dialog_test
