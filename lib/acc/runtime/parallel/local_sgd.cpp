// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/parallel/local_sgd.hpp"

#include <fmt/format.h>

#include <utility>

#include "acc/base/error.hpp"

namespace acc {

LocalSGD::LocalSGD(std::shared_ptr<detail::DdpReplica> ddp, int local_sgd_steps)
    : ddp_(std::move(ddp)), local_sgd_steps_(local_sgd_steps) {
  if (local_sgd_steps < 1) {
    throw Error(
        {.what = fmt::format("must be at least 1, not {}", local_sgd_steps), .where = "local_sgd_steps"});
  }
}

void LocalSGD::step() {
  ++num_steps_;
  if (num_steps_ % local_sgd_steps_ == 0) average();
}

void LocalSGD::average() {
  if (ddp_) ddp_->average_parameters();
}

}  // namespace acc
