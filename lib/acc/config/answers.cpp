// SPDX-License-Identifier: Apache-2.0
#include "acc/config/answers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/text.hpp"
#include "acc/config/document.hpp"

namespace acc::launcher {
namespace {

[[noreturn]] void fail(const std::string& where, const std::string& what, const std::string& hint = "") {
  throw Error({.kind = ErrorKind::config, .what = what, .where = where, .hint = hint});
}

std::string typed(const DocumentNode& node, const std::string& place) {
  if (node.kind == DocumentNode::Kind::mapping)
    fail(place, fmt::format("'{}' is no answer but a mapping", node.key));
  if (node.kind == DocumentNode::Kind::scalar) return node.is_null() ? "" : node.text;
  std::vector<std::string> parts;
  for (const DocumentNode& item : node.items) parts.push_back(item.text);
  return join(parts, ",");
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
  if (root.kind != DocumentNode::Kind::mapping) fail(file.string(), "holds no `question: answer` lines");
  AnswerSheet sheet;
  for (const DocumentNode& item : root.items) {
    const std::string place = fmt::format("{}:{}", file.string(), item.key_at.line);
    if (sheet.places.contains(item.key)) fail(place, fmt::format("'{}' is answered already", item.key));
    sheet.answers[item.key] = typed(item, place);
    sheet.places[item.key] = place;
  }
  return sheet;
}

void answer_all(Interview& interview, const AnswerSheet& sheet) {
  std::set<std::string, std::less<>> used;
  while (const Question* question = interview.current()) {
    auto found = sheet.answers.find(question->name);
    if (found == sheet.answers.end()) found = sheet.answers.find(question->key);
    const bool first_time = found != sheet.answers.end() && used.insert(found->first).second;
    const std::string line = first_time ? found->second : "";
    const std::string where = first_time ? sheet.places.at(found->first) : "";
    if (const auto reason = interview.answer(line))
      fail(where, fmt::format("{}: {}", question->prompt, *reason),
           fmt::format("answer it as `{}: ...`", question->name));
  }
  for (const auto& [name, line] : sheet.answers) {
    if (used.contains(name)) continue;
    const std::vector<std::string> known = names_and_keys();
    const bool is_question = std::ranges::find(known, name) != known.end();
    fail(sheet.places.at(name),
         is_question ? fmt::format("'{}' was not asked: earlier answers rule it out", name)
                     : fmt::format("there is no question '{}'", name),
         is_question ? "" : did_you_mean(name, known));
  }
}

}  // namespace acc::launcher
