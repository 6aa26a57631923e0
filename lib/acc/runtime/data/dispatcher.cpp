// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/dispatcher.hpp"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/runtime/process/tensor_form.hpp"

namespace acc {
namespace {

constexpr std::int64_t kMostTensors = 32;

// What the first number of a head says instead of a count.
constexpr std::int64_t kEnd = -1;
constexpr std::int64_t kFailed = -2;

// How many tensors a step has, and of which types and shapes: every rank can then make room for them.
at::Tensor head_of(const Dispatcher::Tensors& tensors) {
  if (tensors.empty() || static_cast<std::int64_t>(tensors.size()) > kMostTensors) {
    throw Error({.what = fmt::format("a batch needs 1 to {} tensors, not {}", kMostTensors, tensors.size()),
                 .where = "dispatch_batches",
                 .hint = "set dispatch_batches to false"});
  }
  at::Tensor head = at::zeros({1 + kMostTensors * kFormSize}, at::kLong);
  auto* number = head.mutable_data_ptr<std::int64_t>();
  *number++ = static_cast<std::int64_t>(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    if (tensor.dim() == 0 || tensor.size(0) != tensors[0].size(0)) {
      throw Error(
          {.what = "every tensor of a batch needs the same number of rows", .where = "dispatch_batches"});
    }
    write_form(tensor, number, "dispatch_batches");
    number += kFormSize;
  }
  return head;
}

Dispatcher::Tensors room_for(const at::Tensor& head) {
  const auto* number = head.const_data_ptr<std::int64_t>();
  Dispatcher::Tensors tensors(static_cast<std::size_t>(*number++));
  for (at::Tensor& tensor : tensors) {
    tensor = empty_of_form(number);
    number += kFormSize;
  }
  return tensors;
}

Dispatcher::Tensors concatenate(const std::vector<Dispatcher::Tensors>& batches) {
  if (batches.size() == 1) return batches.front();
  Dispatcher::Tensors whole;
  for (std::size_t i = 0; i < batches.front().size(); ++i) {
    std::vector<at::Tensor> parts;
    for (const auto& batch : batches) {
      const bool fits = batch.size() == batches.front().size() &&
                        batch[i].sizes().slice(1) == batches.front()[i].sizes().slice(1);
      if (!fits) {
        throw Error({.what = "batches of different shapes cannot be put together",
                     .where = "dispatch_batches",
                     .hint = "set dispatch_batches to false, or split_batches to true"});
      }
      parts.push_back(batch[i]);
    }
    whole.push_back(at::cat(parts));
  }
  return whole;
}

}  // namespace

Dispatcher::Dispatcher(Broadcast broadcast, const Shard& shard, bool drop_last, Read read)
    : broadcast_(std::move(broadcast)), shard_(shard), drop_last_(drop_last), read_(std::move(read)) {}

std::optional<Dispatcher::Tensors> Dispatcher::read_step() {
  const std::size_t wanted = shard_.split_batches ? 1 : shard_.count;
  std::vector<Tensors> batches;
  while (batches.size() < wanted) {
    auto batch = read_();
    if (!batch) break;
    batches.push_back(std::move(*batch));
  }
  if (batches.empty() || (drop_last_ && batches.size() < wanted)) return std::nullopt;
  return concatenate(batches);
}

std::optional<Dispatcher::Tensors> Dispatcher::receive() {
  at::Tensor head = at::zeros({1 + kMostTensors * kFormSize}, at::kLong);
  broadcast_(head);
  const std::int64_t count = *head.const_data_ptr<std::int64_t>();
  if (count == kEnd) return std::nullopt;
  if (count == kFailed) {
    throw Error({.kind = ErrorKind::system,
                 .what = "rank 0 could not read the next batch; its own error says why",
                 .where = "dispatch_batches"});
  }
  Tensors step = room_for(head);
  for (at::Tensor& tensor : step) broadcast_(tensor);
  return step;
}

std::optional<Dispatcher::Tensors> Dispatcher::fetch() {
  if (shard_.index != 0) return receive();
  const auto tell = [&](std::int64_t what) {
    at::Tensor head = at::zeros({1 + kMostTensors * kFormSize}, at::kLong);
    *head.mutable_data_ptr<std::int64_t>() = what;
    broadcast_(head);
  };
  std::optional<Tensors> step;
  at::Tensor head;
  try {
    step = read_step();
    if (step) head = head_of(*step);
  } catch (...) {
    // The others wait for a head: without one they would wait for ever.
    tell(kFailed);
    throw;
  }
  if (!step) {
    tell(kEnd);
    return std::nullopt;
  }
  broadcast_(head);
  for (at::Tensor& tensor : *step) {
    tensor = tensor.contiguous();
    broadcast_(tensor);
  }
  return step;
}

Dispatcher::Tensors Dispatcher::part_of(Tensors step) {
  const auto count = static_cast<std::int64_t>(shard_.count);
  const std::int64_t rows = step.front().size(0);
  if (first_.empty()) {
    for (const at::Tensor& tensor : step) first_.push_back(tensor.slice(0, 0, count).clone());
  }
  const std::int64_t part = drop_last_ ? rows / count : (rows + count - 1) / count;
  for (std::size_t i = 0; i < step.size(); ++i) {
    at::Tensor& tensor = step[i];
    while (tensor.size(0) < part * count) tensor = at::cat({tensor, first_[i]});
    tensor = tensor.slice(0, part * static_cast<std::int64_t>(shard_.index),
                          part * (static_cast<std::int64_t>(shard_.index) + 1));
  }
  return step;
}

std::optional<Dispatcher::Tensors> Dispatcher::next() {
  if (!std::exchange(started_, true)) ahead_ = fetch();
  if (!ahead_) return std::nullopt;
  Tensors step = *std::exchange(ahead_, std::nullopt);
  ahead_ = fetch();
  const auto rows = static_cast<std::size_t>(step.front().size(0));
  remainder_ = !ahead_ && rows % shard_.count != 0 && !drop_last_ ? rows : 0;
  return part_of(std::move(step));
}

}  // namespace acc
