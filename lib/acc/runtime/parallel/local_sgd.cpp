// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/parallel/local_sgd.hpp"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "acc/base/error.hpp"

namespace acc {

LocalSGD::LocalSGD(std::shared_ptr<DdpReplica> ddp, int local_sgd_steps)
    : ddp_(std::move(ddp)),
      no_sync_(ddp_),
      local_sgd_steps_(local_sgd_steps),
      exceptions_before_(std::uncaught_exceptions()) {
  if (local_sgd_steps < 1) {
    throw Error(
        {.what = fmt::format("must be at least 1, not {}", local_sgd_steps), .where = "local_sgd_steps"});
  }
}

LocalSGD::~LocalSGD() noexcept(false) {
  if (ddp_ && std::uncaught_exceptions() == exceptions_before_) ddp_->average_parameters();
}

void LocalSGD::step() {
  ++num_steps_;
  if (ddp_ && num_steps_ % local_sgd_steps_ == 0) ddp_->average_parameters();
}

}  // namespace acc
