// SPDX-License-Identifier: Apache-2.0
#include "acc/config/read.hpp"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/host_name.hpp"
#include "acc/base/text.hpp"
#include "acc/config/conversion.hpp"
#include "acc/config/defaults.hpp"
#include "acc/config/document.hpp"
#include "acc/config/migration.hpp"
#include "acc/config/schema.hpp"

namespace acc::launcher {
namespace {

// Reads the top level of a file and collects the errors.
class Reader {
 public:
  Reader(ConfigReport& report, FileRules rules) : report_(report), rules_(rules) {}

  void read(DocumentNode& root) {
    drop_duplicates(root);
    kind_ = is_sagemaker(root) ? ConfigKind::sagemaker : ConfigKind::cluster;
    for (const FormerKey& key : translate_former_keys(root)) note_former(key);
    keys_ = file_keys(kind_);
    for (const DocumentNode& item : root.items) read_key(item);
    if (!names_type_) {
      problems_.push_back({.what = "distributed_type is missing",
                           .where = config_.path.string(),
                           .hint = kind_ == ConfigKind::sagemaker ? "as in `distributed_type: DATA_PARALLEL`"
                                                                  : "as in `distributed_type: MULTI_GPU`"});
    }
    if (kind_ == ConfigKind::sagemaker) require({"ec2_instance_type", "iam_role_name"});
    cut(problems_);
    cut(report_.misspelt);
    cut(config_.notes);
  }

  static bool is_sagemaker(const DocumentNode& root) {
    for (const DocumentNode& item : root.items) {
      if (item.key == "compute_environment")
        return item.value == word_of(ComputeEnvironment::amazon_sagemaker);
    }
    return false;
  }

  // Longer lists of problems are cut.
  static constexpr std::size_t kMaxProblems = 20;

  static std::string hint_for(const std::string& key, const std::vector<std::string>& keys,
                              const std::vector<Problem>& before) {
    return before.size() < kMaxProblems ? did_you_mean(key, keys) : "";
  }

  void cut(std::vector<Problem>& problems) const {
    if (problems.size() <= kMaxProblems) return;
    const std::size_t more = problems.size() - kMaxProblems;
    problems.resize(kMaxProblems);
    problems.push_back({.what = fmt::format("and {} more like these", more), .where = config_.path.string()});
  }

  std::string where(Position position) const {
    return fmt::format("{}:{}:{}", config_.path.string(), position.line, position.column);
  }

  void report(Position position, std::string what, std::string hint = "") {
    problems_.push_back({.what = std::move(what), .where = where(position), .hint = std::move(hint)});
  }

  void note_former(const FormerKey& key) {
    config_.notes.push_back({.what = fmt::format("{} has no effect any more: {}", key.name, key.instead),
                             .where = where(key.position)});
  }

  void require(std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys) {
      if (!config_.values.contains(key))
        problems_.push_back({.what = fmt::format("{} is missing", key), .where = config_.path.string()});
    }
  }

  // As in PyYAML the last of equal keys wins.
  void drop_duplicates(DocumentNode& node) {
    if (node.kind == DocumentNode::Kind::mapping) {
      std::map<std::string, const DocumentNode*> latest;
      for (const DocumentNode& item : node.items) {
        const auto [before, is_new] = latest.try_emplace(item.key, &item);
        if (!is_new) note_duplicate(item, *std::exchange(before->second, &item));
      }
      std::erase_if(node.items, [&](const DocumentNode& item) { return latest.at(item.key) != &item; });
    }
    for (DocumentNode& item : node.items) drop_duplicates(item);
  }

  void note_duplicate(const DocumentNode& item, const DocumentNode& before) {
    config_.notes.push_back({.what = fmt::format("the key '{}' is in line {} already; this one is used",
                                                 shorten(item.key), before.key_position.line),
                             .where = where(item.key_position)});
  }

  void keep(const DocumentNode& item, Value value) {
    if (value.is_null()) return;
    config_.values[item.key] = std::move(value);
    record(item.key, item);
  }

  void record(const std::string& name, const DocumentNode& item) {
    config_.positions[name] = item.key_position.line;
    config_.order.push_back(name);
  }

  void read_key(const DocumentNode& item) {
    const SettingSpec* spec = find_file_key(item.key, kind_);
    names_type_ = names_type_ || (!item.is_null() && item.key == "distributed_type");
    if (spec == nullptr) {
      const std::string hint = hint_for(item.key, keys_, problems_);
      // A misspelt distributed_type is not reported as missing too.
      names_type_ = names_type_ || (!item.is_null() && hint.find("'distributed_type'") != std::string::npos);
      report(item.key_position, fmt::format("unknown key '{}'", shorten(item.key)), hint);
      return;
    }
    if (auto value = value_of(*spec, item)) keep(item, std::move(*value));
    if (spec->type == ValueType::section && item.kind == DocumentNode::Kind::mapping) read_section(item);
  }

  static bool is_any_number_of_processes(const SettingSpec& spec, const DocumentNode& item) {
    return spec.id == key::num_processes && item.value.is_number_integer();
  }

  std::optional<Value> value_of(const SettingSpec& spec, const DocumentNode& item) {
    if (rules_ == FileRules::accelerate && is_any_number_of_processes(spec, item)) return item.value;
    auto value = convert(spec, item);
    const auto* mismatch = std::get_if<Mismatch>(&value);
    if (mismatch == nullptr) return std::get<Value>(std::move(value));
    report(item.position, mismatch->what, mismatch->hint);
    return std::nullopt;
  }

  // Keys of sections get their current names. Unknown ones have no effect, as in accelerate, but are
  // reported.
  void read_section(const DocumentNode& section) {
    const std::vector<std::string> keys = section_keys(section.key);
    if (keys.empty()) return;
    Value values = Value::object();
    std::map<std::string, int, std::less<>> lines;
    for (const DocumentNode& item : section.items) {
      const SettingSpec* spec = find_section_key(section.key, item.key);
      if (spec == nullptr) {
        note_unknown(item, section.key, keys);
        values[item.key] = to_value(item);
        continue;
      }
      auto value = value_of(*spec, item);
      if (!value || value->is_null()) continue;
      const std::string key(file_key(*spec));
      const auto [first, added] = lines.try_emplace(key, item.key_position.line);
      if (!added && values[key] != *value) {
        report(item.key_position, fmt::format("{} has another value in line {}", key, first->second));
      }
      values[key] = std::move(*value);
      record(fmt::format("{}.{}", section.key, key), item);
    }
    config_.values[section.key] = std::move(values);
  }

  void note_unknown(const DocumentNode& item, const std::string& section,
                    const std::vector<std::string>& keys) {
    Problem note = {.what = fmt::format("'{}' is not a key of {}", shorten(item.key), section),
                    .where = where(item.key_position),
                    .hint = hint_for(item.key, keys, report_.misspelt)};
    (note.hint.empty() ? config_.notes : report_.misspelt).push_back(std::move(note));
  }

  ConfigReport& report_;
  FileRules rules_;
  FileConfig& config_ = report_.config;
  std::vector<Problem>& problems_ = report_.problems;
  ConfigKind kind_ = ConfigKind::cluster;
  std::vector<std::string> keys_ = {};
  bool names_type_ = false;
};

ConfigReport inspect(std::string_view text, const std::filesystem::path& file,
                     FileRules rules = FileRules::acc) {
  DocumentNode root = parse_document(text, file);
  const auto fail = [&](std::string what) {
    throw Error({.kind = ErrorKind::config,
                 .what = std::move(what),
                 .where = file.string(),
                 .hint = "`acc config` writes a config file"});
  };
  if (root.is_null()) fail("is empty");
  if (root.kind != DocumentNode::Kind::mapping) fail("has no `key: value` lines at its top level");
  ConfigReport report{.config = {.path = file}};
  Reader(report, rules).read(root);
  return report;
}

}  // namespace

FileConfig parse_config(std::string_view text, const std::filesystem::path& file, FileRules rules) {
  ConfigReport report = inspect(text, file, rules);
  if (!report.problems.empty()) throw Error(ErrorKind::config, report.problems);
  std::vector<Problem>& notes = report.config.notes;
  notes.insert(notes.begin(), report.misspelt.begin(), report.misspelt.end());
  return std::move(report.config);
}

ConfigReport inspect_config(const std::filesystem::path& file) {
  return inspect(read_file(file, DocumentLimits::kBytes), file);
}

FileConfig read_config(const std::filesystem::path& file) {
  return parse_config(read_file(file, DocumentLimits::kBytes), file);
}

void refuse_notes(const FileConfig& config) {
  if (!config.notes.empty()) throw Error(ErrorKind::config, config.notes);
}

namespace {

std::string where(const FileConfig& config, SettingId key) {
  const auto line = config.positions.find(file_key(row_of(key)));
  return line == config.positions.end() ? config.path.string()
                                        : fmt::format("{}:{}", config.path.string(), line->second);
}

}  // namespace

std::vector<Problem> keys_without_effect(const FileConfig& config) {
  const ConfigValues& values = config.values;
  if (kind_of(values) == ConfigKind::sagemaker) return {};
  const auto type = value_in(values, key::distributed_type);
  if (!type) return {};
  std::vector<Problem> problems;
  const auto note = [&](SettingId key, const std::string& why) {
    problems.push_back({.what = fmt::format("{} has no effect with {}", file_key(row_of(key)), why),
                        .where = where(config, key)});
  };
  const auto note_section = [&](SettingKey<Section> section, bool has_effect, const std::string& why) {
    const auto entry = values.find(file_key(row_of(section)));
    // accelerate writes empty sections for what was not asked.
    if (!has_effect && entry != values.end() && !entry->second.empty()) note(section, why);
  };
  const std::string of_type = fmt::format("distributed_type {}", word_of(*type));
  const bool on_cpu = *type == DistributedType::no || *type == DistributedType::multi_cpu;
  note_section(key::fsdp_config, *type == DistributedType::fsdp, of_type);
  note_section(key::deepspeed_config, *type == DistributedType::deepspeed, of_type);
  note_section(key::megatron_lm_config, *type == DistributedType::megatron_lm, of_type);
  note_section(key::mpirun_config, on_cpu, of_type);
  // Several processes of a NO job, which a flag asks for, are another type.
  note_section(key::parallelism_config, *type != DistributedType::multi_cpu && *type != DistributedType::xla,
               of_type);
  const std::string precision = value_in(values, key::mixed_precision).value_or("no");
  note_section(key::fp8_config, precision == "fp8", "mixed_precision " + precision);
  if (!on_cpu && value_in(values, key::use_cpu) == true) note(key::use_cpu, of_type);
  return problems;
}

std::vector<Problem> contradictions(const FileConfig& config) {
  std::vector<Problem> problems;
  const ConfigValues& values = config.values;
  // SageMaker makes the machines, and so knows their addresses.
  if (kind_of(values) == ConfigKind::sagemaker) return problems;
  const std::int64_t machines = value_in(values, key::num_machines).value_or(1);
  const auto count = value_in(values, key::num_processes);
  const auto* processes = count ? std::get_if<std::int64_t>(&*count) : nullptr;
  if (processes != nullptr && *processes % machines != 0) {
    problems.push_back(
        {fmt::format("num_processes {} cannot be divided evenly among num_machines {}", *processes, machines),
         where(config, key::num_processes), "num_processes counts over all machines"});
  }
  const auto rank = value_in(values, key::machine_rank);
  if (rank && *rank >= machines) {
    problems.push_back({fmt::format("machine_rank {} is not below num_machines {}", *rank, machines),
                        where(config, key::machine_rank), "ranks count from 0"});
  }
  const std::string address(trim(value_in(values, key::main_process_ip).value_or("")));
  if (machines > 1 && address.empty()) {
    problems.push_back({fmt::format("num_machines {} need main_process_ip", machines),
                        where(config, key::num_machines), "the address of machine 0"});
  } else if (machines > 1 && !parse_host_name(address)) {
    problems.push_back(
        {fmt::format("main_process_ip '{}' is not the name or address of a machine", shorten(address)),
         where(config, key::main_process_ip), "the port is main_process_port"});
  }
  const auto ids = value_in(values, key::gpu_ids);
  const bool names_one = ids && to_lower(*ids) != "all" && ids->find(',') == std::string::npos;
  const bool on_gpus = value_in(values, key::distributed_type) == DistributedType::multi_gpu;
  if (names_one && on_gpus && machines == 1 && processes != nullptr && *processes > 1) {
    problems.push_back({fmt::format("gpu_ids names one GPU, and {} processes are to share it", *processes),
                        where(config, key::gpu_ids), "name one per process, or `all`"});
  }
  return problems;
}

}  // namespace acc::launcher
