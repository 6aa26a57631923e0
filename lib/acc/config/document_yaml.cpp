// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>

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

// `<<: *base` adds the keys that the mapping itself lacks.
void merge(DocumentNode& mapping, const DocumentNode& from) {
  for (const DocumentNode& item : from.items) {
    const bool known =
        std::ranges::any_of(mapping.items, [&](const DocumentNode& own) { return own.key == item.key; });
    if (!known) mapping.items.push_back(item);
  }
}

class YamlEvents : public YAML::EventHandler {
 public:
  explicit YamlEvents(const std::string& file) : file_(file), builder_(file) {}

  DocumentNode release_root() { return builder_.release_root(); }
  bool has_root() const { return builder_.has_root(); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (builder_.has_root()) fail_at(file_, position_of(mark), "contains a second YAML document");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add_scalar({.text = "null", .position = position_of(mark)}, anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    const Position position = position_of(mark);
    const bool quoted = tag == "!" || is_standard(tag, {"str"});
    const bool plain = tag == "?" || tag.empty() || is_standard(tag, {"int", "float", "bool", "null"});
    if (!quoted && !plain) fail_at(file_, position, fmt::format("the tag {} is not supported", tag));
    add_scalar({.value = quoted ? Value(text) : read_plain_scalar(text),
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
                       YAML::EmitterStyle::value) override {
    open(DocumentNode::Kind::list, mark, tag, anchor);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(DocumentNode::Kind::mapping, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  void add_scalar(DocumentNode node, YAML::anchor_t anchor) {
    if (builder_.expects_key()) {
      builder_.add_key(std::move(node.text), node.position);
      return;
    }
    if (anchor != 0) anchors_[anchor] = node;
    builder_.add(std::move(node));
  }

  void open(DocumentNode::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    const Position position = position_of(mark);
    if (builder_.expects_key()) fail_at(file_, position, "a key must be text, not a list or a mapping");
    if (!tag.empty() && tag != "?" && !is_standard(tag, {"seq", "map"}))
      fail_at(file_, position, fmt::format("the tag {} is not supported", tag));
    builder_.open(kind, position);
    open_anchors_.push_back(anchor);
  }

  void close() {
    const YAML::anchor_t anchor = open_anchors_.back();
    open_anchors_.pop_back();
    const DocumentNode& node = builder_.close();
    if (anchor == 0) return;
    // Each anchor stores a copy of its nodes, so they count again.
    builder_.count(count_nodes(node), node.position);
    anchors_[anchor] = node;
  }

  std::string file_;
  DocumentBuilder builder_;
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
  for (const DocumentNode& source : sources) {
    if (source.kind == DocumentNode::Kind::mapping) merge(node, source);
    if (source.kind != DocumentNode::Kind::list) continue;
    for (const DocumentNode& item : source.items) merge(node, item);
  }
}

}  // namespace

DocumentNode parse_yaml(std::string_view text, const std::string& file) {
  YamlEvents events(file);
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
