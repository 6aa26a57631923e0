// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/accelerator/settings_agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include "acc/base/text.hpp"
#include "acc/runtime/comm/operations.hpp"

namespace acc::detail {
namespace {

std::string text_of(bool on) {
  return on ? "true" : "false";
}

template <class Value>
std::string text_of(const std::optional<Value>& value) {
  if (!value) return "not set";
  if constexpr (std::is_same_v<Value, bool>)
    return text_of(*value);
  else
    return fmt::format("{}", *value);
}

std::string text_of(CommHook hook) {
  constexpr std::array<std::string_view, 3> kNames = {"none", "fp16", "bf16"};
  return std::string(kNames.at(static_cast<std::size_t>(hook)));
}

}  // namespace

SharedSettings shared_settings(const AcceleratorOptions& options, MixedPrecision precision,
                               int gradient_accumulation_steps) {
  SharedSettings settings = {
      {"mixed_precision", std::string(to_string(precision))},
      {"gradient_accumulation_steps", fmt::format("{}", gradient_accumulation_steps)},
      {"sync_with_dataloader", text_of(options.gradient_accumulation.sync_with_dataloader)},
      {"sync_each_batch", text_of(options.gradient_accumulation.sync_each_batch)},
      {"split_batches", text_of(options.split_batches)},
      {"dispatch_batches", text_of(options.dispatch_batches)},
      {"even_batches", text_of(options.even_batches)},
      {"step_scheduler_with_optimizer", text_of(options.step_scheduler_with_optimizer)},
      {"check_parameters_every", fmt::format("{}", options.check_parameters_every)},
      {"use_fsdp", text_of(options.fsdp.has_value())},
  };
  if (options.fsdp) {
    const bool in_shards = options.fsdp->state_dict_type == StateDictType::sharded;
    settings.emplace_back("fsdp.prefetch", text_of(options.fsdp->prefetch));
    settings.emplace_back("fsdp.state_dict_type", in_shards ? "sharded" : "full");
    settings.emplace_back("fsdp.ignored_modules", options.fsdp->ignored_modules);
    // Where parameters are gathered again in backward. Under DDP a rank with less memory may recompute alone.
    settings.emplace_back("activation_checkpointing", text_of(options.activation_checkpointing));
  } else {
    settings.emplace_back("ddp.bucket_cap_mb", text_of(options.ddp.bucket_cap_mb));
    settings.emplace_back("ddp.find_unused_parameters", text_of(options.ddp.find_unused_parameters));
    settings.emplace_back("ddp.static_graph", text_of(options.ddp.static_graph));
    settings.emplace_back("ddp.comm_hook", text_of(options.ddp.comm_hook));
  }
  settings.emplace_back("ddp.broadcast_buffers", text_of(options.ddp.broadcast_buffers));
  return settings;
}

std::optional<Error> find_disagreement(const std::vector<SharedSettings>& by_rank) {
  const SharedSettings& first = by_rank.front();
  for (std::size_t index = 0; index < first.size(); ++index) {
    for (std::size_t rank = 1; rank < by_rank.size(); ++rank) {
      const auto& [name, value] = first[index];
      const std::string there = index < by_rank[rank].size() ? by_rank[rank][index].second : "unknown";
      if (value == there) continue;
      return Error({.what = fmt::format("is {} on rank 0, and {} on rank {}", value.empty() ? "empty" : value,
                                        there.empty() ? "empty" : there, rank),
                    .where = name,
                    .hint = "give all processes the same options, and all nodes the same configuration"});
    }
  }
  return std::nullopt;
}

void require_same_settings(const SharedSettings& settings, ProcessGroup& group) {
  std::vector<std::string> values;
  for (const auto& setting : settings) values.push_back(setting.first + '=' + setting.second);
  std::vector<SharedSettings> by_rank;
  for (const std::string& text : gather_texts({join(values, "\n")}, &group)) {
    SharedSettings& of_rank = by_rank.emplace_back();
    for (const std::string& line : split(text, '\n')) {
      const std::size_t end = line.find('=');
      of_rank.emplace_back(line.substr(0, end), line.substr(end + 1));
    }
  }
  if (const auto error = find_disagreement(by_rank)) throw Error(*error);
}

std::optional<RankDifference> find_difference(const std::string& text, ProcessGroup* group) {
  const std::vector<std::string> texts = gather_texts({text}, group);
  const auto other = std::ranges::find_if(texts, [&](const auto& here) { return here != texts.front(); });
  if (other == texts.end()) return std::nullopt;
  return RankDifference{.first = texts.front(), .other = *other, .other_rank = other - texts.begin()};
}

}  // namespace acc::detail
