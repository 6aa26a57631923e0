// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "acc/config/document.hpp"

namespace acc::launcher {

/// The parsers behind parse_document: yaml-cpp and nlohmann/json. `file` is used in error messages.
DocumentNode parse_yaml(std::string_view text, const std::string& file);
DocumentNode parse_json(std::string_view text, const std::string& file);

/// Throws Error{config} at `file:line:column`.
[[noreturn]] void fail_at(const std::string& file, Position position, const std::string& what,
                          const std::string& hint = "");

/// Builds the tree from the events of either library, and enforces DocumentLimits.
class DocumentBuilder {
 public:
  explicit DocumentBuilder(std::string file) : file_(std::move(file)) {}

  /// Adds a scalar or the target of an alias to the innermost open node.
  void add(DocumentNode node);
  /// Opens a list or a mapping; close() adds it to its parent.
  void open(DocumentNode::Kind kind, Position position);
  /// Returns the closed node, now part of its parent. The reference is valid until the next call.
  const DocumentNode& close();
  /// Whether the next scalar is the key of a mapping.
  bool expects_key() const;
  void add_key(std::string key, Position position);
  /// Counts the nodes that an alias adds.
  void count(std::size_t nodes, Position position);

  bool has_root() const { return has_root_; }
  DocumentNode release_root() { return std::move(root_); }

 private:
  const DocumentNode& attach(DocumentNode node);

  std::string file_;
  std::vector<DocumentNode> open_ = {};
  DocumentNode root_ = {};
  bool has_root_ = false;
  std::size_t nodes_ = 0;
  /// The last key of each open mapping, until its value arrives.
  struct Key {
    std::string text = {};
    Position position = {};
    bool waiting = false;
  };
  std::vector<Key> keys_ = {};
};

}  // namespace acc::launcher
