// SPDX-License-Identifier: Apache-2.0
#include "acc/config/read.hpp"

#include <fmt/format.h>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/text.hpp"
#include "acc/config/document.hpp"
#include "acc/config/former_keys.hpp"
#include "acc/config/schema.hpp"
#include "acc/config/typed_value.hpp"

namespace acc {
namespace {

constexpr std::string_view kSageMaker = "AMAZON_SAGEMAKER";

// Reads the top level of a file and collects everything that is wrong with it.
class Reader {
 public:
  explicit Reader(FileConfig& config) : config_(config) {}

  void read(DocumentNode& root) {
    check_duplicates(root);
    const bool sagemaker = is_sagemaker(root);
    if (!sagemaker) config_.notes = translate_former_keys(root);
    for (const DocumentNode& item : root.items) {
      if (sagemaker) {
        keep(item, to_value(item));
      } else {
        read_key(item);
      }
    }
    if (!names_type_ && !sagemaker) {
      problems_.push_back({.what = "distributed_type is missing",
                           .where = config_.path.string(),
                           .hint = "as in `distributed_type: MULTI_GPU`"});
    }
    if (!problems_.empty()) throw Error(ErrorKind::config, problems_);
  }

 private:
  static bool is_sagemaker(const DocumentNode& root) {
    for (const DocumentNode& item : root.items) {
      if (item.key == "compute_environment") return item.value == kSageMaker;
    }
    return false;
  }

  void report(Position at, std::string what, std::string hint = "") {
    problems_.push_back({.what = std::move(what),
                         .where = fmt::format("{}:{}:{}", config_.path.string(), at.line, at.column),
                         .hint = std::move(hint)});
  }

  void check_duplicates(const DocumentNode& node) {
    std::map<std::string_view, int> lines;
    for (const DocumentNode& item : node.items) {
      check_duplicates(item);
      if (node.kind != DocumentNode::Kind::mapping) continue;
      const auto [first, added] = lines.try_emplace(item.key, item.key_at.line);
      if (!added) {
        report(item.key_at, fmt::format("the key '{}' is in line {} already", item.key, first->second));
      }
    }
  }

  void keep(const DocumentNode& item, Value value) {
    if (value.is_null()) return;
    config_.values[item.key] = std::move(value);
    config_.positions[item.key] = item.key_at.line;
  }

  void read_key(const DocumentNode& item) {
    const std::vector<std::string> keys = file_keys();
    // A misspelt key explains a missing one.
    names_type_ = names_type_ || (!item.is_null() && nearest(item.key, keys) == "distributed_type");
    const SettingSpec* spec = find_setting(item.key);
    if (spec == nullptr || !spec->in_file) {
      report(item.key_at, fmt::format("unknown key '{}'", item.key), did_you_mean(item.key, keys));
      return;
    }
    auto value = typed_value(*spec, item);
    if (const auto* mismatch = std::get_if<Mismatch>(&value)) {
      report(item.at, mismatch->what, mismatch->hint);
    } else {
      keep(item, std::get<Value>(std::move(value)));
    }
  }

  FileConfig& config_;
  std::vector<Problem> problems_ = {};
  bool names_type_ = false;
};

}  // namespace

FileConfig parse_config(std::string_view text, const std::filesystem::path& file) {
  DocumentNode root = parse_document(text, file);
  const auto fail = [&](std::string what) {
    throw Error({.kind = ErrorKind::config,
                 .what = std::move(what),
                 .where = file.string(),
                 .hint = "`acc config` writes a config file"});
  };
  if (root.is_null()) fail("is empty");
  if (root.kind != DocumentNode::Kind::mapping) fail("holds no `key: value` lines at its top level");
  FileConfig config{.path = file};
  Reader(config).read(root);
  return config;
}

FileConfig read_config(const std::filesystem::path& file) {
  return parse_config(read_file(file, DocumentLimits::kBytes), file);
}

}  // namespace acc
