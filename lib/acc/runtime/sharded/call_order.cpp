// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/sharded/call_order.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <utility>

#include "acc/base/error.hpp"

namespace acc::detail {
namespace {

constexpr std::size_t kBits = 64;

}  // namespace

CallOrder::CallOrder(std::shared_ptr<ProcessGroup> group, int tag, Describe describe, std::size_t max_parts)
    : group_(std::move(group)),
      tag_(tag),
      describe_(std::move(describe)),
      words_(static_cast<std::int64_t>((max_parts + kBits - 1) / kBits)) {}

std::int64_t CallOrder::announce(std::int64_t call, const std::vector<bool>& parts) {
  const at::NoGradGuard no_grad;
  const std::int64_t row = 1 + words_;
  Announced next{.call = call, .parts = parts, .calls = at::zeros({group_->size() * row}, at::kLong)};
  const at::Tensor own_calls = next.calls.narrow(0, group_->rank() * row, row);
  auto* words = own_calls.mutable_data_ptr<std::int64_t>();
  words[0] = call;
  for (std::size_t part = 0; part < parts.size(); ++part)
    if (parts[part]) words[1 + part / kBits] |= std::int64_t{1} << part % kBits;
  next.transfer = start_all_gather(*group_, next.calls, own_calls, tag_);
  unchecked_.push_back(std::move(next));
  return ++announced_;
}

void CallOrder::require_same(std::int64_t number) {
  const auto checked = [&] { return announced_ - static_cast<std::int64_t>(unchecked_.size()); };
  while (checked() < number) {
    Announced& first = unchecked_.front();
    first.transfer.wait_received();
    first.transfer.wait_sent();
    const auto* words = first.calls.const_data_ptr<std::int64_t>();
    for (int rank = 0; rank < group_->size(); ++rank, words += 1 + words_) {
      if (words[0] != first.call) {
        throw Error({.what = fmt::format("the processes use the model differently: this one {}, rank {} {}",
                                         describe_(first.call), rank, describe_(words[0])),
                     .where = fmt::format("rank {}", group_->rank()),
                     .hint = "with a sharded model every process must run the same parts of it in the same "
                             "order"});
      }
      for (std::size_t part = 0; part < first.parts.size(); ++part)
        if ((words[1 + part / kBits] >> part % kBits & 1) != 0) first.parts[part] = true;
    }
    if (!first.parts.empty()) parts_.emplace(checked() + 1, std::move(first.parts));
    unchecked_.pop_front();
  }
}

std::vector<bool> CallOrder::parts_of_all(std::int64_t number) {
  require_same(number);
  auto parts = parts_.extract(number);
  return std::move(parts.mapped());
}

}  // namespace acc::detail
