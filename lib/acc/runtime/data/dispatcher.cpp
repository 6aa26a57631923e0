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
constexpr std::int64_t kHeadSize = 2 + kMostTensors * kFormSize;

// A head begins with how many tensors follow, or with one of these.
constexpr std::int64_t kEnd = -1;
constexpr std::int64_t kFailed = -2;

void require_rows(const Dispatcher::Tensors& tensors) {
  if (tensors.empty() || static_cast<std::int64_t>(tensors.size()) > kMostTensors) {
    throw Error({.what = fmt::format("a batch needs 1 to {} tensors, not {}", kMostTensors, tensors.size()),
                 .where = "dispatch_batches",
                 .hint = "set dispatch_batches to false"});
  }
  for (const at::Tensor& tensor : tensors) {
    if (tensor.dim() == 0 || tensor.size(0) != tensors[0].size(0)) {
      throw Error(
          {.what = "every tensor of a batch needs the same number of rows", .where = "dispatch_batches"});
    }
  }
}

// How many tensors a step has, how many of its rows are not there twice, and types and shapes: every rank can
// then make room for them.
at::Tensor head_of(const Dispatcher::Tensors& tensors, std::size_t rows) {
  at::Tensor head = at::zeros({kHeadSize}, at::kLong);
  auto* number = head.mutable_data_ptr<std::int64_t>();
  *number++ = static_cast<std::int64_t>(tensors.size());
  *number++ = static_cast<std::int64_t>(rows);
  for (const at::Tensor& tensor : tensors) {
    write_form(tensor, number, "dispatch_batches");
    number += kFormSize;
  }
  return head;
}

Dispatcher::Tensors room_for(const at::Tensor& head) {
  const auto* number = head.const_data_ptr<std::int64_t>();
  Dispatcher::Tensors tensors(static_cast<std::size_t>(number[0]));
  number += 2;
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

void refuse_batch() {
  throw Error({.what = "only tensors are sent, and a batch of this type is more: texts, a map's keys, or "
                       "samples that are not stacked",
               .where = "dispatch_batches",
               .hint = "let batches be tuples or arrays of tensors, or set dispatch_batches to false"});
}

Dispatcher::Dispatcher(Broadcast broadcast, const Shard& shard, bool drop_last, Read read, Read from_start)
    : broadcast_(std::move(broadcast)),
      shard_(shard),
      drop_last_(drop_last),
      read_(std::move(read)),
      from_start_(std::move(from_start)) {}

std::optional<Dispatcher::Tensors> Dispatcher::read_batches(const Read& read) const {
  const std::size_t wanted = shard_.split_batches ? 1 : shard_.count;
  std::vector<Tensors> batches;
  while (batches.size() < wanted) {
    auto batch = read();
    if (!batch) break;
    batches.push_back(std::move(*batch));
  }
  if (batches.empty() || (drop_last_ && batches.size() < wanted)) return std::nullopt;
  Tensors whole = concatenate(batches);
  require_rows(whole);
  return whole;
}

std::optional<Dispatcher::Step> Dispatcher::read_step() {
  auto tensors = read_batches(read_);
  if (!tensors) return std::nullopt;
  Step step{.tensors = std::move(*tensors)};
  step.rows = static_cast<std::size_t>(step.tensors.front().size(0));
  if (!drop_last_) fill(step.tensors);
  return step;
}

void Dispatcher::fill(Tensors& tensors) {
  const auto count = static_cast<std::int64_t>(shard_.count);
  const std::int64_t rows = tensors.front().size(0);
  const std::int64_t whole = (rows + count - 1) / count * count;
  const auto keep_first = [&](const Tensors& step) {
    for (const at::Tensor& tensor : step) first_.push_back(tensor.slice(0, 0, count).clone());
  };
  if (first_.empty() && !from_start_) keep_first(tensors);
  if (rows == whole) return;
  if (first_.empty()) keep_first(read_batches(from_start_).value());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    while (tensors[i].size(0) < whole) tensors[i] = at::cat({tensors[i], first_[i]});
    tensors[i] = tensors[i].slice(0, 0, whole);
  }
}

std::optional<Dispatcher::Step> Dispatcher::receive() {
  at::Tensor head = at::zeros({kHeadSize}, at::kLong);
  broadcast_(head);
  const auto* numbers = head.const_data_ptr<std::int64_t>();
  if (numbers[0] == kEnd) return std::nullopt;
  if (numbers[0] == kFailed) {
    throw Error({.kind = ErrorKind::system,
                 .what = "rank 0 could not read the next batch; its own error says why",
                 .where = "dispatch_batches"});
  }
  Step step{.tensors = room_for(head), .rows = static_cast<std::size_t>(numbers[1])};
  for (at::Tensor& tensor : step.tensors) broadcast_(tensor);
  return step;
}

std::optional<Dispatcher::Step> Dispatcher::fetch() {
  if (shard_.index != 0) return receive();
  const auto tell = [&](std::int64_t what) {
    at::Tensor head = at::zeros({kHeadSize}, at::kLong);
    *head.mutable_data_ptr<std::int64_t>() = what;
    broadcast_(head);
  };
  std::optional<Step> step;
  at::Tensor head;
  try {
    step = read_step();
    if (step) head = head_of(step->tensors, step->rows);
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
  for (at::Tensor& tensor : step->tensors) {
    tensor = tensor.contiguous();
    broadcast_(tensor);
  }
  return step;
}

Dispatcher::Tensors Dispatcher::part_of(Tensors tensors) const {
  const std::int64_t part = tensors.front().size(0) / static_cast<std::int64_t>(shard_.count);
  for (at::Tensor& tensor : tensors)
    tensor = tensor.narrow(0, part * static_cast<std::int64_t>(shard_.index), part);
  return tensors;
}

std::optional<Dispatcher::Tensors> Dispatcher::next() {
  if (!std::exchange(started_, true)) ahead_ = fetch();
  if (!ahead_) return std::nullopt;
  Step step = *std::exchange(ahead_, std::nullopt);
  ahead_ = fetch();
  remainder_ = !ahead_ && step.rows % shard_.count != 0 && !drop_last_ ? step.rows : 0;
  return part_of(std::move(step.tensors));
}

}  // namespace acc
