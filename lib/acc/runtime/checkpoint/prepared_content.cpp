// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/prepared_content.hpp"

#include <algorithm>
#include <limits>

#include "acc/base/error.hpp"

namespace acc {
namespace {

// What Python's schedulers have besides: LambdaLR takes no state without its (unsaved) functions, and
// ReduceLROnPlateau no None for the best metric that it has not seen yet.
PtValue for_python(PtValue state) {
  auto* fields = std::get_if<PtDict>(&state.content);
  if (fields == nullptr) return state;
  std::erase_if(*fields, [](const PtEntry& field) { return field.value.is_none(); });
  const PtValue* base = state.find("base_lrs");
  const auto* rates = base != nullptr ? base->get_if<PtList>() : nullptr;
  if (rates != nullptr && state.find("lr_lambdas") == nullptr)
    fields->push_back({"lr_lambdas", PtList(rates->size())});
  return state;
}

Stateful stateful_of(const PreparedScheduler& scheduler) {
  return {.state = [scheduler] { return for_python(from_json(scheduler.state())); },
          .load_state = [scheduler](const PtValue& state) { scheduler.load_state(to_json(state)); }};
}

double field(const PtValue& state, std::string_view name) {
  const PtValue* value = state.find(name);
  const auto number = value != nullptr ? value->number() : std::nullopt;
  if (number) return *number;
  throw Error({.kind = ErrorKind::config,
               .what = "has no '" + std::string(name) + "'",
               .where = "the gradient scaler's state"});
}

// Entries as in Python's GradScaler.state_dict().
Stateful stateful_of(const std::shared_ptr<GradScaler>& scaler) {
  return {.state = [scaler]() -> PtValue {
            const GradScalerState state = scaler->state();
            return PtDict{{"scale", state.scale},
                          {"growth_factor", state.growth_factor},
                          {"backoff_factor", state.backoff_factor},
                          {"growth_interval", state.growth_interval},
                          {"_growth_tracker", state.growth_tracker}};
          },
          .load_state =
              [scaler](const PtValue& state) {
                scaler->load_state(
                    {.scale = field(state, "scale"),
                     .growth_factor = field(state, "growth_factor"),
                     .backoff_factor = field(state, "backoff_factor"),
                     .growth_interval = static_cast<std::int64_t>(field(state, "growth_interval")),
                     .growth_tracker = static_cast<std::int64_t>(field(state, "_growth_tracker"))});
              }};
}

constexpr std::size_t kNoParameter = std::numeric_limits<std::size_t>::max();

PtValue to_value(const BucketLayout& layout) {
  if (layout.empty()) return {};
  PtList buckets;
  for (const std::vector<std::size_t>& bucket : layout) {
    PtList indices;
    for (const std::size_t index : bucket) indices.emplace_back(static_cast<std::int64_t>(index));
    buckets.emplace_back(std::move(indices));
  }
  return buckets;
}

BucketLayout to_layout(const PtValue& value) {
  BucketLayout layout;
  const auto* buckets = value.get_if<PtList>();
  for (const PtValue& bucket : buckets != nullptr ? *buckets : PtList()) {
    const auto* indices = bucket.get_if<PtList>();
    layout.emplace_back();
    for (const PtValue& index : indices != nullptr ? *indices : PtList()) {
      const auto* number = index.get_if<std::int64_t>();
      // One that does not fit is passed over as a whole.
      layout.back().push_back(number != nullptr ? static_cast<std::size_t>(*number) : kNoParameter);
    }
  }
  return layout;
}

// Without a replica nothing is averaged.
Stateful buckets_of(const std::shared_ptr<DdpReplica>& ddp) {
  return {.state = [ddp] { return ddp ? to_value(ddp->bucket_layout()) : PtValue(); },
          .load_state =
              [ddp](const PtValue& value) {
                if (ddp) ddp->set_bucket_layout(to_layout(value));
              }};
}

}  // namespace

CheckpointContent content_of(const Prepared& prepared, const std::vector<Stateful>& registered,
                             int num_processes) {
  CheckpointContent content{.registered = registered,
                            .step = prepared.gradients->step(),
                            .accumulates = !prepared.gradients->sync_gradients(),
                            .num_processes = num_processes};
  for (const PreparedModel& model : prepared.models) {
    content.models.push_back(model.module.get());
    content.gradient_buckets.push_back(buckets_of(model.ddp));
  }
  for (const Optimizer& optimizer : prepared.optimizers) content.optimizers.push_back(&optimizer.native());
  for (const PreparedScheduler& scheduler : prepared.schedulers)
    content.schedulers.push_back(stateful_of(scheduler));
  for (const auto& loader : prepared.loaders) content.loaders.push_back(stateful(*loader));
  if (prepared.scaler) content.scaler = stateful_of(prepared.scaler);
  return content;
}

}  // namespace acc
