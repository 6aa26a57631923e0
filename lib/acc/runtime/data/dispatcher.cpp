// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/dispatcher.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/runtime/comm/tensor_form.hpp"

namespace acc::detail {
namespace {

constexpr std::int64_t kMaxTensors = 32;
// One more than kMaxTensors: the serialized values that are not tensors are sent as a tensor, too.
constexpr std::int64_t kHeaderSize = 2 + (kMaxTensors + 1) * kFormSize;

// The header's first number is the number of tensors, or one of these.
constexpr std::int64_t kEnd = -1;
constexpr std::int64_t kFailed = -2;

void require_sendable(const BatchParts& parts) {
  if (static_cast<std::int64_t>(parts.tensors.size()) <= kMaxTensors) return;
  throw Error(
      {.what = fmt::format("a batch may have at most {} tensors, not {}", kMaxTensors, parts.tensors.size()),
       .where = kDispatchBatches,
       .hint = "set dispatch_batches to false"});
}

// The parts of a batch that are not tensors, as bytes; empty if there are none.
at::Tensor bytes_of_other_parts(const BatchParts& parts) {
  if (parts.lists.empty() && parts.common.empty()) return at::empty({0}, at::kByte);
  const std::string text = to_text({.lists = parts.lists, .common = parts.common});
  at::Tensor bytes = at::empty({static_cast<std::int64_t>(text.size())}, at::kByte);
  std::ranges::copy(text, static_cast<char*>(bytes.mutable_data_ptr()));
  return bytes;
}

BatchParts parts_of_bytes(const at::Tensor& bytes) {
  if (bytes.numel() == 0) return {};
  return parts_of_text({static_cast<const char*>(bytes.const_data_ptr()), bytes.nbytes()});
}

// The header of a step: the number of tensors, the number of rows that are not repetitions, and the types and
// shapes with which every rank allocates the tensors.
at::Tensor header_of(const std::vector<at::Tensor>& tensors, std::size_t rows) {
  at::Tensor header = at::zeros({kHeaderSize}, at::kLong);
  auto* number = header.mutable_data_ptr<std::int64_t>();
  *number++ = static_cast<std::int64_t>(tensors.size());
  *number++ = static_cast<std::int64_t>(rows);
  for (const at::Tensor& tensor : tensors) {
    write_form(tensor, number, kDispatchBatches);
    number += kFormSize;
  }
  return header;
}

std::vector<at::Tensor> allocate_tensors(const at::Tensor& header) {
  const auto* number = header.const_data_ptr<std::int64_t>();
  if (number[0] < 1 || number[0] > kMaxTensors + 1 || number[1] < 0) refuse_numbers(kDispatchBatches);
  std::vector<at::Tensor> tensors(static_cast<std::size_t>(number[0]));
  number += 2;
  for (at::Tensor& tensor : tensors) {
    require_form(number, kDispatchBatches);
    tensor = empty_of_form(number);
    number += kFormSize;
  }
  return tensors;
}

}  // namespace

void refuse_batch() {
  throw Error(
      {.what = "rank 0 cannot send batches of this type: only structures of tensors, numbers and texts",
       .where = kDispatchBatches,
       .hint = "include acc/objects.hpp if JSON can represent the rest, or set "
               "dispatch_batches to false"});
}

Dispatcher::Dispatcher(Broadcast broadcast, const Shard& shard, bool drop_last, Read read, Read from_start)
    : broadcast_(std::move(broadcast)),
      shard_(shard),
      drop_last_(drop_last),
      read_(std::move(read)),
      from_start_(std::move(from_start)) {}

std::optional<BatchParts> Dispatcher::read_batches(const Read& read) const {
  const std::size_t count = shard_.split_batches ? 1 : shard_.count;
  std::vector<BatchParts> batches;
  while (batches.size() < count) {
    auto batch = read();
    if (!batch) break;
    count_rows(*batch);  // throws if the numbers of rows differ, which concatenation could hide
    batches.push_back(std::move(*batch));
  }
  if (batches.empty() || (drop_last_ && batches.size() < count)) return std::nullopt;
  return concatenate(batches);
}

std::optional<Dispatcher::Step> Dispatcher::read_step() {
  auto parts = read_batches(read_);
  if (!parts) return std::nullopt;
  require_sendable(*parts);
  Step step{.rows = count_rows(*parts)};
  step.parts = drop_last_ ? std::move(*parts) : filled(std::move(*parts), step.rows);
  return step;
}

BatchParts Dispatcher::filled(BatchParts parts, std::size_t rows) {
  const std::size_t count = shard_.count;
  const auto keep_first = [&](const BatchParts& step) {
    first_ = slice_rows(step, 0, count);
    for (at::Tensor& tensor : first_->tensors) tensor = tensor.clone();
  };
  if (!first_ && !from_start_) keep_first(parts);
  if (rows % count == 0) return parts;
  if (!first_) keep_first(read_batches(from_start_).value());
  if (count_rows(*first_) == 0) keep_first(parts);
  const std::size_t whole = (rows + count - 1) / count * count;
  while (count_rows(parts) < whole) parts = concatenate({parts, *first_});
  return slice_rows(parts, 0, whole);
}

std::optional<Dispatcher::Step> Dispatcher::receive() {
  at::Tensor header = at::zeros({kHeaderSize}, at::kLong);
  broadcast_(header);
  const auto* numbers = header.const_data_ptr<std::int64_t>();
  if (numbers[0] == kEnd) return std::nullopt;
  if (numbers[0] == kFailed) {
    throw Error({.kind = ErrorKind::system,
                 .what = "rank 0 could not read the next batch; its own error names the cause",
                 .where = kDispatchBatches});
  }
  std::vector<at::Tensor> sent = allocate_tensors(header);
  for (at::Tensor& tensor : sent) broadcast_(tensor);
  Step step{.parts = parts_of_bytes(sent.front()), .rows = static_cast<std::size_t>(numbers[1])};
  step.parts.tensors.assign(sent.begin() + 1, sent.end());
  return step;
}

std::optional<Dispatcher::Step> Dispatcher::fetch() {
  if (shard_.index != 0) return receive();
  const auto send_status = [&](std::int64_t what) {
    at::Tensor header = at::zeros({kHeaderSize}, at::kLong);
    *header.mutable_data_ptr<std::int64_t>() = what;
    broadcast_(header);
  };
  std::optional<Step> step;
  std::vector<at::Tensor> tensors;
  at::Tensor header;
  try {
    step = read_step();
    if (step) {
      tensors.push_back(bytes_of_other_parts(step->parts));
      for (const at::Tensor& tensor : step->parts.tensors) tensors.push_back(tensor.contiguous());
      header = header_of(tensors, step->rows);
    }
  } catch (...) {
    // The others wait for a header, also after an error here.
    send_status(kFailed);
    throw;
  }
  if (!step) {
    send_status(kEnd);
    return std::nullopt;
  }
  broadcast_(header);
  for (at::Tensor& tensor : tensors) broadcast_(tensor);
  return step;
}

// Keeps an exception, which is thrown after the step before it.
void Dispatcher::look_ahead() {
  try {
    ahead_ = fetch();
  } catch (...) {
    failure_ = std::current_exception();
  }
}

std::optional<BatchParts> Dispatcher::next() {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  if (!std::exchange(started_, true)) ahead_ = fetch();
  if (!ahead_) return std::nullopt;
  const Step step = *std::exchange(ahead_, std::nullopt);
  look_ahead();
  remainder_ = at_end() && step.rows % shard_.count != 0 && !drop_last_ ? step.rows : 0;
  const std::size_t part = count_rows(step.parts) / shard_.count;
  return slice_rows(step.parts, part * shard_.index, part);
}

}  // namespace acc::detail
