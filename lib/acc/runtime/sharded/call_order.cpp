// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/sharded/call_order.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>

#include <utility>

#include "acc/base/error.hpp"

namespace acc::detail {

CallOrder::CallOrder(std::shared_ptr<ProcessGroup> group, int tag, Describe describe)
    : group_(std::move(group)), tag_(tag), describe_(std::move(describe)) {}

std::int64_t CallOrder::announce(std::int64_t call) {
  const at::NoGradGuard no_grad;
  Announced next{.call = call, .calls = at::full({group_->size()}, call, at::kLong)};
  next.transfer = start_all_gather(*group_, next.calls, next.calls.narrow(0, group_->rank(), 1), tag_);
  unchecked_.push_back(std::move(next));
  return ++announced_;
}

void CallOrder::require_same(std::int64_t number) {
  const auto checked = [&] { return announced_ - static_cast<std::int64_t>(unchecked_.size()); };
  while (checked() < number) {
    Announced& first = unchecked_.front();
    first.transfer.wait_received();
    first.transfer.wait_sent();
    const auto* calls = first.calls.const_data_ptr<std::int64_t>();
    for (int rank = 0; rank < group_->size(); ++rank) {
      if (calls[rank] == first.call) continue;
      throw Error({.what = fmt::format("the processes use the model differently: this one {}, rank {} {}",
                                       describe_(first.call), rank, describe_(calls[rank])),
                   .where = fmt::format("rank {}", group_->rank()),
                   .hint = "with a sharded model every process must run the same parts of it in the same "
                           "order"});
    }
    unchecked_.pop_front();
  }
}

}  // namespace acc::detail
