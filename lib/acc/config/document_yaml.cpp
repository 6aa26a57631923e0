// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <optional>
#include <ranges>
#include <sstream>

#include "acc/base/text.hpp"
#include "acc/config/document_parsers.hpp"
#include "acc/config/value.hpp"

namespace acc::launcher {
namespace {

Position position_of(const YAML::Mark& mark) {
  return mark.is_null() ? Position{} : Position{mark.line + 1, mark.column + 1};
}

bool is_standard(std::string_view tag, std::initializer_list<std::string_view> names) {
  constexpr std::string_view kPrefix = "tag:yaml.org,2002:";
  return tag.starts_with(kPrefix) && std::ranges::find(names, tag.substr(kPrefix.size())) != names.end();
}

std::size_t count_nodes(const DocumentNode& node) {
  std::size_t nodes = 1;
  for (const DocumentNode& item : node.items) nodes += count_nodes(item);
  return nodes;
}

// `<<: *base` adds the keys that the mapping itself lacks. Of equal keys of the base the last one counts.
void merge(DocumentNode& mapping, const DocumentNode& from) {
  for (const DocumentNode& item : from.items | std::views::reverse) {
    const bool known =
        std::ranges::any_of(mapping.items, [&](const DocumentNode& own) { return own.key == item.key; });
    if (!known) mapping.items.push_back(item);
  }
}

// The position after the quoted text that starts at `from`, or npos. Inside, a quote is doubled, or follows a
// backslash.
std::size_t after_quotes(std::string_view text, std::size_t from) {
  const char quote = text[from];
  for (std::size_t i = from + 1; i < text.size(); ++i) {
    const bool escapes = quote == '"' ? text[i] == '\\' : text.substr(i, 2) == "''";
    if (escapes) {
      ++i;
    } else if (text[i] == quote) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

bool starts_with_quote(std::string_view text) {
  return text.starts_with('"') || text.starts_with('\'');
}

// yaml-cpp reads the escapes `\N` and `\_` as the bytes 0x85 and 0xa0; all other text that it returns is
// UTF-8.
std::string with_whole_characters(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) result += '\xc2';
    result += text.substr(0, std::max<std::size_t>(length, 1));
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return result;
}

/// What yaml-cpp accepts and YAML does not, found in the text behind its events.
class YamlText {
 public:
  explicit YamlText(std::string_view text) : text_(text) {}

  /// Whether the quoted text that starts at the mark ends; yaml-cpp ends it with the file.
  bool closes_quotes(const YAML::Mark& mark) const {
    const std::size_t from = offset_of(mark);
    return !starts_with_quote(text_.substr(from)) || after_quotes(text_, from) != std::string_view::npos;
  }

  /// The value of a scalar at the mark that yaml-cpp read as `value`. Of the empty lines before a closing
  /// quote, each of which is a line break of the value, yaml-cpp keeps one at most.
  std::string with_last_breaks(const YAML::Mark& mark, std::string value) const {
    const std::string_view text = text_.substr(offset_of(mark));
    if (!starts_with_quote(text)) return value;
    const std::string_view quoted = text.substr(0, after_quotes(text, 0) - 1);
    const auto breaks = std::ranges::count(quoted.substr(quoted.find_last_not_of(" \t\r\n") + 1), '\n');
    // Escapes may be line breaks as well, and yaml-cpp keeps those and the ones after them.
    const bool has_escapes = quoted.front() == '"' && quoted.find('\\') != std::string_view::npos;
    if (breaks < 2 || has_escapes) return value;
    value.erase(value.find_last_not_of('\n') + 1);
    return value.append(static_cast<std::size_t>(breaks - 1), '\n');
  }

  /// Whether the key of a block mapping at the mark has its colon, or a `?` before it; yaml-cpp takes the
  /// last line of a file for a key without.
  bool ends_key(const YAML::Mark& mark, const std::string& key) const {
    const std::size_t from = offset_of(mark);
    const std::size_t line = text_.find_last_of('\n', from) + 1;
    if (trim(text_.substr(line, from - line)).ends_with('?')) return true;
    const bool quoted = starts_with_quote(text_.substr(from));
    if (!quoted && !text_.substr(from).starts_with(key)) return true;  // after an anchor or a tag
    const std::size_t end = quoted ? after_quotes(text_, from) : from + key.size();
    const std::size_t next = text_.find_first_not_of(" \t", end);
    return next != std::string_view::npos && text_[next] == ':';
  }

 private:
  std::size_t offset_of(const YAML::Mark& mark) const {
    return std::min(static_cast<std::size_t>(std::max(mark.pos, 0)), text_.size());
  }

  std::string_view text_;
};

class YamlEvents : public YAML::EventHandler {
 public:
  YamlEvents(std::string_view text, const std::string& file) : text_(text), file_(file), builder_(file) {}

  DocumentNode release_root() { return builder_.release_root(); }
  bool has_root() const { return builder_.has_root(); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (builder_.has_root()) fail_at(file_, position_of(mark), "contains a second YAML document");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    // The value of a key without a colon has the mark of the key.
    if (key_ && key_->mark.pos == mark.pos && !in_braces_.back() && !text_.ends_key(mark, key_->text))
      fail_at(file_, position_of(mark), fmt::format("'{}' has no `: value`", shorten(key_->text)));
    add_scalar(mark, {.text = "null", .position = position_of(mark)}, anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& read) override {
    const Position position = position_of(mark);
    const bool quoted = tag == "!" || is_standard(tag, {"str"});
    const bool plain = tag == "?" || tag.empty() || is_standard(tag, {"int", "float", "bool", "null"});
    if (!quoted && !plain) fail_at(file_, position, fmt::format("the tag {} is not supported", tag));
    if (!text_.closes_quotes(mark)) fail_at(file_, position, "the quotes are not closed");
    const std::string text = with_whole_characters(text_.with_last_breaks(mark, read));
    add_scalar(mark,
               {.value = quoted ? Value(text) : read_plain_scalar(text),
                .text = text,
                .quoted = quoted,
                .position = position},
               anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const Position position = position_of(mark);
    const auto target = anchors_.find(anchor);
    if (target == anchors_.end()) fail_at(file_, position, "the alias is inside the node that it refers to");
    if (builder_.expects_key()) fail_at(file_, position, "an alias cannot be a key");
    builder_.count(count_nodes(target->second), position);
    DocumentNode node = target->second;
    node.position = position;
    builder_.add(std::move(node));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    open(DocumentNode::Kind::list, mark, tag, anchor, style);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    open(DocumentNode::Kind::mapping, mark, tag, anchor, style);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  void add_scalar(const YAML::Mark& mark, DocumentNode node, YAML::anchor_t anchor) {
    if (builder_.expects_key()) {
      key_ = {mark, node.text};
      builder_.add_key(std::move(node.text), node.position);
      return;
    }
    key_.reset();
    if (anchor != 0) anchors_[anchor] = node;
    builder_.add(std::move(node));
  }

  void open(DocumentNode::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            YAML::EmitterStyle::value style) {
    const Position position = position_of(mark);
    if (builder_.expects_key()) fail_at(file_, position, "a key must be text, not a list or a mapping");
    if (!tag.empty() && tag != "?" && !is_standard(tag, {"seq", "map"}))
      fail_at(file_, position, fmt::format("the tag {} is not supported", tag));
    builder_.open(kind, position);
    open_anchors_.push_back(anchor);
    in_braces_.push_back(style == YAML::EmitterStyle::Flow);
    key_.reset();
  }

  void close() {
    const YAML::anchor_t anchor = open_anchors_.back();
    open_anchors_.pop_back();
    in_braces_.pop_back();
    const DocumentNode& node = builder_.close();
    if (anchor == 0) return;
    // Each anchor stores a copy of its nodes, so they count again.
    builder_.count(count_nodes(node), node.position);
    anchors_[anchor] = node;
  }

  struct Key {
    YAML::Mark mark = {};
    std::string text = {};
  };

  YamlText text_;
  std::string file_;
  DocumentBuilder builder_;
  /// The key whose value is next.
  std::optional<Key> key_ = {};
  /// Whether each open node is written in braces or brackets, where a key may have no value.
  std::vector<bool> in_braces_ = {};
  std::map<YAML::anchor_t, DocumentNode> anchors_ = {};
  std::vector<YAML::anchor_t> open_anchors_ = {};
};

void resolve_merges(DocumentNode& node) {
  for (DocumentNode& item : node.items) resolve_merges(item);
  if (node.kind != DocumentNode::Kind::mapping) return;
  std::vector<DocumentNode> sources;
  std::erase_if(node.items, [&](DocumentNode& item) {
    const bool merges = item.key == "<<" && item.kind != DocumentNode::Kind::scalar;
    if (merges) sources.push_back(std::move(item));
    return merges;
  });
  // As in PyYAML the last `<<` of a mapping wins. In a list the first mapping does, as YAML defines it.
  for (const DocumentNode& source : sources | std::views::reverse) {
    if (source.kind == DocumentNode::Kind::mapping) merge(node, source);
    if (source.kind != DocumentNode::Kind::list) continue;
    for (const DocumentNode& item : source.items) merge(node, item);
  }
}

}  // namespace

DocumentNode parse_yaml(std::string_view text, const std::string& file) {
  YamlEvents events(text, file);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(events)) {
    }
  } catch (const YAML::Exception& error) {
    fail_at(file, position_of(error.mark), "is not valid YAML: " + error.msg);
  }
  DocumentNode root = events.release_root();
  resolve_merges(root);
  return root;
}

}  // namespace acc::launcher
