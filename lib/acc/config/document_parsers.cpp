// SPDX-License-Identifier: Apache-2.0
#include "acc/config/document_parsers.hpp"

#include <fmt/format.h>

#include <optional>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

std::optional<std::string> wrong_character(std::string_view text) {
  const std::size_t length = utf8_length(text);
  if (length == 0) return "is not UTF-8 text";
  const auto c = static_cast<unsigned char>(text[0]);
  if (c < 0x20 && c != '\t' && c != '\n' && c != '\r')
    return fmt::format("contains the control character 0x{:02x}", c);
  return std::nullopt;
}

void check_characters(std::string_view text, const std::string& file) {
  Position position;
  for (std::size_t i = 0; i < text.size(); i += utf8_length(text.substr(i))) {
    if (const auto wrong = wrong_character(text.substr(i)))
      fail_at(file, position, *wrong, "is it a config file?");
    position.column += 1;
    if (text[i] == '\n') position = {position.line + 1, 1};
  }
}

// yaml-cpp looks ahead without limit while brackets are open, so deep nesting is refused before parsing.
// Brackets in quotes and comments are counted too: no config file has that many unclosed ones.
void check_brackets(std::string_view text, const std::string& file) {
  int depth = 0;
  Position position;
  for (const char c : text) {
    if (c == '[' || c == '{') ++depth;
    if ((c == ']' || c == '}') && depth > 0) --depth;
    if (depth > DocumentLimits::kDepth) fail_at(file, position, "is nested too deeply");
    position.column += 1;
    if (c == '\n') position = {position.line + 1, 1};
  }
}

}  // namespace

void fail_at(const std::string& file, Position position, const std::string& what, const std::string& hint) {
  throw Error({.kind = ErrorKind::config,
               .what = what,
               .where = fmt::format("{}:{}:{}", file, position.line, position.column),
               .hint = hint});
}

void DocumentBuilder::count(std::size_t nodes, Position position) {
  nodes_ += nodes;
  if (nodes_ > DocumentLimits::kNodes) fail_at(file_, position, "has too many values");
}

bool DocumentBuilder::expects_key() const {
  return !open_.empty() && open_.back().kind == DocumentNode::Kind::mapping && !keys_.back().waiting;
}

void DocumentBuilder::add_key(std::string key, Position position) {
  count(1, position);
  keys_.back() = {std::move(key), position, true};
}

const DocumentNode& DocumentBuilder::attach(DocumentNode node) {
  if (open_.empty()) {
    root_ = std::move(node);
    has_root_ = true;
    return root_;
  }
  if (open_.back().kind == DocumentNode::Kind::mapping) {
    node.key = std::move(keys_.back().text);
    node.key_position = keys_.back().position;
    keys_.back().waiting = false;
  }
  return open_.back().items.emplace_back(std::move(node));
}

void DocumentBuilder::add(DocumentNode node) {
  count(1, node.position);
  attach(std::move(node));
}

void DocumentBuilder::open(DocumentNode::Kind kind, Position position) {
  count(1, position);
  if (open_.size() >= DocumentLimits::kDepth) fail_at(file_, position, "is nested too deeply");
  open_.emplace_back().kind = kind;
  open_.back().position = position;
  keys_.emplace_back();
}

const DocumentNode& DocumentBuilder::close() {
  DocumentNode node = std::move(open_.back());
  open_.pop_back();
  keys_.pop_back();
  return attach(std::move(node));
}

DocumentNode parse_document(std::string_view text, const std::filesystem::path& file) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const std::string name = file.string();
  if (text.size() > DocumentLimits::kBytes) fail_at(name, {}, "is too large for a config file");
  check_characters(text, name);
  check_brackets(text, name);
  return file.extension() == ".json" ? parse_json(text, name) : parse_yaml(text, name);
}

}  // namespace acc::launcher
