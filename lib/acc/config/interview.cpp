// SPDX-License-Identifier: Apache-2.0
#include "acc/config/interview.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/home.hpp"
#include "acc/base/text.hpp"
#include "acc/config/assign.hpp"
#include "acc/config/conversion.hpp"
#include "acc/config/defaults.hpp"
#include "acc/config/document.hpp"
#include "acc/config/schema.hpp"

namespace acc::launcher {
namespace {

// The values that accelerate's questionnaire writes without asking.
ConfigValues unasked_values(ConfigKind kind) {
  ConfigValues values;
  if (kind == ConfigKind::sagemaker) {
    set_value(values, key::compute_environment, ComputeEnvironment::amazon_sagemaker);
    return with_defaults(std::move(values));
  }
  set_value(values, key::distributed_type, DistributedType::no);
  values = with_defaults(std::move(values));
  // Always asked, except with a DeepSpeed config file, which contains it.
  values.erase(std::string(file_key(row_of(key::mixed_precision))));
  set_value(values, key::same_network, true);
  // The text, as accelerate writes it.
  values.insert_or_assign(std::string(file_key(row_of(key::downcast_bf16))), "no");
  set_value(values, key::tpu_env, {});
  return values;
}

std::optional<std::size_t> find_choice(const std::vector<Choice>& choices, const std::string& text) {
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (to_lower(choices[i].label) == to_lower(text)) return i;
  }
  const auto index = parse_integer(text);
  if (!index || *index < 0 || *index >= static_cast<std::int64_t>(choices.size())) return std::nullopt;
  return static_cast<std::size_t>(*index);
}

std::vector<std::string> labels(const std::vector<Choice>& choices) {
  std::vector<std::string> result;
  result.reserve(choices.size());
  for (const Choice& choice : choices) result.push_back(choice.label);
  return result;
}

std::optional<bool> parse_yes_no(const std::string& text) {
  const std::string word = to_lower(text);
  if (word == "y" || word == "yes") return true;
  if (word == "n" || word == "no") return false;
  return std::nullopt;
}

// The setting that the question writes; null if it writes none.
const SettingSpec* asked_row(const Question& question, ConfigKind kind) {
  const std::size_t dot = question.key.find('.');
  if (dot == std::string_view::npos) return find_file_key(question.key, kind);
  return find_section_key(question.key.substr(0, dot), question.key.substr(dot + 1));
}

}  // namespace

Interview::Interview(InterviewFacts facts) : facts_(std::move(facts)) {
  answers_.gpus = facts_.gpus;
}

ConfigValues Interview::values() const {
  ConfigValues all = answers_.values;
  all.merge(unasked_values(answers_.kind()));
  return all;
}

const Question* Interview::current() const {
  return next_ < questions().size() ? &questions()[next_] : nullptr;
}

std::vector<Choice> Interview::choices() const {
  const Question& question = *current();
  if (question.choices_for != nullptr) {
    std::vector<Choice> made = question.choices_for(answers_);
    if (!made.empty()) return made;
  }
  if (question.kind == QuestionKind::yes_no && question.choices.empty())
    return {{"yes", true, {}}, {"no", false, {}}};
  return question.choices;
}

std::string Interview::default_answer() const {
  const Question& question = *current();
  const auto before = undone_.find(question.name);
  if (before != undone_.end()) {
    const bool is_offered = question.kind != QuestionKind::menu || find_choice(choices(), before->second);
    if (is_offered) return before->second;
  }
  return question.default_answer_for != nullptr ? question.default_answer_for(answers_)
                                                : std::string(question.default_answer);
}

std::optional<std::string> Interview::answer(std::string_view line) {
  const Question& question = *current();
  std::string text(trim(line));
  if (text.empty()) text = default_answer();
  if (question.kind == QuestionKind::list) {
    Value list = Value::array();
    for (const std::string& part : split(text, ',')) {
      if (!trim(part).empty()) list.push_back(trim(part));
    }
    return accept({.label = text, .value = std::move(list)});
  }
  if (text.empty() && !question.optional) return "an answer is required";
  switch (question.kind) {
    case QuestionKind::yes_no: {
      const auto truth = parse_yes_no(text);
      if (!truth) return fmt::format("answer yes or no, not '{}'", text);
      return choose(*truth ? 0 : 1);
    }
    case QuestionKind::menu: {
      const std::vector<Choice> offered = choices();
      if (const auto index = find_choice(offered, text)) return choose(*index);
      return fmt::format("'{}' is not one of: {}", text, join(labels(offered), ", "));
    }
    case QuestionKind::integer:
    case QuestionKind::number:
      return accept_number(text);
    case QuestionKind::path:
      return accept(
          {.label = text, .value = (facts_.folder / expand_home(text, facts_.environment)).string()});
    case QuestionKind::secret:
      return accept({.value = text});
    case QuestionKind::text:
    case QuestionKind::list:
      break;
  }
  return accept({.label = text, .value = text});
}

bool Interview::go_back() {
  if (history_.empty()) return false;
  State& latest = history_.back();
  answers_ = std::move(latest.answers);
  next_ = latest.next;
  if (!latest.answered.empty()) undone_[current()->name] = std::move(latest.answered);
  history_.pop_back();
  return true;
}

std::string Interview::help() const {
  const Question& question = *current();
  const SettingSpec* spec = asked_row(question, answers_.kind());
  if (spec == nullptr) return std::string(question.help);
  std::string text = fmt::format("{} Key in the file: {}.", spec->help, question.key);
  if (!std::empty(spec->flags)) text += fmt::format(" Flag of a launch: {}.", spec->flags.front().spelling);
  if (!spec->environment.empty()) text += fmt::format(" Workers see it in {}.", spec->environment);
  return text;
}

std::optional<std::string> Interview::choose(std::size_t index) {
  return accept(choices().at(index));
}

std::optional<std::string> Interview::accept_number(const std::string& text) {
  if (current()->kind == QuestionKind::number) {
    const auto number = parse_number(text);
    return number ? accept({.label = text, .value = *number}) : fmt::format("'{}' is not a number", text);
  }
  const auto number = parse_integer(text);
  if (!number) return fmt::format("'{}' is not a whole number", text);
  if (*number < 0) return "the number must not be negative";
  return accept({.label = text, .value = *number});
}

std::optional<std::string> Interview::accept(Choice choice) {
  const Question& question = *current();
  undone_.erase(question.name);
  const SettingSpec* spec = asked_row(question, answers_.kind());
  if (spec != nullptr && is_number(*spec)) {
    const auto checked = convert(*spec, display(choice.value));
    if (const auto* mismatch = std::get_if<Mismatch>(&checked)) return mismatch->what;
  }
  if (question.refuse != nullptr) {
    if (auto reason = question.refuse(answers_, choice.value)) return reason;
  }
  history_.push_back({answers_, next_, choice.label});
  answers_.by_question[std::string(question.name)] = choice.value;
  for (auto& [key, value] : choice.other_values) write(key, std::move(value), false);
  const bool again = choice.value == true && !question.back_to.empty();
  if (!question.key.empty()) write(question.key, std::move(choice.value), question.appends);
  advance(again ? question.back_to : std::string_view());
  return std::nullopt;
}

void Interview::write(std::string_view key, Value value, bool append) {
  const std::size_t dot = key.find('.');
  Value& target = dot == std::string_view::npos
                      ? answers_.values[std::string(key)]
                      : answers_.values[std::string(key.substr(0, dot))][std::string(key.substr(dot + 1))];
  if (append) {
    target.push_back(std::move(value));
  } else {
    target = std::move(value);
  }
}

void Interview::advance(std::string_view back_to) {
  const auto sequence = questions();
  if (!back_to.empty()) {
    next_ =
        static_cast<std::size_t>(std::ranges::find(sequence, back_to, &Question::name) - sequence.begin());
    return;
  }
  const auto applies = [&](const Question& question) {
    if (question.file_kind && *question.file_kind != answers_.kind()) return false;
    return question.condition == nullptr || question.condition(answers_);
  };
  do {
    ++next_;
  } while (next_ < sequence.size() && !applies(sequence[next_]));
}

namespace {

[[noreturn]] void fail(const std::string& where, const std::string& what, const std::string& hint = "") {
  throw Error({.kind = ErrorKind::config, .what = what, .where = where, .hint = hint});
}

std::vector<std::string> answers_in(const DocumentNode& node, const std::string& where) {
  if (node.kind == DocumentNode::Kind::mapping)
    fail(where, fmt::format("the answer to '{}' must not be a mapping", node.key));
  if (node.kind == DocumentNode::Kind::scalar) return {node.is_null() ? "" : node.text};
  std::vector<std::string> answers;
  for (const DocumentNode& item : node.items) answers.push_back(item.text);
  if (answers.empty()) answers.emplace_back();
  return answers;
}

std::vector<std::string> names_and_keys() {
  std::vector<std::string> names;
  for (const Question& question : questions()) {
    names.emplace_back(question.name);
    if (!question.key.empty() && question.key != question.name) names.emplace_back(question.key);
  }
  return names;
}

}  // namespace

AnswerSheet read_answers(const std::filesystem::path& file) {
  const DocumentNode root = parse_document(read_file(file, DocumentLimits::kBytes), file);
  if (root.kind != DocumentNode::Kind::mapping) fail(file.string(), "has no `question: answer` lines");
  AnswerSheet sheet;
  for (const DocumentNode& item : root.items) {
    const std::string where = fmt::format("{}:{}", file.string(), item.key_position.line);
    if (sheet.positions.contains(item.key)) fail(where, fmt::format("'{}' is answered already", item.key));
    sheet.answers[item.key] = answers_in(item, where);
    sheet.positions[item.key] = where;
  }
  return sheet;
}

void answer_all(Interview& interview, const AnswerSheet& sheet) {
  // How many answers of each line are used.
  std::map<std::string, std::size_t, std::less<>> used;
  const auto find_unused = [&](std::string_view name) {
    const auto found = sheet.answers.find(name);
    const bool is_unused = found != sheet.answers.end() && used[found->first] < found->second.size();
    return is_unused ? found : sheet.answers.end();
  };
  while (const Question* question = interview.current()) {
    auto answer = find_unused(question->name);
    if (answer == sheet.answers.end()) answer = find_unused(question->key);
    std::string line;
    std::string where;
    if (answer != sheet.answers.end()) {
      const auto& [name, answers] = *answer;
      std::size_t& begun = used[name];
      line = question->appends ? answers[begun] : join(answers, ",");
      begun = question->appends ? begun + 1 : answers.size();
      where = sheet.positions.at(name);
    } else if (find_unused(question->back_to) != sheet.answers.end()) {
      line = "yes";
    }
    if (const auto reason = interview.answer(line))
      fail(where, fmt::format("{}: {}", question->prompt, *reason),
           fmt::format("answer it as `{}: ...`", question->name));
  }
  for (const auto& [name, answers] : sheet.answers) {
    if (used[name] == answers.size()) continue;
    const std::vector<std::string> names = names_and_keys();
    const bool is_question = std::ranges::find(names, name) != names.end();
    fail(sheet.positions.at(name),
         is_question ? fmt::format("'{}' was not asked: earlier answers rule it out", name)
                     : fmt::format("unknown question '{}'", name),
         is_question ? "" : did_you_mean(name, names));
  }
}

}  // namespace acc::launcher
